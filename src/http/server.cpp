#include "http/server.hpp"

#include "core/deadline.hpp"
#include "core/gate.hpp"
#include "core/log.hpp"
#include "core/spawn.hpp"
#include "http/connection.hpp"

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>

#include <atomic>
#include <list>
#include <mutex>

namespace sandboxd::http {

namespace asio = boost::asio;

namespace {

/// A connection as the server knows it, from before the TLS handshake to the end.
struct guest {
    explicit guest(asio::any_io_executor on) : executor(std::move(on)) {}
    asio::any_io_executor executor;
    std::shared_ptr<asio::cancellation_signal> cancel =
        std::make_shared<asio::cancellation_signal>(); ///< emitted on the executor only
    std::shared_ptr<connection> connection;            ///< likewise; empty during the handshake
    bool begun = false;                                ///< likewise
    bool unwanted = false;                             ///< likewise; the server stopped before it began
    bool over = false;                                 ///< likewise
};

using guest_ptr = std::shared_ptr<guest>;

/// Ends the coroutine. One that is cancelled before its first step never runs, not even what it does at its
/// end, so such a one is told instead.
void cancel(const guest_ptr& one) {
    one->unwanted = true;
    if (one->begun && !one->over) {
        one->cancel->emit(asio::cancellation_type::terminal);
    }
}

void wind_down(const guest_ptr& one) {
    if (one->connection) {
        one->connection->wind_down();
    } else {
        cancel(one);
    }
}

void abort(const guest_ptr& one) {
    if (one->connection) {
        one->connection->abort();
    }
    cancel(one);
}

class http_server final : public server {
public:
    http_server(handler on_request, memory_budget& budget, const limits& bounds)
        : shared_{std::move(on_request), budget, bounds} {}

    void listen(net::listener_ptr listener, std::shared_ptr<tls::server_context> context) override {
        std::shared_ptr<net::listener> kept(std::move(listener));
        {
            const std::lock_guard lock(mutex_);
            if (stopping_) {
                return;
            }
            listeners_.push_back(kept);
        }
        core::spawn(kept->get_executor(), "accepting connections", gate_,
                    accept_loop(kept, std::move(context)));
    }

    void serve(net::stream_ptr stream, std::string peer) override {
        admit(std::move(stream), std::move(peer), {});
    }

    [[nodiscard]] task<void> stop(std::chrono::milliseconds grace) override;

    [[nodiscard]] std::size_t connections() const override {
        const std::lock_guard lock(mutex_);
        return guests_.size();
    }

private:
    task<void> accept_loop(std::shared_ptr<net::listener> listener,
                           std::shared_ptr<tls::server_context> context);
    task<void> host(guest_ptr one, std::list<guest_ptr>::iterator place, net::stream_ptr stream,
                    std::string peer, std::shared_ptr<tls::server_context> context);
    task<void> attend(guest_ptr one, net::stream_ptr stream, std::string peer,
                      std::shared_ptr<tls::server_context> context);
    void admit(net::stream_ptr stream, std::string peer, std::shared_ptr<tls::server_context> context);
    void for_each(void (*action)(const guest_ptr&));

