#include "docker/exec_run.hpp"

#include "core/deadline.hpp"

#include <algorithm>

namespace sandboxd::docker {

namespace asio = boost::asio;

namespace {

using clock = std::chrono::steady_clock;

milliseconds until(clock::time_point when) {
    return std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(when - clock::now()));
}

struct piece {
    std::size_t size = 0;
    bool end = false;
};

task<piece> read_piece(net::stream& stream, asio::mutable_buffer into) {
    const auto [failed, size] = co_await stream.async_read_some(into, asio::as_tuple(asio::use_awaitable));
    piece got;
    got.size = size;
    got.end = static_cast<bool>(failed);
    co_return got;
}

void keep(exec_output& into, std::size_t cap, channel from, std::string_view bytes) {
    auto& text = from == channel::err || from == channel::system_error ? into.err : into.out;
    const std::size_t part = std::min(bytes.size(), cap - std::min(cap, into.out.size() + into.err.size()));
    text.append(bytes.substr(0, part));
    into.dropped += bytes.size() - part;
}

/// Reads to the end of the stream, or until the daemon says that the command has ended and nothing more comes
/// (hard-cases B1 08: a stream may stay open for ever).
task<answer<void>> drain(std::shared_ptr<engine> with, hijacked from, std::string exec, exec_limits limits,
                         clock::time_point deadline, std::shared_ptr<exec_output> into) {
    frame_demux demux;
    std::vector<char> part(32768);
    std::optional<clock::time_point> ended;
    const auto each = [&](channel to, std::string_view bytes) { keep(*into, limits.output, to, bytes); };
    while (true) {
        const auto last = ended ? *ended + limits.after_end : deadline;
        auto reading = read_piece(*from.stream, asio::buffer(part));
        const auto got = co_await core::with_timeout(std::move(reading), std::min(limits.look, until(last)));
        if (got) {
            const std::string_view bytes(part.data(), got->size);
            if (!from.multiplexed) {
                each(channel::out, bytes);
            } else if (!demux.feed(bytes, each)) {
                into->whole = false;
                co_return answer<void>();
            }
            if (got->end) {
                into->whole = into->whole && (!from.multiplexed || demux.finish().has_value());
                co_return answer<void>();
            }
            continue;
        }
        if (ended && clock::now() >= last) {
            into->whole = false;
            co_return answer<void>();
        }
        if (clock::now() >= deadline) {
            co_return no_answer(errc::timeout, "the command did not end in time", true);
        }
        if (!ended) {
            const auto state = co_await with->inspect_exec(exec, until(deadline));
            if (state && !state->running && state->exit_code) {
                ended = clock::now();
            }
        }
    }
}

} // namespace

task<answer<exec_state>> ended_exec(std::shared_ptr<engine> with, std::string exec, milliseconds limit) {
    const auto deadline = clock::now() + limit;
    milliseconds pause(10);
    while (true) {
        const auto state = co_await with->inspect_exec(exec, std::max(milliseconds(1), until(deadline)));
        if (!state || (!state->running && state->exit_code)) {
            co_return state;
        }
        if (clock::now() + pause >= deadline) {
            co_return no_answer(errc::timeout, "the daemon does not tell how the command ended", true);
        }
        co_await core::sleep_for(pause);
        pause = std::min(pause * 2, milliseconds(500));
    }
}

task<answer<exec_output>> run_exec(std::shared_ptr<engine> with, std::string container, exec_spec spec,
                                   exec_limits limits) {
    const auto deadline = clock::now() + limits.total;
    hijack_options options;
    options.tty = spec.tty;
    spec.attach_stdin = false;
    const auto exec = co_await with->create_exec(std::move(container), std::move(spec), limits.total);
    if (!exec) {
        co_return exec.error();
    }
    auto started =
        co_await with->start_exec(co_await asio::this_coro::executor, *exec, options, until(deadline));
    if (!started) {
        co_return started.error();
    }
    auto gathered = std::make_shared<exec_output>();
    auto read = co_await drain(with, std::move(*started), *exec, limits, deadline, gathered);
    if (!read) {
        co_return read.error();
    }
    const auto state = co_await ended_exec(with, *exec, until(deadline));
    if (!state) {
        co_return state.error();
    }
    gathered->exit_code = *state->exit_code;
    co_return std::move(*gathered);
}

} // namespace sandboxd::docker
