/* 4 threads read files the mmap way: map, touch, unmap */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <string.h>
static int reuse;
static void *reader(void *rounds) {
    enum { SIZE = 256 << 10 };
    char *kept = reuse ? mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : 0;
    volatile unsigned sum = 0;
    for (long i = 0; i < (long)rounds; i++) {
        char *p = kept ? kept : mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (int k = 0; k < SIZE; k += 4096) p[k] = k;
        if (!kept) munmap(p, SIZE);
    }
    return 0;
}
int main(int argc, char **argv) {
    pthread_t t[4];
    reuse = argc > 2;
    for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, reader, (void *)atol(argv[1]));
    for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
}
