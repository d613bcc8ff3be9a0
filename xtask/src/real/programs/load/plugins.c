/* Four threads open and close plugins for ARG seconds; prints how many. With a second argument they open them once. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char *plugin[4] = {"libcrypto.so.3", "libstdc++.so.6", "libsqlite3.so.0", "libssl.so.3"};
static double until;
static int keep;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void *worker(void *at) {
    long opened = 0;
    if (keep) dlopen(plugin[(long)at], RTLD_NOW);
    for (; now() < until; opened++) {
        void *handle = dlopen(plugin[(long)at], RTLD_NOW);
        if (!handle) {
            fprintf(stderr, "%s\n", dlerror());
            exit(1);
        }
        dlclose(handle);
    }
    return (void *)opened;
}

int main(int argc, char **argv) {
    pthread_t thread[4];
    until = now() + atof(argv[1]);
    keep = argc > 2;
    long opened = 0;
    for (long i = 0; i < 4; i++) pthread_create(&thread[i], 0, worker, (void *)i);
    for (int i = 0; i < 4; i++) {
        void *count;
        pthread_join(thread[i], &count);
        opened += (long)count;
    }
    printf("opened %ld\n", opened);
}
