/* Sixteen workers wait for jobs. For each job the dispatcher wakes all of them, and fifteen find nothing. FIXED: it
 * wakes one. wake_storm [JOBS] */
#include "units.h"

#define WORKERS 16
static pthread_mutex_t job_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t job_ready = PTHREAD_COND_INITIALIZER, job_taken = PTHREAD_COND_INITIALIZER;
static long waiting, closed;

static NOINLINE uint64_t run_job(uint64_t x) { return mix(x, 10000); }

static void *worker(void *arg) {
    uint64_t x = (uint64_t)(uintptr_t)arg;
    name_self("job-worker");
    for (;;) {
        pthread_mutex_lock(&job_lock);
        while (waiting == 0 && !closed) pthread_cond_wait(&job_ready, &job_lock);
        if (waiting == 0) break;
        waiting--;
        pthread_cond_signal(&job_taken);
        pthread_mutex_unlock(&job_lock);
        x = run_job(x);
    }
    pthread_mutex_unlock(&job_lock);
    return (void *)(uintptr_t)x;
}

static NOINLINE void announce_job(void) {
    waiting++;
#ifdef FIXED
    pthread_cond_signal(&job_ready);
#else
    pthread_cond_broadcast(&job_ready);
#endif
}

static void dispatch(long jobs) {
    pthread_mutex_lock(&job_lock);
    while (jobs-- > 0) {
        announce_job();
        while (waiting > 0) pthread_cond_wait(&job_taken, &job_lock);
    }
    closed = 1;
    pthread_cond_broadcast(&job_ready);
    pthread_mutex_unlock(&job_lock);
}

int main(int argc, char **argv) {
    pthread_t threads[WORKERS];
    for (long i = 0; i < WORKERS; i++) threads[i] = spawn(worker, (void *)(i + 1));
    name_self("dispatcher");
    dispatch(unit_argument(argc, argv, 60000));
    for (int i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
    return 0;
}
