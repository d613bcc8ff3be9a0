#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
enum { LIVE = 512 };
static void *worker(void *rounds) {
    void *live[LIVE] = {0};
    unsigned s = (unsigned)(size_t)&live;
    for (long i = 0; i < (long)rounds; i++) {
        s = s * 1664525u + 1013904223u;
        unsigned at = (s >> 10) % LIVE;
        free(live[at]);
        size_t size = 1200 + (s >> 20) % 3000; /* beyond the thread's cache */
        live[at] = malloc(size);
        memset(live[at], 1, 64);
    }
    for (int i = 0; i < LIVE; i++) free(live[i]);
    return NULL;
}
int main(int argc, char **argv) {
    pthread_t t[8];
    for (int i = 0; i < 8; i++) pthread_create(&t[i], NULL, worker, (void *)(argc > 1 ? atol(argv[1]) : 2000000));
    for (int i = 0; i < 8; i++) pthread_join(t[i], NULL);
}
