/* Two threads render rows of a picture whose rows cost more towards its end. Each has its half, and the first waits at
 * the barrier for the second. FIXED: each takes the next row that is left. imbalance [FRAMES] */
#include "units.h"

#define ROWS 200
static pthread_barrier_t frame_done;
static atomic_long next_row;
static long frames;
static uint64_t picture[ROWS];

static NOINLINE void render_row(long row) { picture[row] = mix(picture[row], 1500 * (row < ROWS / 2 ? row : 6 * row)); }

static void *renderer(void *arg) {
    long half = (long)(intptr_t)arg;
    name_self(half ? "render-bottom" : "render-top");
    for (long frame = 0; frame < frames; frame++) {
#ifdef FIXED
        for (long row; (row = atomic_fetch_add(&next_row, 1)) < ROWS;) render_row(row);
#else
        for (long row = half * ROWS / 2; row < (half + 1) * ROWS / 2; row++) render_row(row);
#endif
        pthread_barrier_wait(&frame_done);
        if (half == 0) next_row = 0;
        pthread_barrier_wait(&frame_done);
    }
    return NULL;
}

int main(int argc, char **argv) {
    frames = unit_argument(argc, argv, 10);
    pthread_barrier_init(&frame_done, NULL, 2);
    pthread_t a = spawn(renderer, (void *)0), b = spawn(renderer, (void *)1);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("%ld frames, %llx\n", frames, (unsigned long long)picture[ROWS - 1]);
    return 0;
}
