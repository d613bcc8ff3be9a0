/* Two threads post to one ledger under a lock that spins: what one works, the other spins. The lock is pthread's;
 * -DCOMPARE tries a compare-and-exchange again and again, -DGIVE_WAY calls sched_yield() between its tries.
 * spin_lock [SECONDS] */
#include "common.h"
#include <sched.h>
#include <stdatomic.h>

#define ROUNDS 20000

static uint64_t total;
static double stop_at;

#if defined(COMPARE) || defined(GIVE_WAY)
static atomic_int held;

static NOINLINE void lock_ledger(void) {
    for (;;) {
        int nobody = 0;
        if (atomic_compare_exchange_weak(&held, &nobody, 1)) return;
#ifdef GIVE_WAY
        sched_yield();
#endif
    }
}

static void unlock_ledger(void) { atomic_store_explicit(&held, 0, memory_order_release); }
#else
static pthread_spinlock_t ledger;

static NOINLINE void lock_ledger(void) { pthread_spin_lock(&ledger); }

static void unlock_ledger(void) { pthread_spin_unlock(&ledger); }
#endif

static NOINLINE void post_entries(uint64_t seed) { total = mix(total ^ seed, ROUNDS); }

static void *posting(void *arg) {
    uint64_t seed = (uint64_t)(intptr_t)arg;
    name_self(seed == 1 ? "poster-1" : "poster-2");
    while (now_s() < stop_at) {
        seed = mix(seed, ROUNDS / 10);
        lock_ledger();
        post_entries(seed);
        unlock_ledger();
    }
    return NULL;
}

int main(int argc, char **argv) {
    stop_at = now_s() + run_seconds(argc, argv);
#if !defined(COMPARE) && !defined(GIVE_WAY)
    pthread_spin_init(&ledger, PTHREAD_PROCESS_PRIVATE);
#endif
    pthread_t a = spawn(posting, (void *)1), b = spawn(posting, (void *)2);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("%llx\n", (unsigned long long)total);
    return 0;
}
