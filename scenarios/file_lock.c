/* Processes that share a cache folder by flock(); one of them rebuilds the cache for 0.3 s at a time. */
#include "common.h"
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static double stop_at;
static uint64_t cache[4096];

static NOINLINE void rebuild_cache(uint64_t *c, int n) {
    for (int i = 1; i < n; i++) c[i] = (c[i] << 5 | c[i] >> 59) + (c[i - 1] ^ (uint64_t)i);
}

static int open_lock(const char *path) {
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) die(path);
    return fd;
}

static void indexer(const char *path) {
    int fd = open_lock(path);
    prctl(PR_SET_NAME, "cache-indexer");
    while (now_s() < stop_at) {
        flock(fd, LOCK_EX);
        double until = now_s() + 0.3;
        while (now_s() < until) rebuild_cache(cache, 4096);
        flock(fd, LOCK_UN);
        sleep_us(20000);
    }
}

static void user(const char *path, uint64_t x) {
    int fd = open_lock(path);
    prctl(PR_SET_NAME, "cache-user");
    while (now_s() < stop_at) {
        x = mix(x, 300000);
        flock(fd, LOCK_EX);
        cache[x & 4095] ^= x;
        flock(fd, LOCK_UN);
    }
}

int main(int argc, char **argv) {
    char path[] = "/tmp/file_lock-XXXXXX";
    stop_at = now_s() + run_seconds(argc, argv);
    int fd = mkstemp(path);
    if (fd < 0) die(path);
    close(fd);
    for (int i = 0; i < 5; i++)
        if (fork() == 0) {
            if (i == 0) indexer(path);
            else user(path, (uint64_t)i);
            _exit(0);
        }
    while (wait(NULL) > 0) {}
    unlink(path);
    return 0;
}
