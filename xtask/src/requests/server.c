/* Threads that answer requests and need one lock; now and then one rebuilds the index with it. Prints how long the longest waited for it, in
 * seconds, by its own clock. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4
#define REQUESTS 800

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double longest[THREADS];
static volatile unsigned sum;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void work(double seconds)
{
	for (double end = now() + seconds; now() < end;)
		for (int i = 0; i < 500; i++)
			sum += i;
}

__attribute__((noinline)) void rebuild_index(void)
{
	work(0.025);
	asm volatile("" ::: "memory");
}

__attribute__((noinline)) void handle_request(int thread, int number)
{
	double t = now(), waited;
	pthread_mutex_lock(&lock);
	waited = now() - t;
	if (waited > longest[thread])
		longest[thread] = waited;
	if (thread == 0 && number % 50 == 49)
		rebuild_index();
	else
		work(0.00005);
	pthread_mutex_unlock(&lock);
	/* Those that waited are slower than the one that rebuilt. */
	work(thread == 0 ? 0.0001 : 0.004);
}

static void *serve(void *which)
{
	for (int i = 0; i < REQUESTS; i++) {
		handle_request((long)which, i);
		usleep(2000);
	}
	return 0;
}

int main(void)
{
	pthread_t threads[THREADS];
	double most = 0;
	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], 0, serve, (void *)i);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], 0);
		if (longest[i] > most)
			most = longest[i];
	}
	printf("%.6f\n", most);
	return 0;
}
