#include "docker/dialer.hpp"

#include "net/connect.hpp"
#include "tls/client.hpp"

#include <chrono>

namespace sandboxd::docker {

namespace {

constexpr std::chrono::milliseconds handshake_limit{30'000};

class unix_dialer final : public dialer {
public:
    explicit unix_dialer(std::string path) : path_(std::move(path)) {}

    task<result<dialed>> dial(boost::asio::any_io_executor executor) override {
        auto stream = net::connect_unix(executor, path_);
        if (!stream) {
            co_return stream.error();
        }
        dialed made;
        made.stream = std::move(*stream);
        co_return made;
    }

    std::string host() const override { return "docker"; }

private:
    std::string path_;
};

class tcp_dialer final : public dialer {
public:
    tcp_dialer(const endpoint& where, std::shared_ptr<tls::client_context> tls)
        : host_(where.host), port_(where.port), tls_(std::move(tls)) {}

    task<result<dialed>> dial(boost::asio::any_io_executor executor) override {
        auto stream = co_await net::connect_tcp(executor, host_, port_);
        if (stream && tls_ != nullptr) {
            stream = co_await tls_->connect(std::move(*stream), host_, handshake_limit);
        }
        if (!stream) {
            co_return stream.error();
        }
        dialed made;
        made.stream = std::move(*stream);
        co_return made;
    }

    std::string host() const override {
        return (host_.find(':') != std::string::npos ? "[" + host_ + "]" : host_) + ":" + port_;
    }

private:
    std::string host_;
    std::string port_;
    std::shared_ptr<tls::client_context> tls_;
};

} // namespace

result<std::shared_ptr<dialer>> create_dialer(const endpoint& where, const dial_options& options) {
    if (where.kind == transport::unix_socket) {
        return std::shared_ptr<dialer>(std::make_shared<unix_dialer>(where.path));
    }
    if (where.kind == transport::ssh) {
        return create_ssh_dialer(where, options);
    }
    std::shared_ptr<tls::client_context> context;
    if (where.tls) {
        tls::client_settings settings;
        settings.ca = where.tls->ca;
        settings.certificate = where.tls->certificate;
        settings.key = where.tls->key;
        settings.verify = where.tls->verify;
        auto loaded = tls::create_client(settings);
        if (!loaded) {
            return error{loaded.error().code, where.text() + ": " + loaded.error().message};
        }
        context = std::move(*loaded);
    }
    return std::shared_ptr<dialer>(std::make_shared<tcp_dialer>(where, std::move(context)));
}

} // namespace sandboxd::docker
