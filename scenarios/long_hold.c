/* Six compilers register each unit under one mutex; a janitor holds that mutex for 0.4 s at a time while it
 * looks for a free slot in a bitmap, one word after another. */
#include "common.h"

#define WORDS (1 << 18)
static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static uint64_t *bitmap;
static double stop_at;
static long registered, found;

static NOINLINE long scan_free_bitmap(const uint64_t *bits, long words) {
    long zeros = 0;
    for (long i = 0; i < words; i++) {
        uint64_t w = bits[i];
        while (w != UINT64_MAX) { /* one bit after another: the planted slowness */
            zeros++;
            w |= w + 1;
        }
    }
    return zeros;
}

static void *janitor(void *arg) {
    name_self("bitmap-janitor");
    while (now_s() < stop_at) {
        pthread_mutex_lock(&registry);
        double until = now_s() + 0.4;
        while (now_s() < until) found += scan_free_bitmap(bitmap, WORDS / 64);
        pthread_mutex_unlock(&registry);
        sleep_us(30000);
    }
    return arg;
}

static NOINLINE uint64_t compile_unit(uint64_t seed) { return mix(seed, 300000); }

static void *compiler(void *arg) {
    uint64_t state = (uint64_t)(uintptr_t)arg;
    char name[16];
    snprintf(name, sizeof name, "compiler-%d", (int)(uintptr_t)arg);
    name_self(name);
    while (now_s() < stop_at) {
        state = compile_unit(state);
        pthread_mutex_lock(&registry);
        registered += 1 + (long)(state & 1);
        pthread_mutex_unlock(&registry);
    }
    return NULL;
}

int main(int argc, char **argv) {
    stop_at = now_s() + run_seconds(argc, argv);
    bitmap = malloc(WORDS * sizeof *bitmap);
    for (long i = 0; i < WORDS; i++) bitmap[i] = (uint64_t)i * 0x9e3779b97f4a7c15u;
    pthread_t threads[7];
    for (long i = 0; i < 6; i++) threads[i] = spawn(compiler, (void *)(i + 1));
    threads[6] = spawn(janitor, NULL);
    for (int i = 0; i < 7; i++) pthread_join(threads[i], NULL);
    printf("%ld registered, %ld found\n", registered, found);
    return 0;
}
