#include "core/deadline.hpp"
#include "docker/client.hpp"

#include <boost/asio/co_spawn.hpp>

namespace sandboxd::docker {

namespace asio = boost::asio;

namespace {

using counter = std::shared_ptr<std::atomic<std::size_t>>;

/// One of the streams that the cap counts.
class counted_stream final : public net::stream {
public:
    counted_stream(net::stream_ptr inner, counter count)
        : inner_(std::move(inner)), count_(std::move(count)) {}
    ~counted_stream() override { --*count_; }

    asio::any_io_executor get_executor() override { return inner_->get_executor(); }
    void read_some(asio::mutable_buffer buffer, net::io_handler handler) override {
        inner_->read_some(buffer, std::move(handler));
    }
    void write_some(std::span<const asio::const_buffer> buffers, net::io_handler handler) override {
        inner_->write_some(buffers, std::move(handler));
    }
    void shutdown_send() override { inner_->shutdown_send(); }
    void close() noexcept override { inner_->close(); }
    int native_handle() const noexcept override { return inner_->native_handle(); }

private:
    net::stream_ptr inner_;
    counter count_;
};

/// A place under the cap until a stream takes it over.
class place {
public:
    place(counter count, std::size_t cap) : count_(std::move(count)) {
        if (count_->fetch_add(1) >= cap) {
            --*count_;
            count_.reset();
        }
    }
    ~place() {
        if (count_ != nullptr) {
            --*count_;
        }
    }
    place(const place&) = delete;
    place& operator=(const place&) = delete;

    explicit operator bool() const noexcept { return count_ != nullptr; }
    [[nodiscard]] net::stream_ptr count(net::stream_ptr stream) {
        return std::make_unique<counted_stream>(std::move(stream), std::move(count_));
    }

private:
    counter count_;
};

bool names(const response_head& head, std::string_view type) {
    return std::string_view(head.content_type).substr(0, type.size()) == type;
}

/// Content-Type tells from API 1.42 on; before, it always says raw (engine-facts A6).
bool multiplexed(const response_head& head, bool tty, api_version agreed) {
    if (names(head, "application/vnd.docker.multiplexed-stream")) {
        return true;
    }
    if (agreed >= api_version{1, 42} && names(head, "application/vnd.docker.raw-stream")) {
        return false;
    }
    return !tty;
}

} // namespace

task<answer<hijacked>> client::hijack_now(request what, hijack_options options, api_version agreed,
                                          std::shared_ptr<progress> state) {
    place mine(hijacked_, options_.hijacked);
    if (!mine) {
        co_return no_answer(errc::capacity, "too many streams to the docker daemon are open (" +
                                                std::to_string(options_.hijacked) + ")");
    }
    auto one = co_await dial(co_await asio::this_coro::executor);
    if (!one) {
        co_return one.error();
    }
    state->sent = true;
    const auto sent = co_await (*one)->send(what, path_prefix_ + "/v" + agreed.text());
    auto head = co_await (*one)->read_head(false);
    if (!head) {
        auto failed = sent ? head.error() : sent.error();
        failed.may_have_happened = true;
        co_return failed;
    }
    if (head->status != 101 && head->status != 200) {
        const auto body = co_await read_body(**one);
        co_return from_answer(what.what, head->status, body ? *body : std::string());
    }
    if (head->status == 200 && head->sized) {
        co_return no_answer(errc::protocol,
                            "the answer to an upgrade has a length: a proxy stands between us "
                            "and the daemon that cannot carry streams",
                            true);
    }
    hijacked made;
    made.multiplexed = multiplexed(*head, options.tty, agreed);
    const bool apart = made.multiplexed && options.demultiplex;
    const bool chunked = head->status == 200 && head->chunked;
    made.stream = mine.count((*one)->hijack(chunked, apart, std::move(options.side)));
    made.multiplexed = made.multiplexed && !apart;
    co_return made;
}

task<answer<hijacked>> client::hijack(request what, hijack_options options, std::chrono::milliseconds limit) {
    const auto until = std::chrono::steady_clock::now() + limit;
    auto self = shared_from_this();
    auto asked = version(limit);
    const auto agreed = co_await asio::co_spawn(strand_, std::move(asked), asio::use_awaitable);
    if (!agreed) {
        co_return agreed.error();
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    auto state = std::make_shared<progress>();
    const std::string name = what.what;
    what.method = "POST";
    what.upgrade = true;
    auto work = hijack_now(std::move(what), std::move(options), *agreed, state);
    auto done = co_await core::with_timeout(std::move(work), std::max(left, std::chrono::milliseconds(0)));
    if (!done) {
        co_return no_answer(errc::timeout, "cannot " + name + ": no answer from the daemon in time",
                            state->sent);
    }
    if (done->has_error() && done->error().status == 0) {
        done->error().message = "cannot " + name + ": " + done->error().message;
    }
    co_return std::move(*done);
}

} // namespace sandboxd::docker
