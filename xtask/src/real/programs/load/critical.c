/* Threads add up what they compute under one critical section, or "before" it. Prints the time that they waited for it. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double total;

__attribute__((noinline)) static double weigh(int i) {
    double sum = 0;
    for (int k = 1; k < 20000; k++) sum += 1.0 / (double)(k + i % 7);
    return sum;
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 20000;
    int before = argc > 2 && !strcmp(argv[2], "before");
    double waited = 0;
#pragma omp parallel for num_threads(4) schedule(dynamic, 16) reduction(+ : waited)
    for (int i = 0; i < rounds; i++) {
        double weight = before ? weigh(i) : 0;
        double begun = omp_get_wtime();
#pragma omp critical
        {
            waited += omp_get_wtime() - begun;
            total += before ? weight : weigh(i);
        }
    }
    printf("%g: waited %.2f s for the critical section\n", total, waited);
    return 0;
}
