/*
 * Counters that many threads add to without getting into each other's way.
 *
 *   cargo rustc --release -p holdup-sync --features capi --crate-type staticlib
 *   cc program.c -I crates/holdup-sync/include target/release/libholdup_sync.a -lpthread -ldl -lm
 *
 * All functions may be called by any thread at any time, except that a counter must not be used during and after its
 * holdup_*_free. Sums wrap at 2^64.
 */
#ifndef HOLDUP_SYNC_H
#define HOLDUP_SYNC_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A cell for each CPU, added to by restartable sequences: about the cost of a plain add, at any number of threads.
 * 128 bytes for each possible CPU, from the first add. For a handful of hot counters. */
typedef struct holdup_percpu_counter holdup_percpu_counter;

/* A counter at 0. Never NULL: without memory the program is aborted. */
holdup_percpu_counter *holdup_percpu_new(void);
/* Adds n. Orders nothing. */
void holdup_percpu_add(const holdup_percpu_counter *counter, uint64_t n);
/* What has been added and not drained; exact about adds that happened before. */
uint64_t holdup_percpu_sum(const holdup_percpu_counter *counter);
/* Takes the sum and leaves 0; each add is in the result of exactly one drain. */
uint64_t holdup_percpu_drain(const holdup_percpu_counter *counter);
/* Whether restartable sequences are used here (Linux 4.18, glibc 2.35, x86-64 or aarch64); once this has said so,
 * holdup_percpu_add may be called in signal handlers. Else it is a striped counter. */
bool holdup_percpu_is_per_cpu(const holdup_percpu_counter *counter);
/* Frees the counter; NULL is none. */
void holdup_percpu_free(holdup_percpu_counter *counter);

/* One word until threads collide on it, then cells of their own lines. 24 bytes while cold. For many counters. */
typedef struct holdup_striped_counter holdup_striped_counter;

/* As the functions above. */
holdup_striped_counter *holdup_striped_new(void);
void holdup_striped_add(const holdup_striped_counter *counter, uint64_t n);
uint64_t holdup_striped_sum(const holdup_striped_counter *counter);
uint64_t holdup_striped_drain(const holdup_striped_counter *counter);
void holdup_striped_free(holdup_striped_counter *counter);

#ifdef __cplusplus
}
#endif

#endif
