#pragma once

#include "docker/endpoint.hpp"
#include "net/stream.hpp"
#include "sandboxd/sandbox.hpp"

#include <functional>
#include <memory>

namespace sandboxd::docker {

struct dialed {
    net::stream_ptr stream;
    std::function<std::string()>
        complaint; ///< what the carrier said about a failure (ssh); "" or unset: nothing
};

/// Makes connections to one daemon. Safe to use from any executor at once; deadlines are the caller's.
class dialer {
public:
    virtual ~dialer() = default;

    /// A fresh connection whose stream runs on `executor`.
    [[nodiscard]] virtual task<result<dialed>> dial(boost::asio::any_io_executor executor) = 0;

    /// For the Host field.
    [[nodiscard]] virtual std::string host() const = 0;
};

struct dial_options {
    std::string ssh_program = "ssh";
};

/// errc::invalid when the TLS material is unusable.
[[nodiscard]] result<std::shared_ptr<dialer>> create_dialer(const endpoint& where,
                                                            const dial_options& options);

/// `ssh HOST docker system dial-stdio`, one process a connection (engine-facts A2).
[[nodiscard]] std::shared_ptr<dialer> create_ssh_dialer(const endpoint& where, const dial_options& options);

} // namespace sandboxd::docker
