/* A snapshotter forks a process with a large heap over and over: while the kernel copies its page tables, every
 * other thread that touches a new page or maps memory waits for the address space's lock. */
#include "common.h"
#include <sys/mman.h>
#include <sys/wait.h>

#define HEAP (768UL << 20)
static double stop_at;
static long snapshots, mappings;

static NOINLINE void take_snapshot(void) {
    pid_t child = fork();
    if (child == 0) _exit(0);
    if (child < 0) die("fork");
    snapshots++;
    waitpid(child, NULL, 0);
}

static void *snapshotter(void *arg) {
    name_self("snapshotter");
    while (now_s() < stop_at) take_snapshot();
    return arg;
}

static NOINLINE void *allocator(void *arg) {
    name_self("allocator");
    while (now_s() < stop_at) {
        char *p = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) die("mmap");
        for (int i = 0; i < 1 << 16; i += 4096) p[i] = (char)i;
        munmap(p, 1 << 16);
        __atomic_fetch_add(&mappings, 1, __ATOMIC_RELAXED);
        mix(1, 20000);
    }
    return arg;
}

int main(int argc, char **argv) {
    char *heap = mmap(NULL, HEAP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (heap == MAP_FAILED) die("mmap");
    madvise(heap, HEAP, MADV_NOHUGEPAGE);
    for (unsigned long i = 0; i < HEAP; i += 4096) heap[i] = 1;
    stop_at = now_s() + run_seconds(argc, argv);
    pthread_t threads[5];
    for (int i = 0; i < 4; i++) threads[i] = spawn(allocator, NULL);
    threads[4] = spawn(snapshotter, NULL);
    for (int i = 0; i < 5; i++) pthread_join(threads[i], NULL);
    printf("%ld snapshots, %ld mappings\n", snapshots, mappings);
    return 0;
}
