#include <stdlib.h>
static inline __attribute__((always_inline)) int innermost(volatile int *p) {
    return *p * 3; /* line 3 */
}
static inline __attribute__((always_inline)) int middle(volatile int *p) {
    return innermost(p) + 1; /* line 6 */
}
__attribute__((noinline)) int outer(volatile int *p) {
    return middle(p) ^ 5; /* line 9 */
}
int main(int argc, char **argv) {
    (void)argv;
    volatile int x = argc;
    return outer(&x);
}
