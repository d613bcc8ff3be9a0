/* Counters by hand, with one and two threads on CPUs of their own: one loop for all layouts, so that what differs is the memory.
 * Prints SERIES, THREADS, NANOSECONDS for each operation of a thread. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct record { uint64_t count, sum, min, max; };
static alignas(128) unsigned char memory[4096];
static cpu_set_t allowed;
static int operation, stride, threads;
static pthread_barrier_t start;
static double took[64];
enum { ROUNDS = 15, ROUND_NS = 5000000, BATCH = 20000 };

static double now_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

/* One instruction, as a compiler makes of an addition to memory that is not volatile: processors that rename memory reward it. */
static inline void add(volatile uint64_t *cell, uint64_t value) {
#ifdef __x86_64__
    __asm__ volatile("addq %1, %0" : "+m"(*cell) : "er"(value));
#else
    *cell += value;
#endif
}

/* Unrolled as the lab's loop is: there the loop itself would be as dear as the addition. */
__attribute__((noinline)) static void add_plain(volatile uint64_t *cell, long n) {
#pragma GCC unroll 4
    for (long i = 0; i < n; i++) add(cell, 1);
}

__attribute__((noinline)) static void add_atomic(_Atomic uint64_t *cell, long n) {
    while (n--) atomic_fetch_add_explicit(cell, 1, memory_order_relaxed);
}

__attribute__((noinline)) static void add_record(volatile struct record *r, long n) {
    for (long i = 0; i < n; i++) {
        uint64_t value = (i & 127) + 1;
        add(&r->count, 1);
        add(&r->sum, value);
        /* Rare: out of the way, as a branch that is taken each time takes a cycle. */
        if (__builtin_expect(value < r->min, 0)) r->min = value;
        if (__builtin_expect(value > r->max, 0)) r->max = value;
    }
}

static int by_size(const void *a, const void *b) {
    return (*(double *)a > *(double *)b) - (*(double *)a < *(double *)b);
}

static void *work(void *number) {
    long who = (long)number, seen = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && seen++ == who) {
            cpu_set_t own;
            CPU_ZERO(&own);
            CPU_SET(cpu, &own);
            sched_setaffinity(0, sizeof own, &own);
        }
    void *cell = memory + who * stride;
    double each[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&start);
        /* For a time, not so many operations: whoever came last would have the end of them for itself. CPU time counts, so that
         * what else runs on the machine is no part of it. */
        double begin = now_ns(CLOCK_MONOTONIC), cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
        long done = 0;
        do {
            if (operation == 0) add_plain(cell, BATCH);
            if (operation == 1) add_atomic(cell, BATCH);
            if (operation == 2) add_record(cell, BATCH);
            done += BATCH;
        } while (now_ns(CLOCK_MONOTONIC) - begin < ROUND_NS);
        each[round] = (now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu) / done;
    }
    /* The median: in the fastest the other thread was late, and nothing was shared. */
    qsort(each, ROUNDS, sizeof *each, by_size);
    took[who] = each[ROUNDS / 2];
    return NULL;
}

int main(void) {
    static const char *operations[] = {"unsafe", "interlocked", "record, unsafe"};
    sched_getaffinity(0, sizeof allowed, &allowed);
    for (operation = 0; operation < 3; operation++)
        for (int layout = 0; layout < 3; layout++)
            for (threads = 1; threads <= 2 && threads <= CPU_COUNT(&allowed); threads++) {
                static const char *layouts[] = {"shared", "partitioned", "partitioned without padding"};
                int size = operation == 2 ? sizeof(struct record) : 8;
                stride = layout == 0 ? 0 : layout == 1 ? 128 : size;
                memset(memory, 0, sizeof memory);
                pthread_barrier_init(&start, NULL, threads);
                pthread_t all[2];
                double sum = 0;
                for (long i = 0; i < threads; i++) pthread_create(&all[i], NULL, work, (void *)i);
                for (int i = 0; i < threads; i++) pthread_join(all[i], NULL), sum += took[i];
                printf("%s, %s\t%d\t%.3f\n", operations[operation], layouts[layout], threads, sum / threads);
            }
}
