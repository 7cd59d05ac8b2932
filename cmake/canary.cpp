// Exit status 0: aggregates that live across a co_await are built and destroyed exactly once.
#include <coroutine>
#include <exception>
#include <string>
#include <utility>

namespace {

int live = 0;
bool moved_bitwise = false;

struct tracked {
    tracked* self = this;
    tracked() { ++live; }
    tracked(const tracked&) : self(this) { ++live; }
    tracked(tracked&&) noexcept : self(this) { ++live; }
    tracked& operator=(const tracked&) = default;
    ~tracked() {
        --live;
        if (self != this) {
            moved_bitwise = true;
        }
    }
};

struct aggregate {
    tracked value;
};

struct task {
    struct promise_type {
        std::coroutine_handle<> waiter;
        task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() noexcept { return {}; }
        struct final_awaiter {
            bool await_ready() noexcept { return false; }
            std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> h) noexcept {
                return h.promise().waiter ? h.promise().waiter : std::noop_coroutine();
            }
            void await_resume() noexcept {}
        };
        final_awaiter final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
    std::coroutine_handle<promise_type> handle;
    bool await_ready() { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiter) {
        handle.promise().waiter = waiter;
        return handle;
    }
    void await_resume() { handle.destroy(); }
};

task by_value(aggregate) {
    co_return;
}

template <class F>
task call(F f) {
    f();
    co_return;
}

task canary() {
    co_await by_value(aggregate{tracked{}});
    co_await by_value({tracked{}});
    co_await call([t = tracked{}] { (void)t; });
}

} // namespace

int main() {
    task t = canary();
    t.handle.resume();
    const bool finished = t.handle.done();
    t.handle.destroy();
    return finished && live == 0 && !moved_bitwise ? 0 : 1;
}
