/* y = A x repeated, CSR, rows of very uneven length (a web graph: few hubs) */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
static uint64_t seed = 88172645463325252ull;
static uint32_t rnd(void) { seed ^= seed << 13; seed ^= seed >> 7; seed ^= seed << 17; return seed >> 16; }
static void multiply(int n, const int *row, const int *column, const double *value, const double *x, double *y) {
#pragma omp parallel for schedule(runtime)
    for (int i = 0; i < n; i++) {
        double sum = 0;
        for (int k = row[i]; k < row[i + 1]; k++) sum += value[k] * x[column[k]];
        y[i] = sum;
    }
}
int main(int argc, char **argv) {
    int n = 200000, rounds = argc > 1 ? atoi(argv[1]) : 200;
    int *row = malloc((n + 1) * sizeof *row);
    row[0] = 0;
    for (int i = 0; i < n; i++) row[i + 1] = row[i] + (i < n / 50 ? 1500 : 4); /* hubs first */
    int m = row[n];
    int *column = malloc(m * sizeof *column);
    double *value = malloc(m * sizeof *value), *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);
    for (int k = 0; k < m; k++) { column[k] = rnd() % n; value[k] = (rnd() % 100) / 1e6; }
    for (int i = 0; i < n; i++) x[i] = 1;
    for (int r = 0; r < rounds; r++) { multiply(n, row, column, value, x, y); double *t = x; x = y; y = t; }
    printf("%g\n", x[0]);
}
