#include "agent_client.hpp"

#include <boost/test/unit_test.hpp>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <random>

// What the host says to the agent.

namespace sandboxd::agent::test {

using namespace std::chrono_literals;
using protocol::tag;
using clock_type = std::chrono::steady_clock;

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

} // namespace sandboxd::agent::test
