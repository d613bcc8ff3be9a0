/* Six compilers register each unit under one mutex; a janitor holds that mutex for 0.4 s at a time while it
 * looks for a free slot in a bitmap, one word after another. FIXED: it scans before it takes the mutex. */
#include "units.h"

#ifndef COMPILERS
#define COMPILERS 6
#endif

#define WORDS (1 << 18)
#define SCANS 30
static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static uint64_t *bitmap;
static atomic_long to_compile, to_scan;
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

/* About 0.4 s. */
static long scan_often(void) {
    long zeros = 0;
    for (int i = 0; i < SCANS; i++) zeros += scan_free_bitmap(bitmap + i, WORDS - SCANS);
    return zeros;
}

static void *janitor(void *arg) {
    name_self("bitmap-janitor");
    while (next_unit(&to_scan)) {
#ifdef FIXED
        long zeros = scan_often();
        pthread_mutex_lock(&registry);
#else
        pthread_mutex_lock(&registry);
        long zeros = scan_often();
#endif
        found += zeros;
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
    while (next_unit(&to_compile)) {
        state = compile_unit(state);
        pthread_mutex_lock(&registry);
        registered += 1 + (long)(state & 1);
        pthread_mutex_unlock(&registry);
    }
    return NULL;
}

int main(int argc, char **argv) {
    plan(argc, argv);
    to_compile = units;
    to_scan = units / 1200;
    bitmap = malloc(WORDS * sizeof *bitmap);
    for (long i = 0; i < WORDS; i++) bitmap[i] = (uint64_t)i * 0x9e3779b97f4a7c15u;
    pthread_t threads[COMPILERS + 1];
    for (long i = 0; i < COMPILERS; i++) threads[i] = spawn(compiler, (void *)(i + 1));
    threads[COMPILERS] = spawn(janitor, NULL);
    for (int i = 0; i <= COMPILERS; i++) pthread_join(threads[i], NULL);
    printf("%ld registered, %ld found\n", registered, found);
    return 0;
}
