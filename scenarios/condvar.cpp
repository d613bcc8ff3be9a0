// std::mutex and std::condition_variable: queries wait until an index is rebuilt, which one thread does alone.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <pthread.h>
#include <string>
#include <thread>
#include <vector>

using Clock = std::chrono::steady_clock;

namespace catalog {

class Index {
public:
    /// Rebuilds from scratch while every query waits.
    [[gnu::noinline]] void rebuild(Clock::time_point until) {
        while (Clock::now() < until)
            for (std::size_t i = 1; i < terms_.size(); i++) terms_[i] = terms_[i] * 31 + (terms_[i - 1] >> 7);
    }

    void invalidate_and_rebuild() {
        {
            std::lock_guard lock(mutex_);
            valid_ = false;
        }
        rebuild(Clock::now() + std::chrono::milliseconds(300));
        std::lock_guard lock(mutex_);
        valid_ = true;
        rebuilt_.notify_all();
    }

    std::uint64_t query(std::uint64_t key) {
        std::unique_lock lock(mutex_);
        rebuilt_.wait(lock, [this] { return valid_; });
        return terms_[key % terms_.size()];
    }

private:
    std::mutex mutex_;
    std::condition_variable rebuilt_;
    bool valid_ = true;
    std::vector<std::uint64_t> terms_ = std::vector<std::uint64_t>(1 << 14, 3);
};

} // namespace catalog

[[gnu::noinline]] static std::uint64_t rank_results(std::uint64_t x) {
    for (int i = 0; i < 300000; i++) x = (x ^ (x >> 27)) * 0x9e3779b97f4a7c15u + i;
    return x;
}

int main(int argc, char **argv) {
    const double seconds = argc > 1 ? std::atof(argv[1]) : 4.0;
    const auto deadline = Clock::now() + std::chrono::milliseconds(static_cast<long>(seconds * 1000));
    catalog::Index index;
    std::vector<std::thread> threads;
    for (int id = 0; id < 5; id++)
        threads.emplace_back([&index, deadline, id] {
            pthread_setname_np(pthread_self(), "query");
            for (std::uint64_t x = id; Clock::now() < deadline;) x = rank_results(x) + index.query(x);
        });
    threads.emplace_back([&index, deadline] {
        pthread_setname_np(pthread_self(), "catalog-build");
        while (Clock::now() < deadline) {
            index.invalidate_and_rebuild();
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
    });
    for (auto &t : threads) t.join();
    return 0;
}
