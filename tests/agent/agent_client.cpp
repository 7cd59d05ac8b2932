#include "agent_client.hpp"

#include "agent/process_tree.hpp"

#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

namespace sandboxd::agent::test {

namespace {

using namespace std::chrono_literals;
using protocol::tag;
using clock_type = std::chrono::steady_clock;

sockaddr_un address_of(const std::string& name) {
    sockaddr_un out{};
    out.sun_family = AF_UNIX;
    std::memcpy(out.sun_path + 1, name.data(), name.size());
    return out;
}

bool eventually(const std::function<bool()>& done, std::chrono::milliseconds limit) {
    const auto until = clock_type::now() + limit;
    while (!done()) {
        if (clock_type::now() > until) {
            return false;
        }
        std::this_thread::sleep_for(2ms);
    }
    return true;
}

std::set<pid_t> running_agents;

/// Children of this test that are no agents: they came here as orphans. The ended ones are taken.
std::vector<pid_t> leftovers() {
    std::vector<pid_t> out;
    for (const auto& one : list_processes()) {
        const bool ours = one.parent == getpid() && !running_agents.contains(one.pid);
        if (ours && waitpid(one.pid, nullptr, WNOHANG) == 0) {
            out.push_back(one.pid);
        }
    }
    return out;
}

} // namespace

std::string read_proc(pid_t pid, const char* file) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/" + file, std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
}

