// Threads that block in glibc below nested functions, one per kind of wait. Built without frame pointers.
#define _GNU_SOURCE
#include <alloca.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEEP __attribute__((noinline, noclone))
#define HERE __asm__ volatile("" ::: "memory")

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, held = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int pipes[2];

DEEP void lock_inner(void) { pthread_mutex_lock(&held); HERE; }
DEEP void lock_outer(int n) { char pad[300]; memset(pad, n, sizeof pad); HERE; lock_inner(); HERE; write(-1, pad, 1); }
static void *lock_thread(void *x) { lock_outer(3); HERE; return x; }

DEEP void cond_inner(void) { pthread_mutex_lock(&mutex); pthread_cond_wait(&cond, &mutex); HERE; }
DEEP void cond_outer(void) { cond_inner(); HERE; }
static void *cond_thread(void *x) { cond_outer(); HERE; return x; }

DEEP long read_inner(void) { char c; long n = read(pipes[0], &c, 1); HERE; return n; }
DEEP long read_outer(void) { long n = read_inner(); HERE; return n + 1; }
static void *read_thread(void *x) { read_outer(); HERE; return x; }

DEEP void sleep_inner(void) { struct timespec t = {1000, 0}; nanosleep(&t, NULL); HERE; }
DEEP void sleep_outer(void) { sleep_inner(); HERE; }
static void *sleep_thread(void *x) { sleep_outer(); HERE; return x; }

// A signal handler that blocks: its caller was interrupted, it made no call.
static void handler(int signal) { (void)signal; sleep_outer(); HERE; }
DEEP void signal_inner(void) { pthread_kill(pthread_self(), SIGUSR1); HERE; }
static void *signal_thread(void *x) { signal_inner(); HERE; return x; }

// An aligned local in a function with arguments on the stack and a variable frame: the CFA is itself in memory.
DEEP int realign_inner(int a, int b, int c, int d, int e, int f, int g, int n) {
    __attribute__((aligned(64))) char buffer[128];
    char *more = alloca(n);
    memset(more, a, n); memset(buffer, b + c + d + e + f + g, sizeof buffer);
    sleep_inner(); HERE;
    return more[n / 2] + buffer[7];
}
static void *realign_thread(void *x) { realign_inner(1, 2, 3, 4, 5, 6, 7, 200); HERE; return x; }

static void start(const char *name, void *(*run)(void *)) {
    pthread_t thread;
    pthread_create(&thread, NULL, run, NULL);
    pthread_setname_np(thread, name);
}

DEEP void wait_for_ever(void) { poll(NULL, 0, -1); HERE; }

int main(void) {
    pthread_mutex_lock(&held);
    if (pipe(pipes)) return 1;
    signal(SIGUSR1, handler);
    start("lock", lock_thread); start("cond", cond_thread); start("read", read_thread);
    start("sleep", sleep_thread); start("signal", signal_thread); start("realign", realign_thread);
    puts("ready"); fflush(stdout);
    wait_for_ever();
    return 0;
}
