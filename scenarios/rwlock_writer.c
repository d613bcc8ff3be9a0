/* Five readers of a configuration; a writer holds the rwlock for 0.3 s at a time while it reloads. */
#include "common.h"

static pthread_rwlock_t config_lock = PTHREAD_RWLOCK_INITIALIZER;
static double stop_at;
static uint64_t config[4096];

static NOINLINE void reload_config(uint64_t *c, int n) {
    for (int i = 1; i < n; i++) c[i] = (c[i] << 5 | c[i] >> 59) + (c[i - 1] ^ (uint64_t)i);
}

static void *config_writer(void *arg) {
    name_self("config-writer");
    while (now_s() < stop_at) {
        pthread_rwlock_wrlock(&config_lock);
        double until = now_s() + 0.3;
        while (now_s() < until) reload_config(config, 4096);
        pthread_rwlock_unlock(&config_lock);
        sleep_us(20000);
    }
    return arg;
}

static void *reader(void *arg) {
    uint64_t x = (uint64_t)(uintptr_t)arg;
    name_self("config-reader");
    while (now_s() < stop_at) {
        x = mix(x, 300000);
        pthread_rwlock_rdlock(&config_lock);
        x += config[x & 4095];
        pthread_rwlock_unlock(&config_lock);
    }
    return NULL;
}

int main(int argc, char **argv) {
    stop_at = now_s() + run_seconds(argc, argv);
    pthread_t threads[6];
    for (long i = 0; i < 5; i++) threads[i] = spawn(reader, (void *)(i + 1));
    threads[5] = spawn(config_writer, NULL);
    for (int i = 0; i < 6; i++) pthread_join(threads[i], NULL);
    return 0;
}
