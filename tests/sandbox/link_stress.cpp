// Many threads on one link while its channel is cut again and again, the agent being a plain echo of the
// protocol in a thread of its own. For ThreadSanitizer: no test framework, exit status 1 on the first fault.

#include "core/fd.hpp"
#include "core/random.hpp"
#include "core/spawn.hpp"
#include "net/connect.hpp"
#include "protocol/handshake.hpp"
#include "sandbox/agent_sandbox.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/strand.hpp>

#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

namespace asio = boost::asio;
using namespace sandboxd;
using namespace sandboxd::sandboxes;
using local = asio::local::stream_protocol;

namespace {

constexpr int threads = 4;
constexpr int callers = 16;
constexpr int commands = 200; ///< of each caller
const std::string output(3000, 'o');

[[noreturn]] void fail(const char* what) {
    std::fprintf(stderr, "link_stress: %s\n", what);
    std::_Exit(1);
}

/// Answers every start with its output and end; remembers what it has not seen forgotten.
class echo_agent {
public:
    void serve(core::unique_fd channel) {
        const std::lock_guard one_channel_at_a_time(serving_);
        protocol::frame_parser parser(protocol::sender::host);
        std::vector<char> buffer(64 * 1024);
        for (;;) {
            const auto count = ::recv(channel.get(), buffer.data(), buffer.size(), 0);
            if (count <= 0) {
                return;
            }
            parser.feed({buffer.data(), static_cast<std::size_t>(count)});
            std::string out;
            protocol::frame_view frame;
            while (parser.next(frame) == protocol::parse_status::ok) {
                answer(frame, out);
            }
            if (::send(channel.get(), out.data(), out.size(), MSG_NOSIGNAL) < 0) {
                return;
            }
        }
    }
    int started = 0; ///< read after the threads are joined

private:
    void answer(const protocol::frame_view& frame, std::string& out) {
        const auto stream = frame.header.stream;
        if (frame.header.type == protocol::frame_type::hello) {
            protocol::append_welcome(out, protocol::read_hello(frame.payload)->nonce,
                                     {protocol::version, {}});
            for (const auto& [number, id] : held_) {
                protocol::frame_writer(out, protocol::frame_type::stream_state, number)
                    .bytes(protocol::tag::run_id, id)
                    .empty(protocol::tag::ended);
            }
            protocol::append_empty(out, protocol::frame_type::ready, 0);
        } else if (frame.header.type == protocol::frame_type::start) {
            ++started;
            held_[stream] = std::string(protocol::find_field(frame.payload, protocol::tag::run_id)->value);
            send_from(stream, 0, out);
        } else if (frame.header.type == protocol::frame_type::resume) {
            const auto offset = protocol::find_field(frame.payload, protocol::tag::out_offset)->u64();
            send_from(stream, static_cast<std::size_t>(*offset), out);
        } else if (frame.header.type == protocol::frame_type::forget) {
            held_.erase(stream);
        }
    }

    static void send_from(std::uint32_t stream, std::size_t offset, std::string& out) {
        if (offset < output.size()) {
            protocol::append_data(out, stream, protocol::channel::out,
                                  std::string_view(output).substr(offset));
        }
        protocol::frame_writer(out, protocol::frame_type::end, stream)
            .u8(protocol::tag::cause, 1)
            .u32(protocol::tag::exit_code, 0)
            .u64(protocol::tag::out_total, output.size());
    }

    std::mutex serving_;
    std::map<std::uint32_t, std::string> held_;
};

class stress_host final : public sandbox_host {
public:
    explicit stress_host(echo_agent& agent) : agent_(agent) {}
    std::string_view type() const noexcept override { return "stress"; }
    task<result<net::stream_ptr>> connect(asio::any_io_executor executor) override {
        local::socket ours(executor);
        local::socket theirs(executor);
        asio::local::connect_pair(ours, theirs);
        theirs.non_blocking(false);
        core::unique_fd far(theirs.release());
        const std::lock_guard lock(mutex_);
        newest_.reset(::dup(ours.native_handle()));
        serving_.emplace_back([this](core::unique_fd channel) { agent_.serve(std::move(channel)); },
                              std::move(far));
        co_return net::adopt(executor, core::unique_fd(ours.release()));
    }
    std::optional<command_user> default_user() const override { return std::nullopt; }
    bool alive() const noexcept override { return true; }
    void on_death(std::function<void()>) override {}
    std::optional<std::uint64_t> oom_kills() const override { return std::nullopt; }
    task<result<usage_sample>> usage() override { co_return usage_sample(); }
    task<void> terminate(std::chrono::milliseconds, bool) override { co_return; }
    std::string handle() const override { return "stress"; }

    void cut() {
        const std::lock_guard lock(mutex_);
        if (newest_) {
            ::shutdown(newest_.get(), SHUT_RDWR);
        }
    }
    void join() {
        cut();
        serving_.clear();
    }

private:
    echo_agent& agent_;
    std::mutex mutex_;
    core::unique_fd newest_;
    std::vector<std::jthread> serving_;
};

task<void> call(std::shared_ptr<sandbox> box, std::atomic<int>& done) {
    for (int i = 0; i < commands; ++i) {
        exec_request request;
        request.run_id = core::random_hex(16);
        request.command = "x";
        request.timeout = std::chrono::seconds(60);
        const auto answer = co_await box->exec(std::move(request));
        if (!answer || answer->output != output) {
            fail(answer ? "wrong output" : answer.error().message.c_str());
        }
        ++done;
    }
}

task<void> drive(agent_sandbox_factory factory, std::shared_ptr<stress_host> host,
                 asio::any_io_executor executor, core::gate& background, std::atomic<int>& done) {
    auto box = co_await factory(host, false);
    if (!box) {
        fail("no sandbox");
    }
    for (int i = 0; i < callers; ++i) {
        core::spawn(asio::make_strand(executor), "caller", background, call(*box, done));
    }
}

} // namespace

int main() {
    echo_agent agent;
    const auto host = std::make_shared<stress_host>(agent);
    asio::io_context context(threads);
    core::gate background;
    core::gate links;
    std::atomic<int> done{0};
    const auto factory = create_agent_sandbox_factory(context.get_executor(), links, {});
    core::spawn(context.get_executor(), "driver", background,
                drive(factory, host, context.get_executor(), background, done));
    std::vector<std::jthread> running;
    for (int i = 0; i < threads; ++i) {
        running.emplace_back([&context] { context.run(); });
    }
    while (done < callers * commands) {
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
        host->cut();
    }
    running.clear();
    host->join();
    if (agent.started != callers * commands) {
        fail("a command was started twice or not at all");
    }
    return 0;
}
