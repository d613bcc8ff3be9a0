/* Loops with an idiom that is worth naming, and after each its neighbour that has none. */
#include <stddef.h>
#include <stdint.h>

#define LOOP __attribute__((noinline, noipa))

/* --- one element after another, until one is found --- */
LOOP size_t find_word(const uint32_t *a, size_t n, uint32_t x) {
    size_t i = 0;
    for (; i < n; i++)
        if (a[i] == x) break;
    return i;
}
LOOP size_t find_full(const uint64_t *bits, size_t n) {
    size_t i = 0;
    while (i < n && bits[i] == UINT64_MAX) i++;
    return i;
}
LOOP uint64_t sum_words(const uint64_t *a, size_t n) {
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += a[i];
    return sum;
}
/* Leaves early, but what it has summed goes from turn to turn. */
LOOP uint64_t sum_until(const uint64_t *a, size_t n) {
    uint64_t sum = 0;
    for (size_t i = 0; i < n && a[i] != 0; i++) sum = sum * 31 + a[i];
    return sum;
}
/* Takes the elements out as it looks at them. */
LOOP size_t clear_until(uint64_t *a, size_t n) {
    size_t i = 0;
    for (; i < n && a[i] != 0; i++) a[i] = 7;
    return i;
}
/* Looks at all of them, and keeps a count. */
LOOP size_t count_words(const uint32_t *a, size_t n, uint32_t x) {
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        if (a[i] == x) found++;
    return found;
}
/* Waits at one place. */
LOOP void wait_for(volatile uint32_t *a, uint32_t x) {
    while (*a != x) {}
}
LOOP __attribute__((optimize("no-tree-loop-distribute-patterns"))) size_t length_of(const char *s) {
    size_t n = 0;
    while (s[n]) n++;
    return n;
}
struct item { uint64_t key, value[15]; };

/* --- division by what does not change, by what does, and by a constant --- */
LOOP uint64_t scatter(const uint64_t *a, size_t n, uint64_t buckets) {
    uint64_t x = 0;
    for (size_t i = 0; i < n; i++) x ^= a[i] % buckets;
    return x;
}
LOOP uint64_t ratios(const uint64_t *a, const uint64_t *b, size_t n) {
    uint64_t x = 0;
    for (size_t i = 0; i < n; i++) x ^= a[i] / b[i];
    return x;
}
LOOP uint64_t scatter_constant(const uint64_t *a, size_t n) {
    uint64_t x = 0;
    for (size_t i = 0; i < n; i++) x ^= a[i] % 1021;
    return x;
}

/* --- each address is what was read last --- */
struct node { struct node *next; uint64_t value; };
LOOP uint64_t sum_list(const struct node *n) {
    uint64_t sum = 0;
    for (; n; n = n->next) sum += n->value;
    return sum;
}
LOOP size_t follow_index(const uint32_t *next, size_t steps) {
    size_t at = 0;
    for (size_t i = 0; i < steps; i++) at = next[at];
    return at;
}
struct tree { struct tree *child[2]; uint64_t key; };
LOOP const struct tree *descend(const struct tree *t, uint64_t key) {
    while (t && t->key != key) t = t->child[key > t->key];
    return t;
}
struct both { struct both *next, *previous; uint64_t length; };
LOOP const struct both *walk_either(const struct both *n, uint64_t at, int back) {
    uint64_t passed = 0;
    while (n && passed + n->length <= at) {
        passed += n->length;
        n = back ? n->previous : n->next;
    }
    return n;
}
/* It begins anew every now and then. */
LOOP uint64_t walk_again(const struct both *start, size_t n) {
    uint64_t sum = 0;
    const struct both *one = start;
    for (size_t i = 0; i < n; i++) {
        sum += one->length;
        one = one->length > 3 ? one->next : start;
    }
    return sum;
}
/* The pointers lie in an array: nothing depends on what was read. */
LOOP uint64_t sum_pointers(const struct node **all, size_t n) {
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += all[i]->value;
    return sum;
}

/* --- one cache line per step --- */
LOOP uint64_t sum_keys(const struct item *a, size_t n) {
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += a[i].key;
    return sum;
}
LOOP uint64_t sum_column(const double *m, size_t rows) {
    double sum = 0;
    for (size_t i = 0; i < rows; i++) sum += m[i * 512];
    return (uint64_t)sum;
}
/* A line per step as well, but all of it is used. */
LOOP uint64_t sum_lines(const uint64_t *a, size_t n) {
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i += 8)
        sum += a[i] ^ a[i + 1] * a[i + 2] ^ a[i + 3] * a[i + 4] ^ a[i + 5] * a[i + 6] ^ a[i + 7];
    return sum;
}
typedef uint64_t wide __attribute__((vector_size(16)));
LOOP uint64_t sum_vectors(const wide *a, size_t n) {
    wide sum = {0, 0};
    for (size_t i = 0; i < n; i += 4) sum += a[i] ^ a[i + 1] * 3 ^ a[i + 2] ^ a[i + 3];
    return sum[0] + sum[1];
}

/* --- bytes copied one by one --- */
LOOP __attribute__((optimize("no-tree-loop-distribute-patterns"))) void copy_bytes(char *to, const char *from, size_t n) {
    for (size_t i = 0; i < n; i++) to[i] = from[i];
}
LOOP void upper_bytes(char *to, const char *from, size_t n) {
    for (size_t i = 0; i < n; i++) to[i] = (char)(from[i] ^ 0x20);
}
LOOP void translate_bytes(unsigned char *to, const unsigned char *from, const unsigned char *table, size_t n) {
    for (size_t i = 0; i < n; i++) to[i] = table[from[i]];
}

/* --- bits counted one by one --- */
LOOP int count_ones(uint64_t w) {
    int n = 0;
    while (w) {
        n++;
        w &= w - 1;
    }
    return n;
}
LOOP int count_zeros(uint64_t w) {
    int n = 0;
    while (w != UINT64_MAX) {
        n++;
        w |= w + 1;
    }
    return n;
}
/* Something is done for each. */
LOOP uint64_t each_one(uint64_t w, const uint64_t *weights) {
    uint64_t sum = 0;
    while (w) {
        sum += weights[__builtin_ctzll(w)];
        w &= w - 1;
    }
    return sum;
}
/* The word that remains counts, not how many turns it took. */
LOOP uint64_t mask_down(uint64_t w, uint64_t limit) {
    while (w > limit) w &= w - 1;
    return w;
}
/* A sum in memory, which others might read meanwhile. */
LOOP void count_in_place(volatile uint64_t *count, uint64_t times) {
    for (uint64_t i = 0; i < times; i++) *count += 1;
}
/* The same of one place after another. */
LOOP void count_each(volatile uint64_t *counts, uint64_t times) {
    for (uint64_t i = 0; i < times; i++) counts[i] += 1;
}

int main(void) { return 0; }
