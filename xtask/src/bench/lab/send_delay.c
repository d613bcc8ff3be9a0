/* The second story by hand: a sender that spins for a lock which the worker holds 10 ms. A pause is 43 ns by the clock.
 * Prints SERIES, DELAY in ms, SECONDS for 100 messages. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MESSAGES 100
static const double PAUSE_NS = 43, WORK_NS = 10e6;
static atomic_uint lock; /* 0 free, 1 taken, 2 taken and somebody may sleep */
static sem_t sent;
static int old_back_off;

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void spin(double ns) { for (double end = now_ns() + ns; now_ns() < end;) ; }

/* Both spin: on one CPU they would take it from each other. */
static void pin(int wanted) {
    static cpu_set_t allowed;
    cpu_set_t own;
    if (CPU_COUNT(&allowed) == 0) sched_getaffinity(0, sizeof allowed, &allowed);
    for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && seen++ == wanted % CPU_COUNT(&allowed)) {
            CPU_ZERO(&own);
            CPU_SET(cpu, &own);
            sched_setaffinity(0, sizeof own, &own);
        }
}

static int try_lock(void) {
    unsigned free = 0;
    return atomic_compare_exchange_strong(&lock, &free, 1);
}

static void take(void) {
    if (old_back_off)
        for (int repetition = 0; repetition < 10; repetition++) {
            for (long pauses = 50; pauses < 20000 * 24; pauses *= 3) {
                if (try_lock()) return;
                spin(pauses * PAUSE_NS);
            }
            sched_yield();
        }
    else
        for (int i = 0; i < 30; i++) {
            if (try_lock()) return;
            spin(i < 3 ? 37 << i : 272);
        }
    while (atomic_exchange(&lock, 2) != 0) syscall(SYS_futex, &lock, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

static void give(void) {
    if (atomic_exchange(&lock, 0) == 2) syscall(SYS_futex, &lock, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *work(void *unused) {
    pin(1);
    for (int i = 0; i < MESSAGES; i++) {
        sem_wait(&sent);
        take();
        spin(WORK_NS);
        give();
    }
    return unused;
}

int main(void) {
    pin(0);
    static const int delays[] = {1, 2, 3, 5, 8};
    for (old_back_off = 0; old_back_off < 2; old_back_off++)
        for (unsigned d = 0; d < sizeof delays / sizeof *delays; d++) {
            pthread_t worker;
            sem_init(&sent, 0, 0);
            pthread_create(&worker, NULL, work, NULL);
            double begin = now_ns();
            for (int i = 0; i < MESSAGES; i++) {
                usleep(delays[d] * 1000);
                take();
                give();
                sem_post(&sent);
            }
            pthread_join(worker, NULL);
            printf("%s back-off\t%d\t%.3f\n", old_back_off ? "old" : "present", delays[d], (now_ns() - begin) / 1e9);
        }
}
