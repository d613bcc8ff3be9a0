/* Two processes. In the client, two handlers wait on a condition for a reader, which waits on a pipe for the
 * server's writer thread, which waits for a mutex that the server's reducer holds while it computes. FIXED: the
 * reducer takes the mutex only to publish its result. */
#include "units.h"
#include <sys/prctl.h>
#include <sys/wait.h>

static pthread_mutex_t result_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_long to_write, to_reduce;
static double matrix[192 * 192];
static volatile double sink;
#define REDUCTIONS 800

/* --- server --- */
static NOINLINE double reduce_matrix(double *m, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            m[i * n + j] = m[i * n + j] * 0.999 + (i ^ j) * 1e-6;
            sum += m[i * n + j] / (1.0 + sum * sum);
        }
    return sum;
}

/* About a quarter of a second. */
static double reduce_often(void) {
    double sum = 0;
    for (int i = 0; i < REDUCTIONS; i++) sum += reduce_matrix(matrix, 192);
    return sum;
}

static void *reducer(void *arg) {
    name_self("srv-reducer");
    while (next_unit(&to_reduce)) {
#ifdef FIXED
        double sum = reduce_often();
        pthread_mutex_lock(&result_lock);
#else
        pthread_mutex_lock(&result_lock);
        double sum = reduce_often();
#endif
        sink = sum;
        pthread_mutex_unlock(&result_lock);
        sleep_us(5000);
    }
    return arg;
}

static void *writer(void *arg) {
    int fd = (int)(intptr_t)arg;
    name_self("srv-writer");
    for (uint64_t n = 0; next_unit(&to_write); n++) {
        pthread_mutex_lock(&result_lock);
        n += (uint64_t)sink & 1;
        pthread_mutex_unlock(&result_lock);
        if (write(fd, &n, sizeof n) != sizeof n) break;
        sink += (double)mix(n, 400000);
    }
    close(fd);
    return NULL;
}

/* --- client --- */
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_filled = PTHREAD_COND_INITIALIZER;
static long queued, closed;

static NOINLINE void render_reply(long n) { sink += (double)mix((uint64_t)n, 500000); }

static void *handler(void *arg) {
    name_self("cli-handler");
    for (;;) {
        pthread_mutex_lock(&queue_lock);
        while (queued == 0 && !closed) pthread_cond_wait(&queue_filled, &queue_lock);
        if (queued == 0) break;
        long n = queued--;
        pthread_mutex_unlock(&queue_lock);
        render_reply(n);
    }
    pthread_mutex_unlock(&queue_lock);
    return arg;
}

static void read_replies(int fd) {
    uint64_t n;
    while (read(fd, &n, sizeof n) == sizeof n) {
        pthread_mutex_lock(&queue_lock);
        queued++;
        pthread_cond_signal(&queue_filled);
        pthread_mutex_unlock(&queue_lock);
    }
    pthread_mutex_lock(&queue_lock);
    closed = 1;
    pthread_cond_broadcast(&queue_filled);
    pthread_mutex_unlock(&queue_lock);
}

int main(int argc, char **argv) {
    int fds[2];
    plan(argc, argv);
    to_write = units;
    to_reduce = units / 140;
    if (pipe(fds) != 0) die("pipe");
    if (fork() == 0) {
        prctl(PR_SET_NAME, "chain-server");
        close(fds[0]);
        pthread_t r = spawn(reducer, NULL), w = spawn(writer, (void *)(intptr_t)fds[1]);
        pthread_join(r, NULL);
        pthread_join(w, NULL);
        return 0;
    }
    close(fds[1]);
    pthread_t a = spawn(handler, NULL), b = spawn(handler, NULL);
    read_replies(fds[0]);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    wait(NULL);
    return 0;
}
