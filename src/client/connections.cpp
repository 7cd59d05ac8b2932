#include "client/connections.hpp"

#include "client/strand_call.hpp"

#include <boost/asio/strand.hpp>

namespace sandboxd::client {

namespace {

task<bool> forget(std::shared_ptr<http_client> http) {
    http->forget();
    co_return true;
}

task<std::size_t> count_idle(std::shared_ptr<http_client> http) {
    co_return http->idle();
}

} // namespace

background::background() : work_(context_.get_executor()), thread_([this] { context_.run(); }) {}

background::~background() {
    work_.reset();
    thread_.join();
}

std::unique_ptr<connections::inside> parts_of(const boost::asio::any_io_executor& executor,
                                              std::unique_ptr<dialer> dialer, service_url where,
                                              const connection_options& options) {
    auto made = std::make_unique<connections::inside>();
    made->http =
        std::make_shared<http_client>(boost::asio::make_strand(executor), std::move(dialer), std::move(where),
                                      options.max_answer_bytes, options.connect_timeout);
    return made;
}

connections::connections(std::unique_ptr<inside> parts) : inside_(std::move(parts)) {}

connections::~connections() {
    if (inside_->thread) {
        // The streams belong to the thread's context: they are closed while it runs.
        block_on(inside_->http->strand(), forget(inside_->http));
    }
    inside_->http.reset();
    inside_->thread.reset();
}

outcome<std::shared_ptr<connections>> connections::create(const boost::asio::any_io_executor& executor,
                                                          const connection_options& where) {
    auto url = parse_url(where.url);
    if (!url) {
        return url.error();
    }
    auto dialer = create_dialer(*url, where);
    if (!dialer) {
        return dialer.error();
    }
    return std::shared_ptr<connections>(
        new connections(parts_of(executor, std::move(*dialer), std::move(*url), where)));
}

outcome<std::shared_ptr<connections>> connections::create(const connection_options& where) {
    auto thread = std::make_unique<background>();
    auto made = create(thread->executor(), where);
    if (made) {
        (*made)->inside_->thread = std::move(thread);
    }
    return made;
}

std::size_t connections::idle() const {
    if (inside_->thread) {
        return block_on(inside_->http->strand(), count_idle(inside_->http));
    }
    return inside_->http->idle();
}

} // namespace sandboxd::client
