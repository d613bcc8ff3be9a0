#include <string.h>
#define DEEP __attribute__((noinline, noclone))
volatile int flag = 1, word;
DEEP void spin_wait(volatile int *f) { while (!*f) __builtin_ia32_pause(); }
DEEP void spin_bare(volatile int *f) { while (!*f) {} }
DEEP void spin_lock(int *l) {
    for (;;) {
        int zero = 0;
        if (__atomic_compare_exchange_n(l, &zero, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
        __builtin_ia32_pause();
    }
}
DEEP int summing(const int *p, int n) { int s = 0; for (int i = 0; i < n; i++) s = s * 3 + p[i]; return s; }
DEEP void filling(volatile int *p, int n) { for (int i = 0; i < n; i++) p[i] = i; }
DEEP void nested(volatile int *f, volatile int *n) {
    for (int i = 0; i < 1000; i++) {
        while (*f < i) __builtin_ia32_pause();
        *n += i;
    }
}
int main(int argc, char **argv) {
    int l = 0, a[16];
    memset(a, argc, sizeof a);
    (void)argv;
    spin_wait(&flag); spin_bare(&flag); spin_lock(&l); filling(a, 16);
    flag = 1000; nested(&flag, &word);
    return summing(a, 16) & 1;
}
