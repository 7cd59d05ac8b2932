#include "tls/client.hpp"

#include "core/deadline.hpp"
#include "tls/client_stream.hpp"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl/context.hpp>

#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace sandboxd::tls {

namespace asio = boost::asio;

namespace {

using boost::system::error_code;

class openssl_client final : public client_context, public std::enable_shared_from_this<openssl_client> {
public:
    openssl_client() : context_(asio::ssl::context::tls_client) {}

    [[nodiscard]] task<result<net::stream_ptr>> connect(net::stream_ptr plain, std::string host,
                                                        std::chrono::milliseconds limit) override;

    asio::ssl::context context_;
    bool verify_ = true;
};

/// Whom we mean to talk to. False when OpenSSL refuses the name.
bool expect_peer(SSL* session, const std::string& host, bool verify) {
    error_code not_numeric;
    (void)asio::ip::make_address(host, not_numeric);
    if (not_numeric && SSL_set_tlsext_host_name(session, host.c_str()) != 1) {
        return false;
    }
    if (!verify) {
        return true;
    }
    X509_VERIFY_PARAM* wanted = SSL_get0_param(session);
    X509_VERIFY_PARAM_set_hostflags(wanted, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return not_numeric ? X509_VERIFY_PARAM_set1_host(wanted, host.c_str(), host.size()) == 1
                       : X509_VERIFY_PARAM_set1_ip_asc(wanted, host.c_str()) == 1;
}

task<result<net::stream_ptr>> openssl_client::connect(net::stream_ptr plain, std::string host,
                                                      std::chrono::milliseconds limit) {
    ssl_ptr session(SSL_new(context_.native_handle()));
    SSL* native = session.get();
    if (native == nullptr || !expect_peer(native, host, verify_)) {
        co_return error{errc::invalid, "not a host name: " + host};
    }
    auto stream = std::make_unique<client_stream>(std::move(plain), std::move(session));
    const auto done = co_await core::with_timeout(stream->handshake(), limit);
    if (!done) {
        co_return error{errc::timeout, "the TLS handshake with " + host + " took too long"};
    }
    if (!*done) {
        co_return net::stream_ptr(std::move(stream));
    }
    const long verdict = SSL_get_verify_result(native);
    if (verify_ && verdict != X509_V_OK) {
        co_return error{errc::denied, "the certificate of " + host +
                                          " does not hold: " + X509_verify_cert_error_string(verdict)};
    }
    co_return error{errc::protocol, "the TLS handshake with " + host + " failed: " + done->message()};
}

} // namespace

result<std::shared_ptr<client_context>> create_client(const client_settings& settings) {
    auto made = std::make_shared<openssl_client>();
    auto& context = made->context_;
    SSL_CTX* native = context.native_handle();
    SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
    SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    error_code failed;
    made->verify_ = settings.verify;
    context.set_verify_mode(settings.verify ? asio::ssl::verify_peer : asio::ssl::verify_none, failed);
    if (!settings.ca.empty()) {
        context.add_certificate_authority(asio::buffer(settings.ca), failed);
        if (failed) {
            return error{errc::invalid, "the CA file holds no certificate in PEM form: " + failed.message()};
        }
    } else if (settings.verify) {
        context.set_default_verify_paths(failed);
    }
    if (!settings.certificate.empty()) {
        context.use_certificate_chain(asio::buffer(settings.certificate), failed);
        if (failed) {
            return error{errc::invalid, "the client certificate is not in PEM form: " + failed.message()};
        }
        context.use_private_key(asio::buffer(settings.key), asio::ssl::context::pem, failed);
        if (failed) {
            return error{errc::invalid,
                         "the private key does not belong to the client certificate: " + failed.message()};
        }
    }
    return std::shared_ptr<client_context>(std::move(made));
}

} // namespace sandboxd::tls
