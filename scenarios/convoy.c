/* Twelve threads take one mutex for 2 to 3 microseconds, again and again: what it costs is handing it over. Built
 * with -DINHERIT the mutex inherits priority, and the kernel hands it over in turn. FIXED: a counter and a mutex for
 * each thread, each in a cache line of its own. */
#include "units.h"

#define THREADS 12
#ifdef FIXED
#define COUNTERS THREADS
#else
#define COUNTERS 1
#endif
static struct counter {
    _Alignas(128) pthread_mutex_t lock;
    uint64_t value;
    long long operations;
} counters[COUNTERS];
static atomic_long hundreds;

static NOINLINE void bump_shared_counter(struct counter *c) {
    c->value = mix(c->value, 1500);
    c->operations++;
}

static void *member(void *arg) {
    uint64_t x = (uint64_t)(uintptr_t)arg;
    struct counter *mine = &counters[x % COUNTERS];
    char name[16];
    snprintf(name, sizeof name, "convoy-%d", (int)(uintptr_t)arg);
    name_self(name);
    while (next_unit(&hundreds))
        for (int i = 0; i < 100; i++) {
            pthread_mutex_lock(&mine->lock);
            bump_shared_counter(mine);
            pthread_mutex_unlock(&mine->lock);
            x = mix(x, 500);
        }
    return (void *)(uintptr_t)x;
}

int main(int argc, char **argv) {
    plan(argc, argv);
    hundreds = units;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
#ifdef INHERIT
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
#endif
    for (int i = 0; i < COUNTERS; i++) pthread_mutex_init(&counters[i].lock, &attributes);
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) threads[i] = spawn(member, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    long long operations = 0;
    for (int i = 0; i < COUNTERS; i++) operations += counters[i].operations;
    printf("%lld operations\n", operations);
    return 0;
}
