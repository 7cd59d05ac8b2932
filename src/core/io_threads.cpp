#include "core/io_threads.hpp"

#include "core/fd.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <fcntl.h>
#include <mutex>
#include <pthread.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace sandboxd::core {

namespace {

using wall_clock = std::chrono::steady_clock;

/// The share of a processor below which a thread does next to nothing.
constexpr double idle = 0.05;

/// How long a thread has been running or has waited for a processor, ever: on a host whose processors are
/// taken, a thread that is always late is busy too. Made by the thread itself, read by any.
class thread_meter {
public:
    thread_meter() = default;
    static thread_meter of_this_thread() {
        thread_meter made;
        made.thread_ = ::pthread_self();
        made.schedstat_ = unique_fd(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC));
        return made;
    }

    [[nodiscard]] std::chrono::nanoseconds busy() const {
        // Two numbers in nanoseconds, "running waiting slices" (proc(5)).
        std::array<char, 96> text{};
        const auto size = schedstat_ ? ::pread(schedstat_.get(), text.data(), text.size(), 0) : -1;
        if (size > 0) {
            std::int64_t running = 0;
            std::int64_t waiting = 0;
            const char* end = text.data() + size;
            const auto first = std::from_chars(text.data(), end, running);
            if (first.ptr < end && std::from_chars(first.ptr + 1, end, waiting).ec == std::errc()) {
                return std::chrono::nanoseconds(running + waiting);
            }
        }
        return processor_time();
    }

private:
    /// For a kernel without these statistics.
    [[nodiscard]] std::chrono::nanoseconds processor_time() const {
        clockid_t clock{};
        timespec used{};
        if (::pthread_getcpuclockid(thread_, &clock) != 0 || ::clock_gettime(clock, &used) != 0) {
            return {};
        }
        return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
    }

    pthread_t thread_{};
    unique_fd schedstat_;
};

class crew {
public:
    crew(boost::asio::io_context& context, unsigned most, const io_thread_rules& rules)
        : context_(context), rules_(rules) {
        members_.resize(std::max(most, 1U));
        members_.front() = thread_meter::of_this_thread();
        for (unsigned number = 1; number < most; ++number) {
            others_.emplace_back([this, number] { attend(number); });
        }
    }

    void run() {
        {
            const std::lock_guard lock(mutex_);
            inside_ = 1;
        }
        changed_.notify_all();
        context_.run();
        {
            const std::lock_guard lock(mutex_);
            over_ = true;
        }
        changed_.notify_all();
        others_.clear(); // joins them
    }

private:
    /// How busy the first `count` threads were since the last look of the same observer, in processors.
    class observer {
    public:
        explicit observer(const std::vector<thread_meter>& members, unsigned count)
            : members_(members), count_(count) {}

        double look() {
            const auto now = wall_clock::now();
            std::chrono::nanoseconds used{0};
            for (unsigned i = 0; i < count_; ++i) {
                used += members_[i].busy();
            }
            const std::chrono::duration<double> passed = now - at_;
            const std::chrono::duration<double> worked = used - used_;
            at_ = now;
            used_ = used;
            return worked / passed;
        }

    private:
        const std::vector<thread_meter>& members_;
        unsigned count_;
        wall_clock::time_point at_{};
        std::chrono::nanoseconds used_{0};
    };

    /// The life of thread `number`: it looks on while all before it are in, and joins when they are busy.
    void attend(unsigned number) {
        std::unique_lock lock(mutex_);
        members_[number] = thread_meter::of_this_thread();
        while (!over_) {
            changed_.wait(lock, [&] { return over_ || inside_ >= number; });
            if (over_) {
                break;
            }
            observer others(members_, number);
            (void)others.look();
            auto stay = rules_.stay;
            auto pause = rules_.look;
            while (!over_ && inside_ >= number) {
                changed_.wait_for(lock, pause, [&] { return over_ || inside_ < number; });
                if (over_ || inside_ != number) {
                    continue;
                }
                const double busy = others.look();
                pause = busy < idle * number ? std::min(2 * pause, rules_.longest_look) : rules_.look;
                if (busy < rules_.busy * number) {
                    stay = rules_.stay;
                    continue;
                }
                join_in(lock, number, stay);
                stay = std::min(2 * stay, rules_.longest_stay);
                (void)others.look();
            }
        }
    }

    /// Helps for a while. Whether that is needed any more is seen from outside only: threads that are in
    /// together wake each other, and where the processors are taken that alone makes them look busy. The last
    /// to join leaves first.
    void join_in(std::unique_lock<std::mutex>& lock, unsigned number, std::chrono::milliseconds stay) {
        ++inside_;
        changed_.notify_all();
        do {
            lock.unlock();
            context_.run_for(stay);
            lock.lock();
            // At the end the threads before it may have left for good.
        } while (!over_ && !context_.stopped() && inside_ > number + 1);
        --inside_;
        changed_.notify_all();
    }

    boost::asio::io_context& context_;
    io_thread_rules rules_;
    std::mutex mutex_;
    std::condition_variable changed_;
    unsigned inside_ = 0; ///< the first so many threads are in the context
    bool over_ = false;
    std::vector<thread_meter> members_; ///< each made by its thread before that can be inside
    std::vector<std::jthread> others_;
};

} // namespace

void run_context(boost::asio::io_context& context, unsigned most, const io_thread_rules& rules) noexcept {
    crew(context, most, rules).run();
}

} // namespace sandboxd::core