agent_process::agent_process(std::vector<std::string> more, std::vector<std::string> environment,
                             owner whose) {
    static std::atomic<int> counter{0};
    name_ = "sandboxd-agent-test-" + std::to_string(getpid()) + "-" + std::to_string(++counter);
    prctl(PR_SET_CHILD_SUBREAPER, 1); // whatever it leaves behind comes here and is seen
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto address = address_of(name_);
    BOOST_REQUIRE(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    BOOST_REQUIRE(listen(listener, 8) == 0);
    const std::string program = SANDBOXD_BINARY_DIR "/sandboxd-agent";
    std::vector<std::string> arguments{program, "serve", "--listen-fd", "3"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::vector<char*> argv;
    for (auto& one : arguments) {
        argv.push_back(one.data());
    }
    argv.push_back(nullptr);
    for (char** one = environ; *one != nullptr; ++one) {
        environment.emplace_back(*one);
    }
    std::vector<char*> envp;
    for (auto& one : environment) {
        envp.push_back(one.data());
    }
    envp.push_back(nullptr);
    const bool change = whose == owner::nobody && geteuid() == 0;
    pid_ = fork();
    BOOST_REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
        if (listener == 3) {
            fcntl(3, F_SETFD, 0);
        }
        dup2(listener, 3);
        if (change) {
            const int file = open(program.c_str(), O_PATH | O_CLOEXEC);
            if (setgroups(0, nullptr) == 0 && setgid(65'534) == 0 && setuid(65'534) == 0) {
                // By descriptor: that user may not be allowed to walk to the program.
                execveat(file, "", argv.data(), envp.data(), AT_EMPTY_PATH);
            }
            _exit(98);
        }
        execve(program.c_str(), argv.data(), envp.data());
        _exit(97);
    }
    close(listener);
    running_agents.insert(pid_);
}

agent_process::~agent_process() {
    kill(pid_, SIGTERM);
    int status = -1;
    const bool left = eventually([&] { return waitpid(pid_, &status, WNOHANG) == pid_; }, 5s);
    BOOST_CHECK_MESSAGE(left, "the agent does not leave");
    BOOST_CHECK_MESSAGE(left && WIFEXITED(status) && WEXITSTATUS(status) == 0,
                        "the agent ended with " << status);
    if (!left) {
        kill(pid_, SIGKILL);
    }
    running_agents.erase(pid_);
    const bool clean = eventually([] { return leftovers().empty(); }, 2s);
    BOOST_CHECK_MESSAGE(clean, "the agent leaves processes behind");
    for (const auto pid : leftovers()) {
        kill(pid, SIGKILL);
    }
}

int agent_process::connect() const {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto address = address_of(name_);
    BOOST_REQUIRE(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    return fd;
}

bool agent_process::alive() const {
    return waitpid(pid_, nullptr, WNOHANG) == 0;
}

std::vector<pid_t> agent_process::commands() const {
    std::vector<pid_t> out;
    for (const auto& one : descendants(list_processes(), pid_)) {
        if (one.state != 'Z' && read_proc(one.pid, "comm") != "sandboxd-agent\n") {
            out.push_back(one.pid);
        }
    }
    return out;
}

std::vector<pid_t> agent_process::supervisors() const {
    std::vector<pid_t> out;
    for (const auto& one : list_processes()) {
        if (one.parent == pid_ && one.state != 'Z' && read_proc(one.pid, "comm") == "sandboxd-agent\n") {
            out.push_back(one.pid);
        }
    }
    return out;
}

bool agent_process::wait_for_commands(std::size_t count) const {
    return eventually([&] { return commands().size() == count; }, 5s);
}

start::start(std::initializer_list<std::string> arguments) {
    for (const auto& one : arguments) {
        with([one](auto& frame) { frame.bytes(tag::argument, one); });
    }
}

start start::script(std::string text) {
    start out;
    out.with([text = std::move(text)](auto& frame) { frame.bytes(tag::script, text); });
    return out;
}

start& start::with(const std::function<void(protocol::frame_writer&)>& add) {
    fields_.push_back(add);
    return *this;
}

start& start::mode(protocol::start_mode value) {
    return with([value](auto& frame) { frame.u8(tag::mode, static_cast<std::uint8_t>(value)); });
}
start& start::timeout(std::uint64_t ms) {
    return with([ms](auto& frame) { frame.u64(tag::timeout_ms, ms); });
}
start& start::grace(std::uint32_t ms) {
    return with([ms](auto& frame) { frame.u32(tag::grace_ms, ms); });
}
start& start::run_id(char fill) {
    return with([fill](auto& frame) { frame.bytes(tag::run_id, std::string(protocol::run_id_size, fill)); });
}
start& start::open_stdin() {
    return with([](auto& frame) { frame.empty(tag::open_stdin); });
}
start& start::variable(std::string text) {
    return with([text = std::move(text)](auto& frame) { frame.bytes(tag::variable, text); });
}
start& start::directory(std::string text) {
    return with([text = std::move(text)](auto& frame) { frame.bytes(tag::directory, text); });
}

std::string start::frame(std::uint32_t stream) const {
    std::string out;
    protocol::frame_writer writer(out, protocol::frame_type::start, stream);
    for (const auto& add : fields_) {
        add(writer);
    }
    writer.finish();
    return out;
}

client::client(const agent_process& agent) : fd_(agent.connect()) {
    protocol::hello message;
    std::random_device random;
    for (auto& byte : message.nonce) {
        byte = static_cast<char>(random());
    }
    std::string out;
    protocol::append_hello(out, message);
    send(out);
    protocol::welcome_finder finder(message.nonce);
    protocol::welcome found;
    char buffer[4096];
    for (bool done = false; !done;) {
        const auto count = recv(fd_, buffer, sizeof buffer, 0);
        BOOST_REQUIRE(count > 0);
        done = finder.feed({buffer, static_cast<std::size_t>(count)}, found);
    }
    BOOST_TEST(found.version == protocol::version);
    BOOST_TEST(finder.skipped() == 0U);
    input_ = finder.rest();
    parser_.feed(input_);
    BOOST_REQUIRE(pump([this] { return ready_; }));
}

client::~client() {
    close(fd_);
}

void client::send(const std::string& bytes) {
    for (std::string_view left = bytes; !left.empty();) {
        const auto count = ::send(fd_, left.data(), left.size(), MSG_NOSIGNAL);
        if (count <= 0) {
            return; // seen when reading
        }
        left.remove_prefix(static_cast<std::size_t>(count));
    }
}

std::uint32_t client::begin(const start& command) {
    const auto number = next_++;
    send(command.frame(number));
    return number;
}

outcome client::finish(std::uint32_t stream) {
    BOOST_REQUIRE_MESSAGE(pump([&] { return streams_[stream].ended; }),
                          "stream " << stream << " does not end");
    order(protocol::frame_type::forget, stream);
    return streams_[stream];
}

void client::write(std::uint32_t stream, std::string_view bytes) {
    std::string out;
    protocol::append_data(out, stream, protocol::channel::in, bytes);
    send(out);
}

void client::end_input(std::uint32_t stream) {
    std::string out;
    protocol::append_end_of_data(out, stream, protocol::channel::in);
    send(out);
}

void client::order(protocol::frame_type type, std::uint32_t stream) {
    std::string out;
    protocol::append_empty(out, type, stream);
    send(out);
}

void client::resume(std::uint32_t stream, std::uint64_t out_offset, std::uint64_t err_offset) {
    std::string out;
    protocol::frame_writer(out, protocol::frame_type::resume, stream)
        .u64(tag::out_offset, out_offset)
        .u64(tag::err_offset, err_offset);
    send(out);
    next_ = std::max(next_, stream + 1);
}

void client::credit(std::uint32_t stream, std::uint64_t count) {
    std::string out;
    protocol::append_credit(out, stream, protocol::channel::out, count);
    send(out);
}

bool client::receive(std::chrono::milliseconds limit) {
    pollfd entry{fd_, POLLIN, 0};
    if (poll(&entry, 1, static_cast<int>(limit.count())) <= 0) {
        return false;
    }
    input_.resize(64 * 1024);
    const auto count = recv(fd_, input_.data(), input_.size(), 0);
    closed_ = count <= 0;
    input_.resize(closed_ ? 0 : static_cast<std::size_t>(count));
    parser_.feed(input_);
    return !closed_;
}

bool client::pump(const std::function<bool()>& done, std::chrono::milliseconds limit) {
    const auto until = clock_type::now() + limit;
    for (;;) {
        protocol::frame_view frame;
        while (!done()) {
            const auto status = parser_.next(frame);
            if (status == protocol::parse_status::need_more) {
                break;
            }
            BOOST_REQUIRE((status == protocol::parse_status::ok));
            handle(frame);
        }
        if (done()) {
            return true;
        }
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - clock_type::now());
        if (left <= 0ms || !receive(left)) {
            return done();
        }
    }
}

void client::handle(const protocol::frame_view& frame) {
    const auto number = frame.header.stream;
    switch (frame.header.type) {
    case protocol::frame_type::ready:
        ready_ = true;
        return;
    case protocol::frame_type::pong:
        ++pongs_;
        return;
    case protocol::frame_type::started:
        streams_[number].pid = protocol::find_field(frame.payload, tag::pid).value().u32();
        return;
    case protocol::frame_type::data: {
        auto& target = streams_[number];
        BOOST_REQUIRE(!target.ended);
        const bool out = frame.header.flags == static_cast<std::uint8_t>(protocol::channel::out);
        auto& received = out ? target.out_received : target.err_received;
        received += frame.payload.size();
        if (!discard) {
            (out ? target.out : target.err).append(frame.payload);
        }
        if (automatic_credit) {
            std::string answer;
            protocol::append_credit(answer, number, static_cast<protocol::channel>(frame.header.flags),
                                    received);
            send(answer);
        }
        return;
    }
    case protocol::frame_type::credit:
        streams_[number].stdin_credit = *protocol::exact_u64(frame.payload);
        return;
    case protocol::frame_type::end:
        handle_end(streams_[number], frame.payload);
        return;
    case protocol::frame_type::stream_state: {
        auto& state = held_[number];
        const auto offset = [&](tag id) {
            return protocol::find_field(frame.payload, id).value().u64().value();
        };
        state.out_offset = offset(tag::out_offset);
        state.err_offset = offset(tag::err_offset);
        state.in_offset = offset(tag::in_offset);
        state.ended = protocol::find_field(frame.payload, tag::ended).has_value();
        if (const auto id = protocol::find_field(frame.payload, tag::run_id)) {
            state.run_id = id->value;
        }
        next_ = std::max(next_, number + 1);
        return;
    }
    default:
        BOOST_FAIL("unexpected frame");
        return;
    }
}

void client::handle_end(outcome& target, std::string_view payload) {
    BOOST_REQUIRE(!target.ended);
    target.ended = true;
    protocol::field_reader reader(payload);
    for (protocol::field one; reader.next(one);) {
        switch (one.id) {
        case tag::cause:
            target.cause = static_cast<protocol::end_cause>(one.u8().value());
            break;
        case tag::failure:
            target.failure = static_cast<protocol::failure_kind>(one.u16().value());
            break;
        case tag::exit_code:
            target.exit_code = one.u32();
            break;
        case tag::exit_signal:
            target.exit_signal = one.u32();
            break;
        case tag::out_total:
            target.out_total = one.u64().value();
            break;
        case tag::err_total:
            target.err_total = one.u64().value();
            break;
        case tag::dropped:
            target.dropped = one.u64().value();
            break;
        case tag::duration_us:
            target.duration_us = one.u64().value();
            break;
        case tag::text:
            target.text = one.value;
            break;
        default:
            break;
        }
    }
    BOOST_REQUIRE(!reader.malformed());
}

} // namespace sandboxd::agent::test
