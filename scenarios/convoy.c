/* Twelve threads take one mutex for 2 to 3 microseconds, again and again: what it costs is handing it over. Built
 * with -DINHERIT the mutex inherits priority, and the kernel hands it over in turn. */
#include "common.h"

#define THREADS 12
static pthread_mutex_t counter_lock;
static double stop_at;
static uint64_t counter;
static long long operations;

static NOINLINE void bump_shared_counter(void) {
    counter = mix(counter, 1500);
    operations++;
}

static void *member(void *arg) {
    uint64_t x = (uint64_t)(uintptr_t)arg;
    char name[16];
    snprintf(name, sizeof name, "convoy-%d", (int)(uintptr_t)arg);
    name_self(name);
    while (now_s() < stop_at)
        for (int i = 0; i < 100; i++) {
            pthread_mutex_lock(&counter_lock);
            bump_shared_counter();
            pthread_mutex_unlock(&counter_lock);
            x = mix(x, 500);
        }
    return (void *)(uintptr_t)x;
}

int main(int argc, char **argv) {
    stop_at = now_s() + run_seconds(argc, argv);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
#ifdef INHERIT
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
#endif
    pthread_mutex_init(&counter_lock, &attributes);
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) threads[i] = spawn(member, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    printf("%lld operations\n", operations);
    return 0;
}
