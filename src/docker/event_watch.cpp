#include "core/deadline.hpp"
#include "docker/engine_client.hpp"
#include "docker/json_stream.hpp"

#include <algorithm>

namespace sandboxd::docker {

namespace {

constexpr milliseconds head_limit{30'000};
constexpr milliseconds shortest_pause{100};
constexpr milliseconds longest_pause{5000};

} // namespace

task<answer<void>> engine_client::watch_once(filter_list filters, event_sink sink,
                                             std::shared_ptr<event_cursor> cursor,
                                             std::shared_ptr<bool> opened) {
    auto to = target("/events").with("filters", filters_json(filters));
    if (const auto since = cursor->since(); !since.empty()) {
        to = std::move(to).with("since", since);
    }
    auto stream = co_await http_->open(get("follow the daemon's events", to.text()), head_limit);
    if (!stream) {
        co_return stream.error();
    }
    if (sink.connected) {
        sink.connected(*opened);
    }
    *opened = true;
    json_stream reader;
    std::vector<char> part(16384);
    const auto each = [&](json::object message) {
        const auto one = read_event(message);
        if (one && cursor->accept(*one)) {
            sink.event(*one);
        }
    };
    while (true) {
        auto got = co_await stream->read_some(part);
        if (!got) {
            co_return got.error();
        }
        if (*got == 0) {
            co_return no_answer(errc::unavailable, "the daemon ended the event stream");
        }
        if (auto fed = reader.feed({part.data(), *got}, each); !fed) {
            co_return fed;
        }
    }
}

task<void> engine_client::watch_now(filter_list filters, event_sink sink) {
    auto cursor = std::make_shared<event_cursor>();
    auto opened = std::make_shared<bool>(false);
    auto pause = shortest_pause;
    while (true) {
        const auto began = std::chrono::steady_clock::now();
        const auto ended = co_await watch_once(filters, sink, cursor, opened);
        if (sink.lost) {
            sink.lost(ended.error());
        }
        // A stream that held for a while starts the back-off anew.
        pause = std::chrono::steady_clock::now() - began > longest_pause ? shortest_pause : pause;
        if (!co_await core::sleep_for(pause)) {
            co_return;
        }
        pause = std::min(pause * 2, longest_pause);
    }
}

task<void> engine_client::watch_events(filter_list filters, event_sink sink) {
    auto work = watch_now(std::move(filters), std::move(sink));
    co_await boost::asio::co_spawn(http_->strand(), std::move(work), boost::asio::use_awaitable);
}

} // namespace sandboxd::docker
