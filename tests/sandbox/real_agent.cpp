#include "real_agent.hpp"

#include "core/deadline.hpp"
#include "core/random.hpp"
#include "net/connect.hpp"

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <csignal>
#include <fcntl.h>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

namespace sandboxd::test {

namespace asio = boost::asio;
using local = asio::local::stream_protocol;

namespace {

core::unique_fd listen_at(const std::string& address) {
    core::unique_fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const local::endpoint endpoint(address);
    if (::bind(listener.get(), endpoint.data(), static_cast<socklen_t>(endpoint.size())) != 0 ||
        ::listen(listener.get(), 8) != 0) {
        throw std::runtime_error("can't listen for the agent");
    }
    return listener;
}

/// In the child: only calls that are safe after fork.
[[noreturn]] void become_agent(const char* program, char** argv, char** env, int listener, int nothing) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    ::dup2(nothing, 0);
    ::dup2(nothing, 1);
    ::dup2(nothing, 2);
    ::dup2(listener, 3);
    if (::chdir("/") == 0) {
        ::execve(program, argv, env);
    }
    ::_exit(127);
}

/// It ends with this process, whatever becomes of that.
int spawn_agent(int listener) {
    const std::string program = SANDBOXD_BINARY_DIR "/sandboxd-agent";
    std::string words[] = {"sandboxd-agent", "serve", "--listen-fd", "3"};
    char* argv[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), nullptr};
    // No parent variables: what commands see is the same everywhere.
    std::string path = "PATH=/usr/local/bin:/usr/bin:/bin";
    char* env[] = {path.data(), nullptr};
    const core::unique_fd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
    const pid_t pid = ::fork();
    if (pid == 0) {
        become_agent(program.c_str(), argv, env, listener, nothing.get());
    }
    if (pid < 0) {
        throw std::runtime_error("can't start the agent");
    }
    return pid;
}

} // namespace

std::shared_ptr<real_agent> real_agent::start(asio::io_context& context) {
    auto made = std::shared_ptr<real_agent>(new real_agent(context));
    made->address_ = std::string(1, '\0') + "sandboxd-test-" + core::random_hex(8);
    const auto listener = listen_at(made->address_);
    made->pid_ = spawn_agent(listener.get());
    made->exit_.assign(static_cast<int>(::syscall(SYS_pidfd_open, made->pid_, 0)));
    made->watch();
    return made;
}

real_agent::~real_agent() {
    // TERM first: the agent takes its commands with it.
    ::kill(pid_, SIGTERM);
    for (int i = 0; i < 500; ++i) {
        if (::waitpid(pid_, nullptr, WNOHANG) != 0) {
            return;
        }
        ::usleep(10'000);
    }
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
}

void real_agent::watch() {
    exit_.async_wait(asio::posix::stream_descriptor::wait_read,
                     [weak = weak_from_this()](boost::system::error_code failed) {
                         const auto self = weak.lock();
                         if (failed || !self) {
                             return;
                         }
                         self->alive_ = false;
                         std::vector<std::function<void()>> callbacks;
                         {
                             const std::lock_guard lock(self->mutex_);
                             callbacks.swap(self->on_death_);
                         }
                         for (auto& one : callbacks) {
                             one();
                         }
                     });
}

task<result<net::stream_ptr>> real_agent::connect(asio::any_io_executor executor) {
    local::socket socket(executor);
    boost::system::error_code failed;
    co_await socket.async_connect(local::endpoint(address_),
                                  asio::redirect_error(asio::use_awaitable, failed));
    if (failed) {
        co_return error{errc::io, "can't reach the agent: " + failed.message()};
    }
    {
        const std::lock_guard lock(mutex_);
        newest_.reset(::fcntl(socket.native_handle(), F_DUPFD_CLOEXEC, 0));
    }
    ++connections_;
    co_return net::adopt(executor, core::unique_fd(socket.release()));
}

bool real_agent::cut() {
    const std::lock_guard lock(mutex_);
    return newest_ && ::shutdown(newest_.get(), SHUT_RDWR) == 0;
}

void real_agent::on_death(std::function<void()> callback) {
    {
        const std::lock_guard lock(mutex_);
        if (alive_) {
            on_death_.push_back(std::move(callback));
            return;
        }
    }
    callback();
}

task<result<usage_sample>> real_agent::usage() {
    usage_sample sample;
    sample.pids = 1;
    co_return sample;
}

task<void> real_agent::terminate(std::chrono::milliseconds grace, bool) {
    const auto self = shared_from_this();
    ++terminations_;
    const auto until = std::chrono::steady_clock::now() + grace;
    while (alive_ && std::chrono::steady_clock::now() < until) {
        co_await core::sleep_for(std::chrono::milliseconds(5));
    }
    if (alive_) {
        ::kill(pid_, SIGKILL);
    }
    while (alive_) {
        co_await core::sleep_for(std::chrono::milliseconds(5));
    }
}

task<result<net::stream_ptr>> door::connect(asio::any_io_executor executor) {
    if (closed_) {
        co_return error{errc::io, "this service has died"};
    }
    co_return co_await to_->connect(std::move(executor));
}

std::string fresh_id() {
    return core::random_hex(protocol::run_id_size);
}

} // namespace sandboxd::test
