#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
static long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000L + t.tv_nsec; }
static struct sockaddr_in tcp = { .sin_family = AF_INET };
static struct sockaddr_un path = { .sun_family = AF_UNIX };
static int listeners[2];
__attribute__((noinline)) void scan(long ns) { for (long end = now() + ns; now() < end;) asm volatile("" ::: "memory"); }
static void *serve(void *unused) {
	struct pollfd all[8] = { { listeners[0], POLLIN }, { listeners[1], POLLIN } };
	int n = 2;
	for (;;) {
		poll(all, n, -1);
		for (int i = 0; i < n; i++) {
			char text[64] = {};
			if (!(all[i].revents & POLLIN)) continue;
			if (i < 2) { all[n++] = (struct pollfd){ accept(all[i].fd, 0, 0), POLLIN }; continue; }
			if (read(all[i].fd, text, sizeof text) <= 0) { all[i].fd = -1; continue; }
			if (!strncmp(text, "slow", 4)) scan(20000000);
			(void)!write(all[i].fd, "done", 4);
		}
	}
	return unused;
}
static int client(struct sockaddr *to, socklen_t length) {
	int fd = socket(to->sa_family, SOCK_STREAM, 0);
	if (connect(fd, to, length)) perror("connect");
	return fd;
}
static void ask(int fd, const char *what, int id) {
	char text[64];
	int length = sprintf(text, "%s %d\r\n", what, id);
	long t = now();
	(void)!write(fd, text, length);
	(void)!read(fd, text, sizeof text);
	printf("%s %d %ld\n", what, id, now() - t);
}
static void *slow(void *fd) { for (int i = 0; i < 10; i++) { ask(*(int *)fd, "slow", i); usleep(10000); } return 0; }
int main(int argc, char **argv) {
	socklen_t length = sizeof tcp;
	pthread_t server, other;
	tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	strcpy(path.sun_path, argv[1]);
	listeners[0] = socket(AF_INET, SOCK_STREAM, 0), listeners[1] = socket(AF_UNIX, SOCK_STREAM, 0);
	bind(listeners[0], (void *)&tcp, sizeof tcp), bind(listeners[1], (void *)&path, sizeof path);
	listen(listeners[0], 8), listen(listeners[1], 8);
	getsockname(listeners[0], (void *)&tcp, &length);
	printf("port %d\n", ntohs(tcp.sin_port));
	pthread_create(&server, 0, serve, 0);
	int a = client((void *)&tcp, sizeof tcp), b = client((void *)&tcp, sizeof tcp), c = client((void *)&path, sizeof path);
	pthread_create(&other, 0, slow, &a);
	usleep(5000);
	for (int i = 0; i < 10; i++) { ask(b, "fast", i); usleep(3000); }
	pthread_join(other, 0);
	for (int i = 0; i < 5; i++) ask(c, "local", i);
	fflush(stdout);
	_exit(0);
}
