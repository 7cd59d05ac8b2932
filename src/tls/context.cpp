#include "tls/context.hpp"

#include "tls/stream.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <array>
#include <fstream>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string_view>

namespace sandboxd::tls {

namespace {

using boost::system::error_code;

constexpr std::string_view http11 = "\x08http/1.1";

constexpr std::string_view plain_answer = "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"
                                          "Content-Length: 44\r\nConnection: close\r\n\r\n"
                                          "{\"detail\":\"this port speaks TLS, use https\"}";

/// http/1.1 when the client offers it; a client that offers only others (h2) is refused by the handshake.
int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* offered,
                    unsigned int offered_size, void*) {
    unsigned char* chosen = nullptr;
    const int found =
        SSL_select_next_proto(&chosen, out_size, reinterpret_cast<const unsigned char*>(http11.data()),
                              static_cast<unsigned>(http11.size()), offered, offered_size);
    *out = chosen;
    return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

bool spoke_http(const error_code& failed) {
    return failed.category() == asio::error::get_ssl_category() &&
           ERR_GET_REASON(static_cast<unsigned long>(failed.value())) == SSL_R_HTTP_REQUEST;
}

class openssl_context final : public server_context, public std::enable_shared_from_this<openssl_context> {
public:
    openssl_context() : context_(asio::ssl::context::tls_server) {}

    [[nodiscard]] task<result<net::stream_ptr>> accept(net::stream_ptr plain,
                                                       std::chrono::milliseconds limit) override;

    asio::ssl::context context_;
};

task<result<net::stream_ptr>> openssl_context::accept(net::stream_ptr plain,
                                                      std::chrono::milliseconds limit) {
    auto stream = std::make_shared<ssl_stream>(layer(std::move(plain)), context_);
    asio::steady_timer deadline(stream->get_executor(), limit);
    auto late = std::make_shared<bool>(false);
    deadline.async_wait([stream, late](error_code failed) {
        if (!failed) {
            *late = true;
            stream->next_layer().below().close();
        }
    });
    const auto [failed] =
        co_await stream->async_handshake(asio::ssl::stream_base::server, asio::as_tuple(asio::use_awaitable));
    deadline.cancel();
    if (*late) {
        co_return error{errc::timeout, "the TLS handshake took too long"};
    }
    if (!failed) {
        co_return wrap(std::move(stream));
    }
    if (spoke_http(failed)) {
        auto& below = stream->next_layer().below();
        const auto answer = asio::buffer(plain_answer);
        co_await below.async_write_some(answer, asio::as_tuple(asio::use_awaitable));
        below.shutdown_send();
    }
    stream->next_layer().below().close();
    co_return error{errc::protocol, "the TLS handshake failed: " + failed.message()};
}

std::optional<error> unreadable(const std::string& file) {
    std::ifstream input(file);
    if (!input || input.peek() == std::ifstream::traits_type::eof()) {
        return error{errc::invalid, "cannot read " + file};
    }
    return std::nullopt;
}

} // namespace

result<std::shared_ptr<server_context>> load_server(const std::string& certificate, const std::string& key) {
    for (const auto& file : {certificate, key}) {
        if (auto failed = unreadable(file)) {
            return *failed;
        }
    }
    auto made = std::make_shared<openssl_context>();
    SSL_CTX* native = made->context_.native_handle();
    SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
    SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                    SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_alpn_select_cb(native, &choose_protocol, nullptr);
    error_code failed;
    made->context_.use_certificate_chain_file(certificate, failed);
    if (failed) {
        return error{errc::invalid, certificate + " holds no certificate in PEM form: " + failed.message()};
    }
    made->context_.use_private_key_file(key, asio::ssl::context::pem, failed);
    if (failed) {
        return error{errc::invalid,
                     key + " holds no private key for " + certificate + ": " + failed.message()};
    }
    return std::shared_ptr<server_context>(std::move(made));
}

} // namespace sandboxd::tls
