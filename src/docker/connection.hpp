#pragma once

#include "docker/dialer.hpp"
#include "docker/error.hpp"
#include "docker/filtered_stream.hpp"

#include <span>

namespace sandboxd::docker {

/// One request. `target` is without the version prefix.
struct request {
    std::string what; ///< for errors: "start the container"
    std::string method = "GET";
    std::string target;
    std::string body;
    std::string content_type; ///< of the body; "" sends none
    std::vector<std::pair<std::string, std::string>> fields;
    bool upgrade = false;
};

struct response_head {
    int status = 0;
    std::string content_type;
    std::string api_version; ///< "" when the field is missing (errors, proxies)
    bool chunked = false;
    bool sized = false; ///< has a Content-Length
};

/// One connection to the daemon and the exchange on it. Used by one coroutine at a time, on its executor.
class connection {
public:
    connection(dialed link, std::string host);
    ~connection();

    /// Writes the request. When it fails an answer may still be there to be read (engine-facts A8).
    [[nodiscard]] task<answer<void>> send(const request& what, std::string prefix);

    /// The head of the answer; informational ones but 101 are skipped. errc::unavailable when the connection
    /// ended before it, errc::protocol for what is no HTTP.
    [[nodiscard]] task<answer<response_head>> read_head(bool head_only);

    /// The next bytes of the body; 0 at its end. errc::protocol when the connection ended within it.
    [[nodiscard]] task<answer<std::size_t>> read_some(std::span<char> into);

    /// Bytes of an answer have come since the last send.
    [[nodiscard]] bool answered() const noexcept;

    /// The answer was read to its end and another request may follow.
    [[nodiscard]] bool reusable() const noexcept;

    /// An idle connection that has not been closed, and on which nothing came that nobody asked for.
    [[nodiscard]] bool quiet() const noexcept;

    /// After the head of a 101, or of a 200 without a length: the stream behind it, with the bytes that were
    /// read along. The connection is used up.
    [[nodiscard]] net::stream_ptr hijack(bool chunked, bool demultiplex, side_sink side);

    /// It has carried an exchange before.
    [[nodiscard]] bool used() const noexcept { return exchanges_ > 1; }

private:
    [[nodiscard]] engine_error broken(const boost::system::error_code& why) const;

    struct state;
    std::unique_ptr<state> state_;
    std::string host_;
    std::function<std::string()> complaint_;
    unsigned exchanges_ = 0;
};

} // namespace sandboxd::docker
