/* OpenMP threads that wait actively: the rows of one thread take longer, and the other spins at the loop's end until
 * they are done. openmp_active [SECONDS] */
#include "common.h"

#define ROWS 8

static NOINLINE uint64_t blur_row(int row) { return mix((uint64_t)row, row < ROWS / 2 ? 2000000 : 200000); }

int main(int argc, char **argv) {
    /* The runtime reads it before main() begins. */
    if (!getenv("OMP_WAIT_POLICY")) {
        setenv("OMP_WAIT_POLICY", "active", 1);
        setenv("OMP_NUM_THREADS", "2", 1);
        execv("/proc/self/exe", argv);
    }
    double stop_at = now_s() + run_seconds(argc, argv);
    uint64_t image = 0;
    while (now_s() < stop_at) {
#pragma omp parallel for schedule(static) reduction(^ : image)
        for (int row = 0; row < ROWS; row++) image ^= blur_row(row);
    }
    printf("%llx\n", (unsigned long long)image);
    return 0;
}
