/* An unrelated CPU hog to run beside a scenario: hog THREADS SECONDS. */
#include "common.h"

static double stop_at;

static NOINLINE void *burn_for_nothing(void *arg) {
    volatile uint64_t x = (uint64_t)(uintptr_t)arg;
    name_self("hog");
    while (now_s() < stop_at)
        for (int i = 0; i < 100000; i++) x = x * 6364136223846793005u + 1;
    return NULL;
}

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 1;
    stop_at = now_s() + (argc > 2 ? atof(argv[2]) : 5.0);
    pthread_t threads[256];
    if (n < 1 || n > 256) return 2;
    for (long i = 0; i < n; i++) threads[i] = spawn(burn_for_nothing, (void *)i);
    for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
    return 0;
}
