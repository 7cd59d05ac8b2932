#include "launcher/worker.hpp"

#include "launcher/blocking/images.hpp"
#include "launcher/blocking/scratch.hpp"
#include "launcher/blocking/slots.hpp"
#include "launcher/message.hpp"
#include "launcher/requests.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <map>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sandboxd::launcher {

namespace {

using steady = std::chrono::steady_clock;

constexpr std::size_t max_workers = 64;            ///< at once; further requests wait in the socket
constexpr auto overrun = std::chrono::seconds(30); ///< what undoing may take beyond a request's deadline
constexpr auto longest_deadline = std::chrono::hours(2);
/// From the end of the service to that of the launcher. Less than the next service's patience with the lock;
/// what is cut off is cleared away as after a crash.
constexpr auto time_to_leave = std::chrono::seconds(10);

void answer_with(int socket, std::uint64_t id, answer_body body, std::span<const int> descriptors = {}) {
    const answer message{id, std::move(body)};
    if (send_packet(socket, encode(message), descriptors) == transfer::failed) {
        const answer complaint{id, error{errc::internal, "an answer of the launcher could not be sent"}};
        static_cast<void>(send_packet(socket, encode(complaint), {}));
    }
}

/// Runs in the worker process: does one request and answers it.
class performer {
public:
    performer(blocking::worker_context& context, int socket, std::uint64_t id, blocking::deadline until)
        : context_(context), socket_(socket), id_(id), until_(until) {}

    void operator()(const start_sandbox& request) { give(blocking::start(context_, request, until_)); }
    void operator()(const attach_sandbox& request) { give(blocking::attach(context_, request)); }
    void operator()(const remove_slot& request) {
        const auto made = blocking::remove(context_, request.slot, until_);
        give(made ? answer_body(done{}) : answer_body(made.error()));
    }
    void operator()(const stop_slot& request) {
        const auto made = blocking::stop(context_, request.slot, until_);
        give(made ? answer_body(done{}) : answer_body(made.error()));
    }
    void operator()(const list_slots& request) { give(blocking::list(context_, request)); }
    void operator()(const import_image& request) { give(blocking::import(context_, request, until_)); }
    void operator()(const keep_image& request) { give(blocking::keep(context_, request, until_)); }
    void operator()(const list_images& request) { give(blocking::list_names(context_, request)); }
    void operator()(const forget_images& request) {
        const auto made = blocking::forget(context_, request, until_);
        give(made ? answer_body(done{}) : answer_body(made.error()));
    }
    void operator()(const probe_host&) { give(answer_body(blocking::probe(context_, until_))); }
    void operator()(const give_up&) {} // the launcher's own business

private:
    void give(answer_body body) { answer_with(socket_, id_, std::move(body)); }

    template <class T>
    void give(result<T> made) {
        give(made ? answer_body(std::move(*made)) : answer_body(made.error()));
    }

    void give(result<blocking::started> made) {
        if (!made) {
            give(answer_body(made.error()));
            return;
        }
        const std::array descriptors{made->pidfd.get(), made->socket.get()};
        answer_with(socket_, id_, made->facts, descriptors);
    }

    blocking::worker_context& context_;
    int socket_;
    std::uint64_t id_;
    blocking::deadline until_;
};

volatile std::sig_atomic_t told_to_end = 0; ///< of a worker process

void note_the_end(int) {
    told_to_end = 1;
}

/// A worker that is told to end looks at given_up() where it waits. Calls that a signal cuts short would be
/// failures of what is better finished.
void listen_for_the_end() {
    struct sigaction action{};
    action.sa_handler = note_the_end;
    action.sa_flags = SA_RESTART;
    ::sigaction(SIGTERM, &action, nullptr);
}

class server {
public:
    server(const launcher_options& options, int socket)
        : context_{options,
                   read_cgroup_layout(),
                   blocking::uid_ranges(options.run_dir + "/uids",
                                        blocking::uid_ranges::host_blocks(options.uid_range)),
                   {},
                   [] { return told_to_end != 0; }},
          socket_(socket) {
        sigset_t children;
        ::sigemptyset(&children);
        ::sigaddset(&children, SIGCHLD);
        sigset_t blocked = children;
        ::sigaddset(&blocked, SIGTERM); // kept for a worker that has yet to say what it does about it
        ::sigprocmask(SIG_BLOCK, &blocked, nullptr);
        signals_.reset(::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK));
    }

    void run() {
        make_cgroup_parents();
        context_.ranges.sweep();
        blocking::sweep_imports(context_.options.state_dir);
        while (open_ || !workers_.empty()) {
            wait();
            reap();
            end_overdue();
        }
        remove_cgroup_parents();
    }

private:
    struct running {
        std::uint64_t id = 0;
        steady::time_point until;
        bool changes = false; ///< a sandbox: better finished than cut off
        bool imports = false; ///< fetches or unpacks an image
        bool overdue = false;
    };

    /// A directory of this service in every hierarchy, for as long as the launcher lives: another service
    /// that leaves can't remove what is above it while the runtime makes one below.
    void make_cgroup_parents() {
        const auto path = cgroup_path(context_.options.service_uuid);
        const auto top = path.substr(0, path.rfind('/'));
        const auto tops = context_.cgroups.directories(top);
        const auto ours = context_.cgroups.directories(path);
        for (std::size_t i = 0; i < ours.size(); ++i) {
            for (int tries = 0; tries < 10; ++tries) {
                ::mkdir(tops[i].c_str(), 0755);
                if (::mkdir(ours[i].c_str(), 0755) == 0 || errno != ENOENT) {
                    break;
                }
            }
        }
    }

