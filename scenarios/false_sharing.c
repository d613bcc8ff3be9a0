/* Two threads count events, each its own: the counters lie in one cache line, which goes to and fro. FIXED: a line
 * for each. false_sharing [MILLIONS] */
#include "units.h"

#ifdef FIXED
#define APART 16
#else
#define APART 1
#endif
static _Alignas(128) volatile long counters[2 * APART];
static long millions;

static NOINLINE void count_events(volatile long *counter, long events) {
    for (long i = 0; i < events; i++) __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static void *counting(void *arg) {
    long id = (long)(intptr_t)arg;
    name_self(id ? "count-sent" : "count-received");
    for (long i = 0; i < millions; i++) count_events(&counters[id * APART], 1000000);
    return NULL;
}

int main(int argc, char **argv) {
    millions = unit_argument(argc, argv, 200);
    pthread_t a = spawn(counting, (void *)0), b = spawn(counting, (void *)1);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("%ld and %ld\n", counters[0], counters[APART]);
    return 0;
}
