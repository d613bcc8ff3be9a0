/* Six workers log through one mutex, whose holder waits for the disk on every line. The file goes to $TMPDIR if
 * that is set, else to the current folder; either must be on a disk. FIXED: one fsync for sixteen lines. */
#include "units.h"

#ifdef FIXED
#define LINES_PER_SYNC 16
#else
#define LINES_PER_SYNC 1
#endif

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static int log_fd;
static atomic_long to_log;
static long lines;

static NOINLINE void append_durably(const char *line, size_t n) {
    if (write(log_fd, line, n) != (ssize_t)n) die("write");
    if (++lines % LINES_PER_SYNC == 0 && fsync(log_fd) != 0) die("fsync");
}

static NOINLINE uint64_t handle_order(uint64_t x) { return mix(x, 20000); }

static void *worker(void *arg) {
    uint64_t x = (uint64_t)(uintptr_t)arg;
    char line[256];
    name_self("order-worker");
    while (next_unit(&to_log)) {
        x = handle_order(x);
        memset(line, '.', sizeof line);
        snprintf(line, sizeof line, "order %llx done\n", (unsigned long long)x);
        pthread_mutex_lock(&log_lock);
        append_durably(line, sizeof line);
        pthread_mutex_unlock(&log_lock);
    }
    return NULL;
}

int main(int argc, char **argv) {
    char path[4096];
    const char *dir = getenv("TMPDIR");
    plan(argc, argv);
    to_log = units;
    snprintf(path, sizeof path, "%s/fsync_logger-XXXXXX", dir ? dir : ".");
    if ((log_fd = mkstemp(path)) < 0) die(path);
    pthread_t threads[6];
    for (long i = 0; i < 6; i++) threads[i] = spawn(worker, (void *)(i + 1));
    for (int i = 0; i < 6; i++) pthread_join(threads[i], NULL);
    unlink(path);
    printf("%ld lines\n", lines);
    return 0;
}
