/* Two threads route messages, and wait for nothing: find_route() goes through all routes until one matches. FIXED: it
 * looks into a hash table. lookup [MESSAGES] */
#include "units.h"

#define ROUTES 1024
static struct route {
    uint64_t key;
    long hops;
} routes[2 * ROUTES];
static atomic_long left;

static uint64_t route_key(uint64_t n) { return mix(n + 1, 3) | 1; }
static uint64_t home(uint64_t key) { return (key >> 20) % (2 * ROUTES); }

#ifdef FIXED
static void add_route(uint64_t key, long hops) {
    uint64_t at = home(key);
    while (routes[at].key) at = (at + 1) % (2 * ROUTES);
    routes[at] = (struct route){key, hops};
}

static NOINLINE long find_route(uint64_t key) {
    uint64_t at = home(key);
    while (routes[at].key != key) at = (at + 1) % (2 * ROUTES);
    return routes[at].hops;
}
#else
static void add_route(uint64_t key, long hops) { routes[hops] = (struct route){key, hops}; }

static NOINLINE long find_route(uint64_t key) {
    long at = 0;
    while (routes[at].key != key) at++;
    return routes[at].hops;
}
#endif

static NOINLINE uint64_t check_message(uint64_t message) { return mix(message, 2000); }

static void *router(void *arg) {
    uint64_t message = (uint64_t)(uintptr_t)arg;
    long hops = 0;
    name_self("router");
    while (atomic_fetch_sub(&left, 1) > 0) {
        message = check_message(message);
        for (uint64_t i = 0; i < 8; i++) hops += find_route(route_key((message + i) % ROUTES));
    }
    return (void *)(intptr_t)hops;
}

int main(int argc, char **argv) {
    left = unit_argument(argc, argv, 700000);
    for (long i = 0; i < ROUTES; i++) add_route(route_key((uint64_t)i), i);
    pthread_t a = spawn(router, (void *)1), b = spawn(router, (void *)2);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
