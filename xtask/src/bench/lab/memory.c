/* A chase through memory, by hand: what `holdup lab run memory` should agree with. Prints SERIES, PLACE, NANOSECONDS. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct line { struct line *next; char rest[56]; };

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static struct line *follow(struct line *at, long loads) {
    while (loads--) at = at->next;
    return at;
}

static int by_size(const void *a, const void *b) {
    return (*(double *)a > *(double *)b) - (*(double *)a < *(double *)b);
}

int main(void) {
    static const long kib[] = {16, 256, 1024, 8192, 131072};
    for (unsigned k = 0; k < sizeof kib / sizeof *kib; k++) {
        long count = kib[k] * 1024 / 64;
        struct line *lines = aligned_alloc(64, count * 64), *at = lines;
        uint32_t *order = malloc(count * sizeof *order);
        uint64_t random = 88172645463325252u;
        for (long i = 0; i < count; i++) order[i] = i;
        for (long i = count - 1; i > 0; i--) { /* Sattolo: one cycle */
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            long j = random % i;
            uint32_t swap = order[i];
            order[i] = order[j], order[j] = swap;
        }
        for (long i = 0; i < count; i++) lines[i].next = &lines[order[i]];
        at = follow(at, count); /* warm: once around */
        double took[5];
        for (int turn = 0; turn < 5; turn++) {
            double begin = now_ns();
            at = follow(at, 2000000);
            took[turn] = (now_ns() - begin) / 2000000;
        }
        if (at == NULL) return 1;
        qsort(took, 5, sizeof *took, by_size);
        printf("this node\t%ld\t%.3f\n", kib[k], took[2]);
        free(lines), free(order);
    }
}
