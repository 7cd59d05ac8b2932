#include "client/http_client.hpp"

#include "client/failure.hpp"
#include "core/deadline.hpp"
#include "core/utf8.hpp"
#include "wire/json_parse.hpp"

#include <boost/json/object.hpp>

#include <algorithm>

namespace sandboxd::client {

namespace {

constexpr std::size_t most_idle = 20;
/// Shorter than any server's patience: the reference's is 5 s.
constexpr std::chrono::seconds idle_time{4};
/// The whole exchange, for a service that says something now and then but never ends.
constexpr std::chrono::minutes least_total{10};
constexpr int total_silences = 6;

} // namespace

http_client::http_client(boost::asio::any_io_executor strand, std::unique_ptr<dialer> dialer,
                         service_url where, std::size_t max_answer, std::chrono::milliseconds connect_timeout)
    : strand_(std::move(strand)),
      dialer_(std::move(dialer)),
      where_(std::move(where)),
      max_answer_(max_answer),
      connect_timeout_(connect_timeout) {}

std::unique_ptr<connection> http_client::take() {
    const auto now = std::chrono::steady_clock::now();
    while (!idle_.empty()) {
        auto last = std::move(idle_.back()); // the warmest
        idle_.pop_back();
        if (now - last.since < idle_time && last.one->quiet()) {
            return std::move(last.one);
        }
    }
    return nullptr;
}

void http_client::keep(std::unique_ptr<connection> one) {
    if (!one->reusable()) {
        return;
    }
    const auto now = std::chrono::steady_clock::now();
    std::erase_if(idle_, [&](const resting& old) { return now - old.since >= idle_time; });
    if (idle_.size() < most_idle) {
        idle_.push_back(resting{std::move(one), now});
    }
}

failure http_client::unreachable(const std::string& why) const {
    return failed(fault::unreachable, "could not reach the sandbox service at " + where_.text + ": " + why);
}

task<outcome<std::unique_ptr<connection>>> http_client::dial() {
    auto stream = co_await core::with_timeout(dialer_->dial(strand_), connect_timeout_);
    if (!stream) {
        co_return unreachable("no connection in time");
    }
    if (!*stream) {
        co_return unreachable(stream->error().message);
    }
    co_return std::make_unique<connection>(std::move(**stream), where_.host_field, where_.prefix,
                                           max_answer_);
}

task<outcome<http_answer>> http_client::call_now(http_request what) {
    bool fresh = false;
    while (true) {
        auto one = fresh ? nullptr : take();
        if (one == nullptr) {
            auto made = co_await dial();
            if (!made) {
                co_return made.error();
            }
            one = std::move(*made);
            fresh = true;
        }
        auto answer = co_await one->exchange(what);
        if (answer) {
            keep(std::move(one));
            co_return std::move(*answer);
        }
        const auto& why = answer.error();
        // The service closed a kept connection: it has not seen what it did not get whole.
        const bool stale = !fresh && one->used() && why.closed && !why.answered;
        if (stale && (!why.sent || what.repeatable)) {
            fresh = true;
            continue;
        }
        if (why.malformed) {
            co_return failed(fault::malformed,
                             "the service at " + where_.text + " does not answer like sandboxd: " + why.why);
        }
        co_return unreachable(why.why);
    }
}

task<outcome<http_answer>> http_client::call(http_request what) {
    const auto self = shared_from_this();
    const auto total = std::max<std::chrono::milliseconds>(least_total, what.silence * total_silences);
    auto done = co_await core::with_timeout(call_now(std::move(what)), total);
    // A cancelled read looks like a lost connection from where it was awaited.
    const auto state = co_await boost::asio::this_coro::cancellation_state;
    if (state.cancelled() != boost::asio::cancellation_type::none) {
        throw boost::system::system_error(boost::asio::error::operation_aborted);
    }
    if (!done) {
        co_return unreachable("the answer had no end");
    }
    co_return std::move(*done);
}

namespace {

/// "session_id: String should match …", of a list of faults such as a 422 brings; empty for another list.
std::string faults_told(const boost::json::array& faults) {
    std::string told;
    for (const auto& one : faults) {
        const auto* fault = one.if_object();
        const auto* words = fault != nullptr ? fault->if_contains("msg") : nullptr;
        const auto* place = fault != nullptr ? fault->if_contains("loc") : nullptr;
        if (words == nullptr || !words->is_string() || place == nullptr || !place->is_array()) {
            return {};
        }
        std::string where;
        for (const auto& step : place->get_array()) {
            if (step.is_string() && step.get_string() == "body") {
                continue;
            }
            where += (where.empty() ? "" : ".") +
                     (step.is_string() ? std::string(step.get_string()) : boost::json::serialize(step));
        }
        told += (told.empty() ? "" : "; ") + where + (where.empty() ? "" : ": ") +
                std::string(words->get_string());
    }
    return told;
}

} // namespace

std::string detail_of(const http_answer& answer) {
    constexpr std::size_t longest = 2000;
    std::string text = core::to_utf8(answer.body.substr(0, 64 * 1024));
    if (const auto parsed = wire::parse_json(text);
        const auto* value = std::get_if<boost::json::value>(&parsed)) {
        const auto* object = value->if_object();
        const auto* detail = object != nullptr ? object->if_contains("detail") : nullptr;
        if (detail != nullptr && detail->is_string()) {
            text = std::string(detail->get_string());
        } else if (detail != nullptr && detail->is_array()) {
            const auto told = faults_told(detail->get_array());
            text = told.empty() ? text : told;
        }
    }
    if (text.size() > longest) {
        text.resize(longest);
        text = core::to_utf8(std::move(text)) + "...";
    }
    return text;
}

} // namespace sandboxd::client
