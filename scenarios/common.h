/* What the C scenarios share: clocks, names, pinning, and a duration from the command line. */
#ifndef SCENARIO_COMMON_H
#define SCENARIO_COMMON_H
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static inline double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline void sleep_us(long us) {
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&t, NULL);
}

/* Seconds to run: the first argument, or 4. */
static inline double run_seconds(int argc, char **argv) {
    return argc > 1 ? atof(argv[1]) : 4.0;
}

static inline void die(const char *what) {
    perror(what);
    exit(2);
}

static inline void name_self(const char *name) {
    pthread_setname_np(pthread_self(), name);
}

static inline void pin_self(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) die("sched_setaffinity");
}

static inline pthread_t spawn(void *(*run)(void *), void *arg) {
    pthread_t thread;
    if ((errno = pthread_create(&thread, NULL, run, arg)) != 0) die("pthread_create");
    return thread;
}

/* About `rounds` nanoseconds of arithmetic that no compiler removes. */
static inline uint64_t mix(uint64_t x, long rounds) {
    for (long i = 0; i < rounds; i++) x = (x ^ (x >> 27)) * 0x9e3779b97f4a7c15u + (uint64_t)i;
    return x;
}
#endif