    void remove_cgroup_parents() {
        const auto path = cgroup_path(context_.options.service_uuid);
        for (const auto& one : context_.cgroups.directories(path)) {
            ::rmdir(one.c_str()); // stays while sandboxes do
        }
        for (const auto& one : context_.cgroups.directories(path.substr(0, path.rfind('/')))) {
            ::rmdir(one.c_str());
        }
    }

    void wait() {
        std::array<pollfd, 2> on{pollfd{signals_.get(), POLLIN, 0},
                                 pollfd{open_ && workers_.size() < max_workers ? socket_ : -1, POLLIN, 0}};
        auto next = steady::time_point::max();
        for (const auto& [pid, worker] : workers_) {
            next = std::min(next, worker.until);
        }
        int timeout = -1;
        if (next != steady::time_point::max()) {
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - steady::now()).count();
            timeout = static_cast<int>(std::clamp<long>(left, 0, 3'600'000));
        }
        if (::poll(on.data(), on.size(), timeout) > 0 && on[1].revents != 0) {
            take_request();
        }
    }

    void take_request() {
        packet received;
        switch (receive_packet(socket_, received)) {
        case transfer::would_block:
            return;
        case transfer::closed:
            begin_leaving();
            return;
        case transfer::failed:
        case transfer::complete:
            break;
        }
        auto message = decode_request(received.text);
        if (!message) {
            // The other end is this same program: a broken request is a fault, and nothing more can be
            // trusted.
            answer_with(socket_, 0, message.error());
            begin_leaving();
            ::shutdown(socket_, SHUT_RDWR);
            return;
        }
        begin(std::move(*message));
    }

    void begin(request message) {
        if (const auto* left = std::get_if<give_up>(&message.body)) {
            end_import(left->request);
            return;
        }
        const auto limit = std::min<std::chrono::milliseconds>(message.deadline, longest_deadline);
        const auto until = steady::now() + limit;
        const pid_t pid = ::fork();
        if (pid < 0) {
            answer_with(socket_, message.id, os_error("fork", errno));
            return;
        }
        if (pid == 0) {
            perform(message, until);
        }
        const bool changes = std::holds_alternative<start_sandbox>(message.body) ||
                             std::holds_alternative<remove_slot>(message.body) ||
                             std::holds_alternative<stop_slot>(message.body) ||
                             std::holds_alternative<keep_image>(message.body);
        const bool imports = std::holds_alternative<import_image>(message.body);
        workers_[pid] = {message.id, until + overrun, changes, imports, false};
    }

    void end_import(std::uint64_t id) {
        for (auto& [pid, worker] : workers_) {
            if (worker.id == id && worker.imports) {
                tell_to_end(pid, worker, overrun);
            }
        }
    }

    /// By itself, so that what it has made so far goes with it; by force where that takes too long.
    static void tell_to_end(pid_t pid, running& worker, std::chrono::seconds patience) {
        ::kill(pid, SIGTERM);
        worker.until = std::min(worker.until, steady::now() + patience);
    }

    /// Nobody waits for an answer any more: what only looks ends now, the rest soon.
    void begin_leaving() {
        open_ = false;
        const auto now = steady::now();
        for (auto& [pid, worker] : workers_) {
            if (worker.imports) {
                tell_to_end(pid, worker, time_to_leave);
                continue;
            }
            worker.until = std::min(worker.until, worker.changes ? now + time_to_leave : now);
        }
    }

    [[noreturn]] void perform(const request& message, steady::time_point until) {
        if (std::holds_alternative<import_image>(message.body)) {
            listen_for_the_end();
        }
        sigset_t none;
        ::sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        ::prctl(PR_SET_NAME, "sandboxd-work");
        ::prctl(PR_SET_CHILD_SUBREAPER, 1); // see find_process() in blocking/start.cpp
        ::umask(022);                       // becomes the sandbox's
        const auto id = message.id;
        context_.progress = [this, id](std::string text) {
            answer_with(socket_, id, progress{std::move(text)});
        };
        std::visit(performer(context_, socket_, id, until), message.body);
        ::_exit(0);
    }

    void reap() {
        signalfd_siginfo drained[8];
        while (::read(signals_.get(), drained, sizeof drained) > 0) {
        }
        int status = 0;
        for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
            const auto found = workers_.find(pid);
            if (found == workers_.end()) {
                continue; // a sandbox whose worker has gone
            }
            if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
                answer_with(socket_, found->second.id,
                            error{found->second.overdue ? errc::timeout : errc::internal,
                                  found->second.overdue ? "the launcher's request did not end in time"
                                                        : "a worker of the launcher was ended"});
            }
            workers_.erase(found);
        }
    }

    void end_overdue() {
        const auto now = steady::now();
        for (auto& [pid, worker] : workers_) {
            if (worker.until <= now && !worker.overdue) {
                worker.overdue = true;
                worker.until = steady::time_point::max();
                ::kill(pid, SIGKILL);
            }
        }
    }

    blocking::worker_context context_;
    int socket_;
    core::unique_fd signals_;
    bool open_ = true;
    std::map<pid_t, running> workers_;
};

} // namespace

void serve(const launcher_options& options, int socket) {
    server(options, socket).run();
}

} // namespace sandboxd::launcher
