// What exec costs the service over a link, beside the same command started by a bare program, in one run.
// Built by hand with the release preset's libraries; see the usage line.
//
//     sandbox_exec AGENT [COUNT] [CALLERS]

#include "core/fd.hpp"
#include "core/random.hpp"
#include "core/spawn.hpp"
#include "net/connect.hpp"
#include "sandbox/agent_sandbox.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace asio = boost::asio;
using namespace sandboxd;
using local = asio::local::stream_protocol;
using clock_type = std::chrono::steady_clock;

namespace {

class bench_host final : public sandboxes::sandbox_host {
public:
    explicit bench_host(const char* program)
        : address_(std::string(1, '\0') + "bench-" + core::random_hex(8)) {
        const core::unique_fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const local::endpoint endpoint(address_);
        ::bind(listener.get(), endpoint.data(), static_cast<socklen_t>(endpoint.size()));
        ::listen(listener.get(), 4);
        pid_ = ::fork();
        if (pid_ == 0) {
            const int high =
                ::fcntl(listener.get(), F_DUPFD, 10); // it may be 3 already, to be closed on exec
            ::dup2(high, 3);
            ::close(high);
            ::execl(program, program, "serve", "--listen-fd", "3", nullptr);
            ::_exit(127);
        }
    }
    ~bench_host() override {
        ::kill(pid_, SIGTERM);
        ::waitpid(pid_, nullptr, 0);
    }
    std::string_view type() const noexcept override { return "bench"; }
    task<result<net::stream_ptr>> connect(asio::any_io_executor executor) override {
        local::socket socket(executor);
        co_await socket.async_connect(local::endpoint(address_), asio::use_awaitable);
        co_return net::adopt(executor, core::unique_fd(socket.release()));
    }
    std::optional<sandboxes::command_user> default_user() const override { return std::nullopt; }
    bool alive() const noexcept override { return true; }
    void on_death(std::function<void()>) override {}
    std::optional<std::uint64_t> oom_kills() const override { return std::nullopt; }
    task<result<usage_sample>> usage() override { co_return usage_sample(); }
    task<void> terminate(std::chrono::milliseconds, bool) override { co_return; }
    std::string handle() const override { return "bench"; }

private:
    std::string address_;
    pid_t pid_ = -1;
};

double cpu_us() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto of = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec);
    };
    return of(usage.ru_utime) + of(usage.ru_stime);
}

void report(const char* what, std::vector<double> times, double seconds, double cpu) {
    std::sort(times.begin(), times.end());
    const auto count = static_cast<double>(times.size());
    std::printf("%-28s p50 %7.0f us   p99 %7.0f us   %6.0f/s   cpu of the caller %5.1f us each\n", what,
                times[times.size() / 2], times[times.size() * 99 / 100], count / seconds, cpu / count);
}

double since(clock_type::time_point from) {
    return std::chrono::duration<double, std::micro>(clock_type::now() - from).count();
}

task<void> call(std::shared_ptr<sandbox> box, int count, std::vector<double>& times) {
    for (int i = 0; i < count; ++i) {
        exec_request request;
        request.run_id = core::random_hex(16);
        request.command = "true";
        request.timeout = std::chrono::seconds(60);
        const auto from = clock_type::now();
        const auto answer = co_await box->exec(std::move(request));
        times.push_back(since(from));
        if (!answer || answer->status.exit_code != 0) {
            std::fputs("a command failed\n", stderr);
            std::exit(1);
        }
    }
}

task<void> drive(sandboxes::agent_sandbox_factory factory, std::shared_ptr<bench_host> host,
                 asio::any_io_executor executor, core::gate& gate, int count, int callers,
                 std::vector<double>& times) {
    auto box = co_await factory(std::move(host), false);
    for (int i = 0; i < callers; ++i) {
        core::spawn(executor, "caller", gate, call(*box, count / callers, times));
    }
}

void bare(int count) {
    char sh[] = "sh";
    char c[] = "-c";
    char script[] = "true";
    char* argv[] = {sh, c, script, nullptr};
    std::vector<double> times;
    const auto begun = clock_type::now();
    const auto cpu = cpu_us();
    for (int i = 0; i < count; ++i) {
        const auto from = clock_type::now();
        pid_t pid = 0;
        ::posix_spawnp(&pid, sh, nullptr, nullptr, argv, environ);
        ::waitpid(pid, nullptr, 0);
        times.push_back(since(from));
    }
    report("posix_spawn sh -c true", std::move(times), since(begun) / 1e6, cpu_us() - cpu);
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fputs("usage: sandbox_exec AGENT [COUNT] [CALLERS]\n", stderr);
        return 2;
    }
    const int count = argc > 2 ? std::atoi(argv[2]) : 2000;
    const int callers = argc > 3 ? std::atoi(argv[3]) : 1;
    bare(count);
    asio::io_context context(1);
    core::gate gate;
    std::vector<double> times;
    const auto factory = sandboxes::create_agent_sandbox_factory(context.get_executor(), gate, {});
    core::spawn(context.get_executor(), "driver", gate,
                drive(factory, std::make_shared<bench_host>(argv[1]), context.get_executor(), gate, count,
                      callers, times));
    const auto begun = clock_type::now();
    const auto cpu = cpu_us();
    context.run();
    report("exec true over a link", std::move(times), since(begun) / 1e6, cpu_us() - cpu);
    return 0;
}
