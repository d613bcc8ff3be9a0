/* Five readers of a configuration; a writer holds the rwlock for 0.3 s at a time while it reloads. FIXED: it loads
 * into a copy, and holds the lock while it copies that back. */
#include "units.h"

#ifndef READERS
#define READERS 5
#endif

static pthread_rwlock_t config_lock = PTHREAD_RWLOCK_INITIALIZER;
static atomic_long to_read, to_reload;
static uint64_t config[4096];
#define RELOADS 110000

static NOINLINE void reload_config(uint64_t *c, int n) {
    for (int i = 1; i < n; i++) c[i] = (c[i] << 5 | c[i] >> 59) + (c[i - 1] ^ (uint64_t)i);
}

/* About 0.3 s. */
static void reload_often(uint64_t *c) {
    for (int i = 0; i < RELOADS; i++) reload_config(c, 4096);
}

static void *config_writer(void *arg) {
    name_self("config-writer");
    while (next_unit(&to_reload)) {
#ifdef FIXED
        static uint64_t copy[4096];
        reload_often(copy);
        pthread_rwlock_wrlock(&config_lock);
        memcpy(config, copy, sizeof config);
#else
        pthread_rwlock_wrlock(&config_lock);
        reload_often(config);
#endif
        pthread_rwlock_unlock(&config_lock);
        sleep_us(20000);
    }
    return arg;
}

static void *reader(void *arg) {
    uint64_t x = (uint64_t)(uintptr_t)arg;
    name_self("config-reader");
    while (next_unit(&to_read)) {
        x = mix(x, 300000);
        pthread_rwlock_rdlock(&config_lock);
        x += config[x & 4095];
        pthread_rwlock_unlock(&config_lock);
    }
    return NULL;
}

int main(int argc, char **argv) {
    plan(argc, argv);
    to_read = units;
    to_reload = units / 900;
    pthread_t threads[READERS + 1];
    for (long i = 0; i < READERS; i++) threads[i] = spawn(reader, (void *)(i + 1));
    threads[READERS] = spawn(config_writer, NULL);
    for (int i = 0; i <= READERS; i++) pthread_join(threads[i], NULL);
    return 0;
}
