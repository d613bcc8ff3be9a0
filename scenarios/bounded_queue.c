/* Three producers, a queue of eight places, and one consumer that is slower than any of them. FIXED: two consumers. */
#include "units.h"

#ifdef FIXED
#define CONSUMERS 2
#else
#define CONSUMERS 1
#endif
#define PLACES 8
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;
static uint64_t places[PLACES];
static long head, tail, producing = 3;
static atomic_long to_produce;
static uint64_t blocks[CONSUMERS][2048];

static NOINLINE void compress_block(uint64_t *b, uint64_t seed) {
    for (int round = 0; round < 1500; round++)
        for (int i = 1; i < 2048; i++) b[i] = b[i] * 31 + (b[i - 1] ^ seed);
}

static void *consumer(void *arg) {
    uint64_t *block = blocks[(intptr_t)arg];
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
    pthread_cond_signal(&not_empty); /* the other consumer, if there is one */
    pthread_mutex_unlock(&queue_lock);
    return arg;
}

static NOINLINE uint64_t read_input(uint64_t x) { return mix(x, 300000); }

static void *producer(void *arg) {
    uint64_t x = (uint64_t)(uintptr_t)arg;
    name_self("producer");
    while (next_unit(&to_produce)) {
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
    plan(argc, argv);
    to_produce = units;
    pthread_t threads[3 + CONSUMERS];
    for (long i = 0; i < 3; i++) threads[i] = spawn(producer, (void *)(i + 1));
    for (long i = 0; i < CONSUMERS; i++) threads[3 + i] = spawn(consumer, (void *)i);
    for (int i = 0; i < 3 + CONSUMERS; i++) pthread_join(threads[i], NULL);
    return 0;
}
