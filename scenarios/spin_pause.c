/* Two threads, two spin-waits that have nothing to do with each other: the spinlock of an order book, and the ring
 * through which orders go. Each backs off for a number of turns between two looks, as most spin-waits do, so it
 * overshoots by up to as long. Planted: -DPAUSES=14 makes every turn longer (the default is 1), as when `pause` itself
 * becomes slower; -DLONGER_HOLD makes update_book() longer, so that the spinning is a symptom. spin_pause [ORDERS] */
#include "units.h"

#ifndef PAUSES
#define PAUSES 1
#endif
#ifdef LONGER_HOLD
#define BOOK_ROUNDS 1500
#else
#define BOOK_ROUNDS 500
#endif
#define TURNS 50
#define LOOKS 20

static inline void cpu_pause(void) {
#if defined(__x86_64__)
    __asm__ volatile("pause");
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

#define REPEAT_1(x) x
#define REPEAT_14(x) x x x x x x x x x x x x x x
#define REPEAT_N(n, x) REPEAT_##n(x)
#define REPEAT(n, x) REPEAT_N(n, x)

/* Before look number `look` at what is waited for. If it takes that long, the other thread is not running. */
static inline void back_off(int look) {
    for (int turn = 0; turn < TURNS; turn++) { REPEAT(PAUSES, cpu_pause();) }
    if (look > LOOKS) sched_yield();
}

/* --- the order book --- */
static struct {
    _Alignas(128) atomic_int locked;
    _Alignas(128) uint64_t depth;
} book;

static int is_locked(void) { return atomic_load_explicit(&book.locked, memory_order_relaxed); }

static NOINLINE void acquire_book(void) {
    for (int look = 1; is_locked() || atomic_exchange(&book.locked, 1); look++) back_off(look);
}

static void release_book(void) { atomic_store_explicit(&book.locked, 0, memory_order_release); }

static NOINLINE void update_book(uint64_t order) { book.depth = mix(book.depth ^ order, BOOK_ROUNDS); }

static void trade(uint64_t order) {
    acquire_book();
    update_book(order);
    release_book();
}

/* --- the ring, of one place: an order is taken before the next is put in --- */
static struct {
    _Alignas(128) atomic_long put;
    _Alignas(128) atomic_long taken;
    _Alignas(128) uint64_t order;
} ring;

static NOINLINE void await_sequence(atomic_long *sequence, long n) {
    for (int look = 1; atomic_load_explicit(sequence, memory_order_acquire) < n; look++) back_off(look);
}

static long orders;

static void *feed(void *arg) {
    name_self("order-feed");
    for (long n = 1; n <= orders; n++) {
        ring.order = (uint64_t)n;
        atomic_store_explicit(&ring.put, n, memory_order_release);
        trade((uint64_t)n);
        await_sequence(&ring.taken, n);
    }
    return arg;
}

static void *match(void *arg) {
    name_self("order-match");
    for (long n = 1; n <= orders; n++) {
        await_sequence(&ring.put, n);
        trade(ring.order);
        atomic_store_explicit(&ring.taken, n, memory_order_release);
    }
    return arg;
}

int main(int argc, char **argv) {
    orders = unit_argument(argc, argv, 600000);
    pthread_t a = spawn(feed, NULL), b = spawn(match, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("%ld orders, depth %llx\n", orders, (unsigned long long)book.depth);
    return 0;
}
