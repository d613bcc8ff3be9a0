/* For scenarios that come in pairs: work of a fixed size, so that two builds can be compared by their time. */
#ifndef SCENARIO_UNITS_H
#define SCENARIO_UNITS_H
#include "common.h"
#include <stdatomic.h>

static double stop_at;
static long units;

/* Arguments: the seconds to run (4); or, as the second, the units of work to do however long they take. */
static inline void plan(int argc, char **argv) {
    stop_at = now_s() + run_seconds(argc, argv);
    units = argc > 2 ? atol(argv[2]) : 0;
}

/* Takes one of the units `left`, or any as long as there is time. 0: the work is done. */
static inline int next_unit(atomic_long *left) {
    return units ? atomic_fetch_sub(left, 1) > 0 : now_s() < stop_at;
}

/* Units of work of a program that knows no seconds: the first argument, or `otherwise`. */
static inline long unit_argument(int argc, char **argv, long otherwise) {
    return argc > 1 ? atol(argv[1]) : otherwise;
}
#endif
