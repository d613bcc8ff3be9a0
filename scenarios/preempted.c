/* A lock's owner shares CPU 1 with three hog threads of another process: while others wait for the lock it is
 * runnable and does not run, and CPU 0 has nothing to do. */
#include "common.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static pthread_mutex_t ledger = PTHREAD_MUTEX_INITIALIZER;
static double stop_at;
static uint64_t accounts[4096];

static NOINLINE void *antagonist(void *arg) {
    volatile uint64_t x = 1;
    pin_self(1);
    while (now_s() < stop_at)
        for (int i = 0; i < 100000; i++) x = x * 6364136223846793005u + 1;
    return arg;
}

static NOINLINE void apply_ledger(uint64_t *a, long rounds) {
    for (long r = 0; r < rounds; r++)
        for (int i = 1; i < 4096; i++) a[i] = a[i] * 31 + a[i - 1];
}

static void *owner(void *arg) {
    name_self("ledger-owner");
    pin_self(1);
    while (now_s() < stop_at) {
        pthread_mutex_lock(&ledger);
        apply_ledger(accounts, 5000);
        pthread_mutex_unlock(&ledger);
        sleep_us(2000);
    }
    return arg;
}

static void *teller(void *arg) {
    uint64_t x = (uint64_t)(uintptr_t)arg;
    name_self("teller");
    while (now_s() < stop_at) {
        x = mix(x, 200000);
        pthread_mutex_lock(&ledger);
        accounts[x & 4095] += x;
        pthread_mutex_unlock(&ledger);
    }
    return NULL;
}

int main(int argc, char **argv) {
    stop_at = now_s() + run_seconds(argc, argv);
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
        fprintf(stderr, "needs two CPUs\n");
        return 2;
    }
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_NAME, "antagonist");
        pthread_t hogs[3];
        for (int i = 0; i < 3; i++) hogs[i] = spawn(antagonist, NULL);
        for (int i = 0; i < 3; i++) pthread_join(hogs[i], NULL);
        return 0;
    }
    pthread_t threads[5];
    threads[4] = spawn(owner, NULL);
    for (long i = 0; i < 4; i++) threads[i] = spawn(teller, (void *)(i + 1));
    for (int i = 0; i < 5; i++) pthread_join(threads[i], NULL);
    kill(child, SIGKILL);
    wait(NULL);
    return 0;
}
