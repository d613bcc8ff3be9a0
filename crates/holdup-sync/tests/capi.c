#include "holdup_sync.h"

#include <pthread.h>
#include <stdio.h>

enum { THREADS = 4, ADDS = 100000 };

static holdup_percpu_counter *percpu;
static holdup_striped_counter *striped;

static void *work(void *unused) {
    for (int i = 0; i < ADDS; i++) {
        holdup_percpu_add(percpu, 2);
        holdup_striped_add(striped, 3);
    }
    return unused;
}

int main(void) {
    percpu = holdup_percpu_new();
    striped = holdup_striped_new();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, NULL);
    uint64_t drained = holdup_percpu_drain(percpu);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    drained += holdup_percpu_drain(percpu);
    bool right = drained == 2 * THREADS * ADDS && holdup_percpu_sum(percpu) == 0 &&
                 holdup_striped_sum(striped) == 3 * THREADS * ADDS && holdup_striped_drain(striped) == 3 * THREADS * ADDS;
    printf("%s, per CPU: %d\n", right ? "all there" : "some lost", holdup_percpu_is_per_cpu(percpu));
    holdup_percpu_free(percpu);
    holdup_striped_free(striped);
    holdup_striped_free(NULL);
    return right ? 0 : 1;
}
