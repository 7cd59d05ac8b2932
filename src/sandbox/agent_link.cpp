#include "sandbox/agent_link.hpp"

#include "core/log.hpp"
#include "core/random.hpp"
#include "core/spawn.hpp"
#include "core/strand.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace sandboxd::sandboxes {

namespace asio = boost::asio;

namespace {

constexpr std::size_t input_least = 4 * 1024; ///< while little comes: thousands of links are idle
constexpr std::size_t input_most = 128 * 1024;
constexpr std::size_t output_kept = 256 * 1024; ///< capacity that a channel keeps for the next write

auto clock_now() {
    return std::chrono::steady_clock::now();
}

protocol::nonce_bytes fresh_nonce() {
    std::array<unsigned char, protocol::nonce_size> bytes{};
    core::random_bytes(bytes);
    protocol::nonce_bytes out{};
    std::copy(bytes.begin(), bytes.end(), out.begin());
    return out;
}

} // namespace

/// One connection with its buffers; operations under way share it.
struct agent_link::channel {
    explicit channel(net::stream_ptr connected) : stream(std::move(connected)), input(input_least) {}

    net::stream_ptr stream;
    std::vector<char> input;
    std::string output; ///< being written
    std::size_t written = 0;
    bool writing = false;
};

std::shared_ptr<agent_link> agent_link::create(const asio::any_io_executor& executor, core::gate& background,
                                               connector connect, link_options options, events told) {
    return std::shared_ptr<agent_link>(
        new agent_link(executor, background, std::move(connect), options, std::move(told)));
}

agent_link::agent_link(const asio::any_io_executor& executor, core::gate& background, connector connect,
                       link_options options, events told)
    : strand_(core::make_strand(executor)),
      background_(background),
      connect_(std::move(connect)),
      options_(options),
      told_(std::move(told)),
      core_(options.limits, *this),
      timer_(strand_),
      back_off_(strand_),
      room_(strand_) {}

agent_link::~agent_link() = default;

task<result<void>> agent_link::open(std::chrono::milliseconds within) {
    const auto self = shared_from_this();
    if (!started_) {
        started_ = true;
        if (!core::spawn(strand_, "agent link", background_, run(self))) {
            co_return error{errc::unavailable, "the service is stopping", false};
        }
    }
    const auto opened = opened_;
    if (!co_await opened->wait_for(within)) {
        co_return error{errc::timeout, "the sandbox's agent did not answer in time", false};
    }
    if (!usable_) {
        co_return error{errc::gone, "the sandbox ended before its agent answered", false};
    }
    co_return result<void>();
}

/// Channel after channel until the link is closed.
task<void> agent_link::run(std::shared_ptr<agent_link> self) {
    auto delay = options_.back_off_first;
    bool again_at_once = true;
    while (!closing_) {
        const bool worked = co_await serve();
        if (closing_) {
            break;
        }
        if (worked) {
            delay = options_.back_off_first;
        }
        if (!worked || !again_at_once) {
            back_off_.expires_after(delay);
            co_await back_off_.async_wait(asio::as_tuple(asio::use_awaitable));
            delay = std::min(2 * delay, options_.back_off_most);
        }
        again_at_once = worked;
    }
    finish(why_);
}

/// One channel, from its connection to its end. True when it got as far as `ready`.
task<bool> agent_link::serve() {
    auto connected = co_await connect_(strand_);
    if (!connected) {
        core::log::debug("agent link: {}", connected.error().message);
        co_return false;
    }
    if (closing_) {
        co_return false;
    }
    const auto made = std::make_shared<channel>(std::move(*connected));
    channel_ = made;
    core_.open(fresh_nonce(), clock_now());
    greet_by_ = clock_now() + options_.greet_within;
    settle();
    co_await read_from(made);
    const bool worked = core_.ready();
    drop_channel();
    co_return worked;
}

task<void> agent_link::read_from(std::shared_ptr<channel> from) {
    while (from == channel_) {
        if (core_.congested()) {
            room_.clear();
            co_await room_.wait();
            continue;
        }
        const auto into = asio::buffer(from->input);
        const auto [failed, count] =
            co_await from->stream->async_read_some(into, asio::as_tuple(asio::use_awaitable));
        if (failed || count == 0 || from != channel_) {
            co_return;
        }
        if (!take({from->input.data(), count})) {
            co_return;
        }
        if (count == from->input.size() && count < input_most) {
            from->input.resize(2 * count);
        } else if (core_.running() == 0 && from->input.size() > input_least) {
            from->input = std::vector<char>(input_least);
        }
    }
}

