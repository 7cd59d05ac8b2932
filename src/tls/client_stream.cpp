#include "tls/client_stream.hpp"

#include <boost/asio/append.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <openssl/err.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

namespace sandboxd::tls {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {
constexpr std::size_t record_size = 16 * 1024;
const error_code broken_rules = make_error_code(boost::system::errc::protocol_error);
} // namespace

/// Shared with the operations under way. Records go through two memory buffers of OpenSSL's: in_ holds what
/// came from below, out_ what has to go there.
struct client_stream::state : std::enable_shared_from_this<client_stream::state> {
    state(net::stream_ptr stream, ssl_ptr session) : below(std::move(stream)), ssl(std::move(session)) {
        in = BIO_new(BIO_s_mem());
        out = BIO_new(BIO_s_mem());
        BIO_set_mem_eof_return(in, -1); // empty means "more to come"
        BIO_set_mem_eof_return(out, -1);
        SSL_set_bio(ssl.get(), in, out); // owns both now
        SSL_set_connect_state(ssl.get());
    }

    [[nodiscard]] std::string take_out() const {
        std::string records(BIO_ctrl_pending(out), '\0');
        const int got = records.empty() ? 0 : BIO_read(out, records.data(), static_cast<int>(records.size()));
        records.resize(static_cast<std::size_t>(std::max(got, 0)));
        return records;
    }

    void put_in(std::size_t size) { BIO_write(in, arrived.data(), static_cast<int>(size)); }

    void complete(net::io_handler handler, error_code failed, std::size_t size) {
        asio::post(below->get_executor(), asio::append(std::move(handler), failed, size));
    }

    void read(asio::mutable_buffer into, net::io_handler handler) {
        if (into.size() == 0) {
            complete(std::move(handler), {}, 0);
            return;
        }
        ERR_clear_error();
        const int got =
            SSL_read(ssl.get(), into.data(), static_cast<int>(std::min(into.size(), record_size)));
        const int why = got > 0 ? SSL_ERROR_NONE : SSL_get_error(ssl.get(), got);
        flush(); // an answer to a key update, say
        if (got > 0) {
            complete(std::move(handler), {}, static_cast<std::size_t>(got));
        } else if (why == SSL_ERROR_WANT_READ) {
            read_below(into, std::move(handler));
        } else {
            complete(std::move(handler),
                     why == SSL_ERROR_ZERO_RETURN ? error_code(asio::error::eof) : broken_rules, 0);
        }
    }

    void read_below(asio::mutable_buffer into, net::io_handler handler) {
        auto slot = asio::get_associated_cancellation_slot(handler);
        auto taken = [self = shared_from_this(), into,
                      handler = std::move(handler)](error_code failed, std::size_t size) mutable {
            if (failed) {
                // An end without a farewell may be an attacker's: not end-of-file.
                const bool cut = failed == asio::error::eof;
                std::move(handler)(cut ? error_code(asio::error::connection_reset) : failed, 0);
                return;
            }
            self->put_in(size);
            self->read(into, std::move(handler));
        };
        below->read_some(asio::buffer(arrived),
                         net::io_handler(asio::bind_cancellation_slot(slot, std::move(taken))));
    }

    void write(std::span<const asio::const_buffer> buffers, net::io_handler handler) {
        std::size_t size = 0;
        for (const auto& buffer : buffers) {
            const std::size_t part = std::min(buffer.size(), record_size - size);
            ERR_clear_error();
            if (part > 0 && SSL_write(ssl.get(), buffer.data(), static_cast<int>(part)) <= 0) {
                complete(std::move(handler), asio::error::broken_pipe, 0);
                return;
            }
            size += part;
        }
        auto slot = asio::get_associated_cancellation_slot(handler);
        if (slot.is_connected()) {
            // Half a record can't be taken back: the connection is of no use after a cancelled write.
            slot.assign([weak = weak_from_this()](asio::cancellation_type) {
                if (auto self = weak.lock()) {
                    self->below->close();
                }
            });
        }
        writer.emplace(std::move(handler));
        written = size;
        flush();
    }

    void end_write(error_code failed) {
        if (!writer) {
            return;
        }
        net::io_handler handler = std::move(*writer);
        writer.reset();
        auto slot = asio::get_associated_cancellation_slot(handler);
        if (slot.is_connected()) {
            slot.clear();
        }
        complete(std::move(handler), failed, failed ? 0 : written);
    }

    void flush() {
        if (flushing) {
            return; // goes on by itself
        }
        sending = take_out();
        if (sending.empty()) {
            end_write({});
            return;
        }
        flushing = true;
        sent = 0;
        send_rest();
    }

    void send_rest() {
        const asio::const_buffer rest = asio::buffer(sending) + sent;
        auto done = [self = shared_from_this()](error_code failed, std::size_t size) {
            self->sent += size;
            if (!failed && self->sent < self->sending.size()) {
                self->send_rest();
                return;
            }
            self->flushing = false;
            if (failed) {
                self->end_write(failed);
            } else {
                self->flush();
            }
        };
        auto executor = below->get_executor();
        below->write_some(std::span(&rest, 1),
                          net::io_handler(asio::bind_executor(executor, std::move(done))));
    }

    net::stream_ptr below;
    ssl_ptr ssl;
    BIO* in = nullptr;
    BIO* out = nullptr;
    std::array<char, record_size> arrived{};
    std::string sending;
    std::size_t sent = 0;
    bool flushing = false;
    std::optional<net::io_handler> writer;
    std::size_t written = 0;
};

client_stream::client_stream(net::stream_ptr below, ssl_ptr session)
    : state_(std::make_shared<state>(std::move(below), std::move(session))) {}

client_stream::~client_stream() {
    close();
}

task<error_code> client_stream::handshake() {
    const auto self = state_;
    while (true) {
        ERR_clear_error();
        const int done = SSL_connect(self->ssl.get());
        const int why = done == 1 ? SSL_ERROR_NONE : SSL_get_error(self->ssl.get(), done);
        const std::string records = self->take_out();
        if (!records.empty()) {
            const auto [failed, size] = co_await asio::async_write(*self->below, asio::buffer(records),
                                                                   asio::as_tuple(asio::use_awaitable));
            if (failed) {
                co_return failed;
            }
        }
        if (done == 1) {
            co_return error_code();
        }
        if (why != SSL_ERROR_WANT_READ) {
            co_return broken_rules;
        }
        const auto [failed, size] = co_await self->below->async_read_some(
            asio::buffer(self->arrived), asio::as_tuple(asio::use_awaitable));
        if (failed) {
            co_return failed;
        }
        self->put_in(size);
    }
}

asio::any_io_executor client_stream::get_executor() {
    return state_->below->get_executor();
}

void client_stream::read_some(asio::mutable_buffer buffer, net::io_handler handler) {
    state_->read(buffer, std::move(handler));
}

void client_stream::write_some(std::span<const asio::const_buffer> buffers, net::io_handler handler) {
    state_->write(buffers, std::move(handler));
}

void client_stream::shutdown_send() {
    ERR_clear_error();
    (void)SSL_shutdown(state_->ssl.get()); // our farewell; the peer's is read as end-of-file
    state_->flush();
}

void client_stream::close() noexcept {
    state_->below->close();
}

int client_stream::native_handle() const noexcept {
    return state_->below->native_handle();
}

} // namespace sandboxd::tls
