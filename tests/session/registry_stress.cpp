// Opens, commands, stops, listings and closes from four threads at once, for ThreadSanitizer. Exits 0 when
// all of it ended and nothing is left.

#include "core/offload.hpp"
#include "core/random.hpp"
#include "core/spawn.hpp"
#include "session/registry.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/strand.hpp>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <set>
#include <thread>

using namespace sandboxd;
using namespace std::chrono_literals;

namespace {

/// A sandbox that answers at once; dies when told to.
class quick_sandbox final : public sandbox {
public:
    std::string_view type() const noexcept override { return "quick"; }
    task<result<exec_result>> exec(exec_request) override {
        exec_result answer;
        answer.status.exit_code = 0;
        co_return answer;
    }
    task<result<run_result>> run(run_request) override {
        run_result answer;
        answer.status.exit_code = 0;
        co_return answer;
    }
    bool alive() const noexcept override { return alive_; }
    void on_death(std::function<void()>) override {}
    task<void> stop(bool) override {
        alive_ = false;
        co_return;
    }
    std::string handle() const override { return {}; }
    void die() { alive_ = false; }

private:
    std::atomic<bool> alive_{true};
};

class quick_host final : public sandbox_builder {
public:
    std::string_view name() const noexcept override { return "quick"; }
    std::vector<std::string> notes() const override { return {}; }
    task<result<slot_record>> prepare(const sandbox_spec&) override {
        co_return slot_record{"slot-" + std::to_string(++next_), "quick", ""};
    }
    task<result<std::shared_ptr<sandbox>>> build(sandbox_spec, slot_record slot) override {
        auto made = std::make_shared<quick_sandbox>();
        const std::lock_guard lock(mutex_);
        slots_.insert(slot.slot);
        last_ = made;
        co_return std::shared_ptr<sandbox>(made);
    }
    task<result<std::shared_ptr<sandbox>>> adopt(slot_record) override {
        co_return error{errc::gone, "gone"};
    }
    task<result<void>> remove(slot_record slot) override {
        const std::lock_guard lock(mutex_);
        slots_.erase(slot.slot);
        co_return result<void>();
    }
    task<result<std::vector<slot_record>>> owned() override { co_return std::vector<slot_record>(); }

    void kill_last() {
        const std::lock_guard lock(mutex_);
        if (const auto one = last_.lock()) {
            one->die();
        }
    }
    std::size_t left() {
        const std::lock_guard lock(mutex_);
        return slots_.size();
    }

private:
    std::mutex mutex_;
    std::set<std::string> slots_;
    std::weak_ptr<quick_sandbox> last_;
    std::atomic<int> next_{0};
};

std::atomic<long> answers{0};

task<void> client(session::registry& sessions, quick_host& host, int number, int rounds) {
    for (int i = 0; i < rounds; ++i) {
        session::open_request request;
        request.session_id = "s" + std::to_string((number + i) % 12);
        request.reuse = i % 2 == 0;
        const auto opened = co_await sessions.open(request);
        const std::string id = *request.session_id;
        for (int k = 0; k < 5; ++k) {
            answers += (co_await sessions.exec(id, {"true", std::nullopt}, nullptr)).has_value() ? 1 : 0;
        }
        const std::string run_id(32, static_cast<char>('a' + number % 6));
        const session::client_probe client = [gone = i % 5 == 0]() -> task<bool> { co_return !gone; };
        answers += (co_await sessions.run(id, {run_id, {"true"}, {}, 1.0}, client)).has_value() ? 1 : 0;
        [[maybe_unused]] const auto stopped = co_await sessions.stop_run(id, run_id);
        if (opened) {
            [[maybe_unused]] const auto scope = sessions.authorize(opened->token, id);
        }
        [[maybe_unused]] const auto page = co_await sessions.events(id, 0);
        if (i % 7 == 0) {
            [[maybe_unused]] const auto all = co_await sessions.list(true);
            host.kill_last();
        }
        if (i % 3 == 0) {
            [[maybe_unused]] const auto closed = co_await sessions.close(id, i % 2 == 0);
        }
        [[maybe_unused]] const auto health = sessions.health_numbers();
    }
}

task<void> stop(session::registry& sessions) {
    co_await sessions.shutdown(session::shutdown_mode::stop, 120s);
}

task<void> begin(session::registry& sessions, std::atomic<bool>& good) {
    good = (co_await sessions.start()).has_value();
}

} // namespace

int main() {
    boost::asio::io_context context;
    const auto root = std::filesystem::temp_directory_path() / ("sandboxd-stress-" + core::random_hex(8));
    std::filesystem::create_directory(root);
    settings config;
    config.workspace_root = root.string();
    config.native_files = false;
    config.max_sessions = 6;
    config.max_open_sessions = 9;
    config.evict_idle_after = 0;
    config.max_running_commands = 4;
    quick_host host;
    const auto store = store::create_memory_store();
    const auto clock = core::system_clock();
    core::worker_pool workers("stress", 2);
    const auth::token_authority authority("service", auth::token_key{3});
    session::runtime_source runtimes;
    runtimes.entry = [](const settings&, const std::string&) -> result<std::string> {
        return std::string("{}");
    };
    runtimes.spec = [](const settings&, const std::string&, const std::string&) -> result<sandbox_spec> {
        return sandbox_spec{};
    };
    const session::policy_text text{[](const std::string&) { return result<policy_change>(policy_change()); },
                                    [](const policy_change&) { return std::string(); }};
    session::patience waits;
    waits.flush = 2ms;
    const auto sessions = session::create_registry(
        {context, config, *store, host, *clock, workers, authority, runtimes, text, waits});

    auto guard = boost::asio::make_work_guard(context);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&context] { context.run(); });
    }
    const auto finish = [&](auto start) {
        core::gate inside;
        start(inside);
        while (inside.inside() != 0) {
            std::this_thread::sleep_for(1ms);
        }
    };
    const auto strand = [&] { return boost::asio::make_strand(context.get_executor()); };
    std::atomic<bool> good{false};
    finish([&](core::gate& inside) { core::spawn(strand(), "start", inside, begin(*sessions, good)); });
    finish([&](core::gate& inside) {
        for (int i = 0; i < 24; ++i) {
            core::spawn(strand(), "client", inside, client(*sessions, host, i, 60));
        }
    });
    finish([&](core::gate& inside) { core::spawn(strand(), "stop", inside, stop(*sessions)); });
    guard.reset();
    for (auto& one : threads) {
        one.join();
    }
    std::filesystem::remove_all(root);
    const auto health = sessions->health_numbers();
    std::printf("answers %ld, left: sandboxes %zu, sessions %ld, commands %ld, faults %lu\n", answers.load(),
                host.left(), static_cast<long>(health.sessions), static_cast<long>(health.running_commands),
                core::escaped_exceptions());
    return good && answers > 0 && host.left() == 0 && health.sessions == 0 && health.running_commands == 0 &&
                   core::escaped_exceptions() == 0
               ? 0
               : 1;
}
