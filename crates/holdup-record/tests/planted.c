/* A program that says it is Python 3.8: its lists are circles, its names have a length of 2^62 and escapes, and what lies
 * there changes while it is read. */
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define PUT(object, offset, value) (*(uint64_t *)((object) + (offset)) = (uint64_t)(value))

char _PyRuntime[4096], PyCode_Type[512];
volatile unsigned Py_Version = 0x03080000;
static char interpreter[512], thread[512], frame[512], code[512], name[512];

__attribute__((noinline)) void _PyEval_EvalFrameDefault(void)
{
	for (int i = 0; i < 10; i++) {
		struct timespec nap = { 0, 60000000 };
		nanosleep(&nap, 0);
		PUT(name, 16, i % 2 ? 1ULL << 60 : 1ULL << 62);
		PUT(code, 40, i % 2 ? 0xffffffff : 7);
	}
}

int main(void)
{
	PUT(_PyRuntime, 32, interpreter);
	PUT(interpreter, 0, interpreter);
	PUT(interpreter, 8, thread);
	PUT(thread, 8, thread);
	PUT(thread, 24, frame);
	PUT(thread, 176, pthread_self());
	PUT(frame, 24, frame);
	PUT(frame, 32, code);
	PUT(code, 8, PyCode_Type);
	PUT(code, 104, name);
	PUT(code, 112, name);
	PUT(name, 16, 1ULL << 62);
	PUT(name, 32, 1 << 2 | 1 << 5 | 1 << 6);
	memset(name + 48, 27, sizeof(name) - 48);
	_PyEval_EvalFrameDefault();
	return 0;
}
