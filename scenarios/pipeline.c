/* Three processes in a row, joined by pipes; the middle one is slow, the first waits for room, the last for data.
 * FIXED: the last one does half of the sorting. */
#include "units.h"
#include <sys/prctl.h>
#include <sys/wait.h>

#define CHUNK 65536
#define ROUNDS 400
#ifdef FIXED
#define ROUNDS_IN_SINK (ROUNDS / 2)
#else
#define ROUNDS_IN_SINK 0
#endif
static uint64_t chunk[CHUNK / 8];
static atomic_long to_send;

static int read_chunk(int fd) {
    for (size_t got = 0; got < CHUNK;) {
        ssize_t n = read(fd, (char *)chunk + got, CHUNK - got);
        if (n <= 0) return 0;
        got += (size_t)n;
    }
    return 1;
}

static void write_chunk(int fd) {
    for (size_t put = 0; put < CHUNK;) {
        ssize_t n = write(fd, (char *)chunk + put, CHUNK - put);
        if (n <= 0) _exit(0);
        put += (size_t)n;
    }
}

static NOINLINE void sort_chunk(uint64_t *c, int n, int rounds) {
    for (int round = 0; round < rounds; round++)
        for (int i = 1; i < n; i++)
            if (c[i] < c[i - 1]) {
                uint64_t t = c[i];
                c[i] = c[i - 1];
                c[i - 1] = t;
            }
}

static void source(int out) {
    prctl(PR_SET_NAME, "stage-source");
    while (next_unit(&to_send)) {
        for (int i = 0; i < CHUNK / 8; i++) chunk[i] = mix((uint64_t)i, 20);
        write_chunk(out);
    }
}

static void sorter(int in, int out) {
    prctl(PR_SET_NAME, "stage-sort");
    while (read_chunk(in)) {
        sort_chunk(chunk, CHUNK / 8, ROUNDS - ROUNDS_IN_SINK);
        write_chunk(out);
    }
}

static void sink(int in) {
    volatile uint64_t sum = 0;
    prctl(PR_SET_NAME, "stage-sink");
    while (read_chunk(in)) {
        sort_chunk(chunk, CHUNK / 8, ROUNDS_IN_SINK);
        for (int i = 0; i < CHUNK / 8; i++) sum += mix(chunk[i], 20);
    }
}

int main(int argc, char **argv) {
    int a[2], b[2];
    plan(argc, argv);
    to_send = units;
    if (pipe(a) != 0 || pipe(b) != 0) die("pipe");
    if (fork() == 0) {
        close(a[0]), close(b[0]), close(b[1]);
        source(a[1]);
        _exit(0);
    }
    if (fork() == 0) {
        close(a[1]), close(b[0]);
        sorter(a[0], b[1]);
        _exit(0);
    }
    if (fork() == 0) {
        close(a[0]), close(a[1]), close(b[1]);
        sink(b[0]);
        _exit(0);
    }
    close(a[0]), close(a[1]), close(b[0]), close(b[1]);
    while (wait(NULL) > 0) {}
    return 0;
}
