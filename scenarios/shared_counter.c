/* Two threads count what they serve: in one variable; with -DBESIDE each in its own, both in one cache line.
 * shared_counter [SECONDS] */
#include "common.h"
#include <stdatomic.h>

static struct {
    _Alignas(64) atomic_long sent, received;
} served;
static double stop_at;

static NOINLINE void count_sent(void) {
    for (int i = 0; i < 100000; i++) atomic_fetch_add_explicit(&served.sent, 1, memory_order_relaxed);
}

#ifdef BESIDE
static NOINLINE void count_received(void) {
    for (int i = 0; i < 100000; i++) atomic_fetch_add_explicit(&served.received, 1, memory_order_relaxed);
}
#else
#define count_received count_sent
#endif

static void *serving(void *arg) {
    name_self(arg ? "server-1" : "server-0");
    while (now_s() < stop_at) arg ? count_received() : count_sent();
    return NULL;
}

int main(int argc, char **argv) {
    stop_at = now_s() + run_seconds(argc, argv);
    pthread_t a = spawn(serving, NULL), b = spawn(serving, (void *)1);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("%ld, %ld\n", served.sent, served.received);
    return 0;
}
