/* A semaphore of one permit: an encoder keeps it for 0.3 s at a time. Beside a semaphore's word lies no owner. */
#include "common.h"
#include <semaphore.h>

static sem_t device;
static double stop_at;
static uint64_t frame[4096];

static NOINLINE void encode_frame(uint64_t *f, int n) {
    for (int i = 1; i < n; i++) f[i] = (f[i] << 5 | f[i] >> 59) + (f[i - 1] ^ (uint64_t)i);
}

static void *encoder(void *arg) {
    name_self("encoder");
    while (now_s() < stop_at) {
        sem_wait(&device);
        double until = now_s() + 0.3;
        while (now_s() < until) encode_frame(frame, 4096);
        sem_post(&device);
        sleep_us(20000);
    }
    return arg;
}

static void *client(void *arg) {
    uint64_t x = (uint64_t)(uintptr_t)arg;
    name_self("device-client");
    while (now_s() < stop_at) {
        x = mix(x, 300000);
        sem_wait(&device);
        frame[x & 4095] ^= x;
        sem_post(&device);
    }
    return NULL;
}

int main(int argc, char **argv) {
    stop_at = now_s() + run_seconds(argc, argv);
    sem_init(&device, 0, 1);
    pthread_t threads[5];
    for (long i = 0; i < 4; i++) threads[i] = spawn(client, (void *)(i + 1));
    threads[4] = spawn(encoder, NULL);
    for (int i = 0; i < 5; i++) pthread_join(threads[i], NULL);
    return 0;
}
