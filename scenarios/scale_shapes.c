/* For `holdup scale`: N threads share a fixed number of items. One thing keeps them from scaling, which one is chosen when it
 * is built: SERIAL, BARRIER, SPINLOCK, SHORT_LOCK, COUNTER, FALSE_SHARING, MEMORY_MAP, or none. scale_shapes N [PERCENT] */
#include "common.h"
#include <stdatomic.h>
#include <sys/mman.h>

enum { MOST = 256, STEPS = 400 };
static long threads, share;
static volatile uint64_t sink;

static NOINLINE __attribute__((unused)) uint64_t compute_item(uint64_t seed) {
    return mix(seed, 50000);
}

#if defined SERIAL
static NOINLINE void load_model(void) {
    for (long i = 0; i < 20000; i++) sink += compute_item((uint64_t)i);
}
static void begin(void) { load_model(); }
static void item(long id, long i) { sink = compute_item((uint64_t)(id + i)); }

#elif defined BARRIER
static pthread_barrier_t step;
static NOINLINE void write_checkpoint(void) {
    for (long i = 0; i < 24; i++) sink += compute_item((uint64_t)i);
}
static void begin(void) { pthread_barrier_init(&step, NULL, (unsigned)threads); }
static void item(long id, long i) {
    sink = compute_item((uint64_t)i);
    if (i % (share / STEPS)) return;
    pthread_barrier_wait(&step);
    if (id == 0) write_checkpoint();
    pthread_barrier_wait(&step);
}

#elif defined SPINLOCK
static atomic_int taken;
static uint64_t total;
static NOINLINE void spin_acquire(void) {
    while (atomic_exchange(&taken, 1))
        while (atomic_load_explicit(&taken, memory_order_relaxed)) __builtin_ia32_pause();
}
static void begin(void) {}
static void item(long id, long i) {
    sink = mix((uint64_t)(id + i), 20000);
    spin_acquire();
    total += mix((uint64_t)i, 30000);
    atomic_store(&taken, 0);
}

#elif defined SHORT_LOCK
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t state = 88172645463325252u;
static NOINLINE uint64_t next_random(void) {
    pthread_mutex_lock(&lock);
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    uint64_t next = state;
    pthread_mutex_unlock(&lock);
    return next;
}
static void begin(void) {}
static void item(long id, long i) {
    uint64_t sum = (uint64_t)(id + i);
    for (int k = 0; k < 1000; k++) sum += next_random();
    sink = sum;
}

#elif defined COUNTER
static atomic_long served;
static NOINLINE void count_request(void) { atomic_fetch_add(&served, 1); }
static void begin(void) {}
static void item(long id, long i) {
    (void)id, (void)i;
    for (int k = 0; k < 5000; k++) count_request();
}

#elif defined FALSE_SHARING
static volatile long hits[MOST];
static NOINLINE void note_hits(long id) {
    for (int k = 0; k < 20000; k++) hits[id]++;
}
static void begin(void) {}
static void item(long id, long i) { (void)i, note_hits(id); }

#elif defined MEMORY_MAP
static NOINLINE void fill_scratch(void) {
    enum { BYTES = 1 << 17 };
    char *page = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) die("mmap");
    memset(page, 1, BYTES);
    munmap(page, BYTES);
    sink += 1;
}
static void begin(void) {}
static void item(long id, long i) { (void)id, (void)i, fill_scratch(); }

#else
static void begin(void) {}
static void item(long id, long i) { sink = compute_item((uint64_t)(id + i)); }
#endif

static void *work(void *arg) {
    for (long i = 0; i < share; i++) item((long)(intptr_t)arg, i);
    return NULL;
}

int main(int argc, char **argv) {
    threads = argc > 1 ? atol(argv[1]) : 2;
    if (threads < 1 || threads > MOST) return fprintf(stderr, "scale_shapes: 1 to %d threads\n", MOST), 2;
    share = 40000 * (argc > 2 ? atol(argv[2]) : 100) / 100 / threads;
    begin();
    pthread_t all[MOST];
    for (long id = 0; id < threads; id++) all[id] = spawn(work, (void *)(intptr_t)id);
    for (long id = 0; id < threads; id++) pthread_join(all[id], NULL);
    printf("items: %ld\n", share * threads);
    return 0;
}
