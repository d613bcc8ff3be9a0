// The program of the C++ test: one thread inside the library.
#include <cstdio>
#include <pthread.h>
#include <thread>
extern "C" int run_engine(int n);
namespace host { struct Worker { void operator()() const { pthread_setname_np(pthread_self(), "engine"); printf("%d\n", run_engine(7)); } }; }
int main() {
    std::thread thread{host::Worker{}};
    puts("ready"); fflush(stdout);
    thread.join();
}
