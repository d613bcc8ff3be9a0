/* Marks what three threads do, and prints how long each request took by its own clock; more is marked than has an end. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static int marker;
static long lengths[3][40];

static long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000L + t.tv_nsec; }

/* Whether the kernel's own buffer takes it (tracing may be off) is nothing to the program. */
static void mark(const char *line) { if (write(marker, line, strlen(line)) < 0) return; }

static void mark_named(char kind, const char *name, int number)
{
	char line[64];
	snprintf(line, sizeof(line), number < 0 ? "%c|%d|%s" : "%c|%d|%s|%d", kind, getpid(), name, number);
	mark(line);
}

static void *serve(void *which)
{
	for (int i = 0; i < 40; i++) {
		long t = now();
		mark_named('B', "request", -1);
		mark_named('B', "parse | split", -1);
		usleep(200);
		mark("E");
		usleep(i % 10 == 9 ? 20000 : 300);
		mark("E|1\n");
		lengths[(long)which][i] = now() - t;
	}
	return 0;
}

static void *finish(void *unused)
{
	for (int i = 0; i < 10; i++) {
		usleep(3000);
		mark_named('F', "job", i);
	}
	return unused;
}

int main(void)
{
	pthread_t threads[4];
	marker = open("/sys/kernel/tracing/trace_marker", O_WRONLY);
	for (int i = 0; i < 10; i++)
		mark_named('S', "job", i);
	for (long i = 0; i < 3; i++)
		pthread_create(&threads[i], 0, serve, (void *)i);
	pthread_create(&threads[3], 0, finish, 0);
	for (int depth = 0; depth < 20; depth++)
		mark_named('B', depth < 16 ? "deep" : "too deep", -1);
	for (int depth = 0; depth < 20; depth++)
		mark("E");
	mark("E"); /* that nothing began */
	mark("Banana, and Every other text");
	struct iovec vector = { "B|1|in parts", 12 };
	if (writev(marker, &vector, 1) < 0) {}
	mark("E");
	int null = open("/dev/null", O_WRONLY);
	if (write(null, "B|1|elsewhere", 13) < 0) {}
	mark_named('B', "left open", -1);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], 0);
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 40; j++)
			printf("%ld\n", lengths[i][j]);
	return 0;
}