/// False when the agent lied: the channel is to be cut.
bool agent_link::take(std::string_view bytes) {
    const auto lie = core_.receive(bytes, clock_now());
    if (lie) {
        note_lie(*lie);
        return false;
    }
    if (core_.ready() && greet_by_ != time_point::max()) {
        greet_by_ = time_point::max();
        usable_ = true;
        opened_->set();
    }
    settle();
    return true;
}

void agent_link::start(std::shared_ptr<link_stream> stream) {
    asio::dispatch(strand_,
                   [self = shared_from_this(), stream = std::move(stream)] { self->do_start(stream); });
}

void agent_link::do_start(const std::shared_ptr<link_stream>& stream) {
    if (closing_) {
        stream->on_failed({errc::gone, why_, false});
        return;
    }
    auto taken = core_.start(stream, clock_now());
    if (!taken) {
        stream->on_failed(std::move(taken).error());
        return;
    }
    settle();
}

void agent_link::abandon(std::shared_ptr<link_stream> stream) {
    asio::dispatch(strand_, [self = shared_from_this(), stream = std::move(stream)] {
        self->core_.abandon(*stream);
        self->settle();
    });
}

void agent_link::signal(std::shared_ptr<link_stream> stream, std::uint32_t number) {
    asio::dispatch(strand_, [self = shared_from_this(), stream = std::move(stream), number] {
        self->core_.signal(*stream, number);
        self->settle();
    });
}

void agent_link::resize(std::shared_ptr<link_stream> stream, std::uint16_t rows, std::uint16_t columns) {
    asio::dispatch(strand_, [self = shared_from_this(), stream = std::move(stream), rows, columns] {
        self->core_.resize(*stream, rows, columns);
        self->settle();
    });
}

std::size_t agent_link::write_in(link_stream& stream, std::string_view bytes) {
    const auto taken = core_.write_in(stream, bytes);
    settle();
    return taken;
}

void agent_link::end_in(link_stream& stream) {
    core_.end_in(stream);
    settle();
}

task<bool> agent_link::stop(run_id_bytes id, std::chrono::milliseconds within) {
    const auto self = shared_from_this();
    const auto gone = std::make_shared<core::shared_event>();
    asio::dispatch(strand_, [self, id, gone] {
        if (self->core_.stop(id) && self->core_.knows(id)) {
            self->stop_waiters_.push_back({id, gone});
        } else {
            gone->set();
        }
        self->settle();
    });
    const bool ended = co_await gone->wait_for(within);
    if (!ended) {
        asio::dispatch(strand_, [self, gone] {
            std::erase_if(self->stop_waiters_, [&](const stop_waiter& one) { return one.gone == gone; });
        });
    }
    co_return ended;
}

void agent_link::on_found(const found_command& command) {
    inherited_ += command.ended ? std::size_t(-1) : 1;
    if (told_.found) {
        told_.found(command);
    }
}

void agent_link::on_gone(const run_id_bytes& id) {
    if (stop_waiters_.empty()) {
        return;
    }
    std::erase_if(stop_waiters_, [&](const stop_waiter& one) {
        if (one.id == id) {
            one.gone->set();
        }
        return one.id == id;
    });
}

/// After anything that may have changed the core: send what can't wait, set the timer.
void agent_link::settle() {
    running_ = core_.running();
    flush();
    arm();
}

void agent_link::flush() {
    const auto to = channel_;
    if (!to || to->writing || !core_.urgent()) {
        return;
    }
    to->output.clear();
    to->written = 0;
    core_.take_output(to->output);
    if (!to->output.empty()) {
        to->writing = true;
        write_more(to);
    }
}

void agent_link::write_more(const std::shared_ptr<channel>& to) {
    const asio::const_buffer rest = asio::buffer(to->output) + to->written;
    auto done = [self = shared_from_this(), to](boost::system::error_code failed, std::size_t count) {
        self->on_written(to, failed, count);
    };
    to->stream->write_some({&rest, 1}, net::io_handler(asio::bind_executor(strand_, std::move(done))));
}

void agent_link::on_written(const std::shared_ptr<channel>& to, boost::system::error_code failed,
                            std::size_t count) {
    if (failed) {
        to->writing = false;
        to->stream->close(); // the reader notices
        return;
    }
    to->written += count;
    if (to->written < to->output.size()) {
        write_more(to);
        return;
    }
    to->writing = false;
    if (to->output.capacity() > output_kept) {
        to->output = std::string();
    }
    if (to == channel_) {
        flush();
        if (!core_.congested()) {
            room_.set();
        }
    }
}

void agent_link::drop_channel() {
    if (const auto old = std::exchange(channel_, nullptr)) {
        old->stream->close();
    }
    greet_by_ = time_point::max();
    core_.cut();
    room_.set();
}

} // namespace sandboxd::sandboxes
