/* Loops that wait, and loops that look like it and work. */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#define DEEP __attribute__((noinline, noclone))
struct node { struct node *next; int value; };

/* wait */
DEEP void waits_look(volatile int *f) { while (!*f) {} }
DEEP void waits_bit(volatile unsigned *f) { while (*f & 4) {} }
DEEP int waits_limited(volatile int *f) { for (int i = 0; i < 1000; i++) if (*f == 7) return 1; return 0; }
DEEP void waits_ticket(atomic_uint *now, unsigned mine) { while (atomic_load(now) != mine) {} }
DEEP void waits_exchange(atomic_int *l) { while (atomic_exchange(l, 1)) {} }
DEEP void waits_compare(atomic_int *l) { int zero; do zero = 0; while (!atomic_compare_exchange_weak(l, &zero, 1)); }
DEEP void waits_pausing(atomic_int *l) {
    while (atomic_exchange(l, 1)) while (atomic_load_explicit(l, memory_order_relaxed)) __builtin_ia32_pause();
}

/* work */
DEEP size_t works_strlen(const char *s) { size_t n = 0; while (s[n]) n++; return n; }
DEEP const struct node *works_list(const struct node *n, int v) { while (n && n->value != v) n = n->next; return n; }
DEEP size_t works_bitmap(const uint64_t *words, size_t from) { while (words[from] == ~0ull) from++; return from; }
DEEP uint32_t works_hash(const unsigned char *p, const unsigned char *end) { uint32_t h = 1; while (p != end) h = h * 31 + *p++; return h; }
DEEP int works_compare(const char *a, const char *b) { while (*a && *a == *b) a++, b++; return *a - *b; }
DEEP long works_search(const long *sorted, long low, long high, long v) {
    while (low < high) { long middle = (low + high) / 2; if (sorted[middle] < v) low = middle + 1; else high = middle; }
    return low;
}
DEEP void works_adding(atomic_long *sum, const long *add) {
    long old = *sum; while (!atomic_compare_exchange_weak(sum, &old, old + *add)) {}
}
DEEP void works_pushing(struct node *_Atomic *head, struct node *n) {
    n->next = *head; while (!atomic_compare_exchange_weak(head, &n->next, n)) {}
}
DEEP void works_counting(atomic_long *n, long times) { for (long i = 0; i < times; i++) atomic_fetch_add(n, 1); }
DEEP unsigned works_until(volatile int *stop, unsigned x) { while (!*stop) x = x * 1664525 + 1013904223; return x; }
DEEP double works_sum(const volatile double *step, int n) { double s = 0; for (int i = 0; i < n; i++) s += *step; return s; }

int main(void) { return 0; }
