// The shared library of the C++ test.
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

namespace engine {
template <typename T> struct Queue {
    std::mutex mutex; std::condition_variable ready; std::vector<T> items;
    __attribute__((noinline)) T pop(const std::string &why);
};
template <typename T> T Queue<T>::pop(const std::string &why) {
    std::unique_lock<std::mutex> lock(mutex);
    ready.wait(lock, [&] { return !items.empty() || why.empty(); });
    return items.back();
}
class Engine {
public:
    __attribute__((noinline)) int step(int n);
    Queue<int> queue;
};
int Engine::step(int n) { int got = queue.pop("work for step"); return got + n; }
}

extern "C" __attribute__((visibility("default"))) int run_engine(int n) {
    static engine::Engine engine;
    int r = 0;
    for (int i = 0; i < n; i++) r += engine.step(i);
    return r;
}
