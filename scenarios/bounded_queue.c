/* Three producers, a queue of eight places, and one consumer that is slower than any of them. */
#include "common.h"

#define PLACES 8
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;
static uint64_t places[PLACES];
static long head, tail, producing = 3;
static double stop_at;
static uint64_t block[2048];

static NOINLINE void compress_block(uint64_t *b, uint64_t seed) {
    for (int round = 0; round < 1500; round++)
        for (int i = 1; i < 2048; i++) b[i] = b[i] * 31 + (b[i - 1] ^ seed);
}

static void *consumer(void *arg) {
    name_self("compressor");
    for (;;) {
        pthread_mutex_lock(&queue_lock);
        while (head == tail && producing > 0) pthread_cond_wait(&not_empty, &queue_lock);
        if (head == tail) break;
        uint64_t item = places[tail++ % PLACES];
        pthread_cond_signal(&not_full);
        pthread_mutex_unlock(&queue_lock);
        compress_block(block, item);
    }
    pthread_mutex_unlock(&queue_lock);
    return arg;
}

static NOINLINE uint64_t read_input(uint64_t x) { return mix(x, 300000); }

static void *producer(void *arg) {
    uint64_t x = (uint64_t)(uintptr_t)arg;
    name_self("producer");
    while (now_s() < stop_at) {
        x = read_input(x);
        pthread_mutex_lock(&queue_lock);
        while (head - tail == PLACES) pthread_cond_wait(&not_full, &queue_lock);
        places[head++ % PLACES] = x;
        pthread_cond_signal(&not_empty);
        pthread_mutex_unlock(&queue_lock);
    }
    pthread_mutex_lock(&queue_lock);
    producing--;
    pthread_cond_signal(&not_empty);
    pthread_mutex_unlock(&queue_lock);
    return NULL;
}

int main(int argc, char **argv) {
    stop_at = now_s() + run_seconds(argc, argv);
    pthread_t threads[4];
    for (long i = 0; i < 3; i++) threads[i] = spawn(producer, (void *)(i + 1));
    threads[3] = spawn(consumer, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    return 0;
}