    connection_context shared_;
    mutable std::mutex mutex_;
    bool stopping_ = false;
    std::vector<std::shared_ptr<net::listener>> listeners_;
    std::list<guest_ptr> guests_;
    core::gate gate_;
};

task<void> http_server::accept_loop(std::shared_ptr<net::listener> listener,
                                    std::shared_ptr<tls::server_context> context) {
    using namespace std::chrono_literals;
    for (;;) {
        bool full = connections() >= shared_.bounds.max_connections;
        while (full) {
            // They wait in the kernel's queue meanwhile.
            if (!co_await core::sleep_for(20ms)) {
                co_return;
            }
            const std::lock_guard lock(mutex_);
            if (stopping_) {
                co_return;
            }
            full = guests_.size() >= shared_.bounds.max_connections;
        }
        auto next = co_await listener->accept();
        if (!next) {
            co_return;
        }
        admit(std::move(next->stream), std::move(next->peer), context);
    }
}

void http_server::admit(net::stream_ptr stream, std::string peer,
                        std::shared_ptr<tls::server_context> context) {
    auto one = std::make_shared<guest>(stream->get_executor());
    std::list<guest_ptr>::iterator place;
    {
        const std::lock_guard lock(mutex_);
        if (stopping_) {
            return;
        }
        place = guests_.insert(guests_.end(), one);
    }
    auto executor = one->executor;
    auto signal = one->cancel;
    const bool begun = core::spawn(executor, "a connection", gate_,
                                   host(one, place, std::move(stream), std::move(peer), std::move(context)),
                                   std::move(signal));
    if (!begun) {
        const std::lock_guard lock(mutex_);
        guests_.erase(place);
    }
}

task<void> http_server::host(guest_ptr one, std::list<guest_ptr>::iterator place, net::stream_ptr stream,
                             std::string peer, std::shared_ptr<tls::server_context> context) {
    one->begun = true;
    std::exception_ptr failure;
    try {
        if (!one->unwanted) {
            co_await attend(one, std::move(stream), std::move(peer), std::move(context));
        }
    } catch (...) {
        failure = std::current_exception();
    }
    one->over = true;
    one->connection.reset();
    {
        const std::lock_guard lock(mutex_);
        guests_.erase(place);
    }
    if (failure) {
        std::rethrow_exception(failure);
    }
}

task<void> http_server::attend(guest_ptr one, net::stream_ptr stream, std::string peer,
                               std::shared_ptr<tls::server_context> context) {
    const bool secure = context != nullptr;
    if (secure) {
        auto made = co_await context->accept(std::move(stream), shared_.bounds.handshake_time);
        if (!made) {
            core::log::debug("{}: {}", peer, made.error().message);
            co_return;
        }
        stream = std::move(*made);
    }
    one->connection = std::make_shared<connection>(shared_, std::move(stream), std::move(peer), secure);
    auto kept = one->connection;
    co_await kept->run();
}

/// Posts an action to every connection, on its own executor.
void http_server::for_each(void (*action)(const guest_ptr&)) {
    std::vector<guest_ptr> all;
    {
        const std::lock_guard lock(mutex_);
        all.assign(guests_.begin(), guests_.end());
    }
    for (auto& one : all) {
        auto executor = one->executor;
        asio::post(executor, [one = std::move(one), action] { action(one); });
    }
}

task<void> drained(core::gate& gate, std::shared_ptr<core::shared_event> done) {
    co_await gate.drained();
    done->set();
}

task<void> http_server::stop(std::chrono::milliseconds grace) {
    using namespace std::chrono_literals;
    std::vector<std::shared_ptr<net::listener>> listeners;
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        listeners.swap(listeners_);
    }
    for (auto& one : listeners) {
        auto executor = one->get_executor();
        asio::post(executor, [one = std::move(one)] { one->close(); });
    }
    listeners.clear();
    for_each(&wind_down);
    gate_.close();
    auto empty = std::make_shared<core::shared_event>();
    core::gate helper;
    core::spawn(co_await asio::this_coro::executor, "waiting for connections", helper, drained(gate_, empty));
    if (!co_await empty->wait_for(grace)) {
        core::log::info("{} connections are still busy after the grace; cancelling them", connections());
        for_each(&abort);
        while (!co_await empty->wait_for(5s)) {
            core::log::warning("{} connections have not ended yet", connections());
        }
    }
    helper.close();
    co_await helper.drained();
}

} // namespace

std::unique_ptr<server> create_server(handler on_request, memory_budget& budget, const limits& bounds) {
    return std::make_unique<http_server>(std::move(on_request), budget, bounds);
}

} // namespace sandboxd::http
