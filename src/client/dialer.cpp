#include "client/dialer.hpp"

#include "client/failure.hpp"
#include "core/fd.hpp"
#include "net/connect.hpp"
#include "tls/client.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace sandboxd::client {

namespace {

constexpr std::size_t largest_pem = 4U << 20U;

class network_dialer final : public dialer {
public:
    network_dialer(service_url where, std::shared_ptr<tls::client_context> tls,
                   std::chrono::milliseconds limit)
        : where_(std::move(where)), tls_(std::move(tls)), limit_(limit) {}

    task<result<net::stream_ptr>> dial(boost::asio::any_io_executor executor) override {
        auto stream = co_await net::connect_tcp(executor, where_.host, where_.port);
        if (stream && tls_ != nullptr) {
            stream = co_await tls_->connect(std::move(*stream), where_.host, limit_);
        }
        co_return stream;
    }

private:
    service_url where_;
    std::shared_ptr<tls::client_context> tls_;
    std::chrono::milliseconds limit_;
};

/// "" for no file.
outcome<std::string> read_pem(const std::string& path) {
    if (path.empty()) {
        return std::string();
    }
    const auto fault_of = [&](const std::string& why) {
        return failed(fault::invalid, "cannot read " + path + ": " + why);
    };
    const core::unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file) {
        return fault_of(std::strerror(errno));
    }
    std::string text;
    std::array<char, 16384> part{};
    while (true) {
        const ssize_t got = ::read(file.get(), part.data(), part.size());
        if (got < 0) {
            return fault_of(std::strerror(errno));
        }
        if (got == 0) {
            break;
        }
        text.append(part.data(), static_cast<std::size_t>(got));
        if (text.size() > largest_pem) {
            return fault_of("it is larger than 4 MiB");
        }
    }
    if (text.empty()) {
        return fault_of("it is empty");
    }
    return text;
}

} // namespace

outcome<std::unique_ptr<dialer>> create_dialer(const service_url& where, const connection_options& options) {
    std::shared_ptr<tls::client_context> context;
    if (where.tls) {
        tls::client_settings settings;
        settings.verify = options.verify;
        for (const auto& [file, text] : {std::pair{&options.ca_file, &settings.ca},
                                         std::pair{&options.certificate_file, &settings.certificate},
                                         std::pair{&options.key_file, &settings.key}}) {
            auto read = read_pem(*file);
            if (!read) {
                return read.error();
            }
            *text = std::move(*read);
        }
        auto made = tls::create_client(settings);
        if (!made) {
            return failed(fault::invalid, made.error().message);
        }
        context = std::move(*made);
    }
    return std::unique_ptr<dialer>(
        std::make_unique<network_dialer>(where, std::move(context), options.connect_timeout));
}

} // namespace sandboxd::client
