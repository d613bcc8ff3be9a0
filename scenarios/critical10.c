/* Four threads whose work is all but a section under one mutex, about 20 us long. Built with -DLONGER=10 the loop of
 * the section does exactly 10 % more rounds. critical10 [SECTIONS] */
#include "units.h"

#ifndef LONGER
#define LONGER 0
#endif
#define THREADS 4
#define ROUNDS (10000 / 100 * (100 + LONGER))

static pthread_mutex_t account_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t balance;
static long left;

static NOINLINE void post_entry(void) { balance = mix(balance, ROUNDS); }

static NOINLINE uint64_t prepare_entry(uint64_t x) { return mix(x, 500); }

static void *clerk(void *arg) {
    uint64_t x = (uint64_t)(uintptr_t)arg;
    name_self("clerk");
    for (int more = 1; more;) {
        x = prepare_entry(x);
        pthread_mutex_lock(&account_lock);
        if ((more = left-- > 0)) post_entry();
        pthread_mutex_unlock(&account_lock);
    }
    return (void *)(uintptr_t)x;
}

int main(int argc, char **argv) {
    left = unit_argument(argc, argv, 120000);
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) threads[i] = spawn(clerk, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    printf("balance %llx\n", (unsigned long long)balance);
    return 0;
}
