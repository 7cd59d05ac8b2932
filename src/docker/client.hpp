#pragma once

#include "docker/pool.hpp"

#include <atomic>

namespace sandboxd::docker {

struct client_options {
    pool_limits pool;
    std::size_t hijacked = 4096;           ///< streams open at once
    std::size_t largest_body = 64U << 20U; ///< bytes of one answer
    dial_options dial;
};

struct reply {
    response_head head;
    std::string body;
};

/// An answer whose body is read as it comes. Dropping it closes the connection: the daemon then gives up what
/// it was doing (a pull, say). Used on the client's strand.
class open_reply {
public:
    open_reply() = default;
    open_reply(response_head head, std::unique_ptr<connection> one)
        : head(std::move(head)), one_(std::move(one)) {}

    response_head head;

    /// 0 at the end.
    [[nodiscard]] task<answer<std::size_t>> read_some(std::span<char> into) { return one_->read_some(into); }

private:
    std::unique_ptr<connection> one_;
};

/// A byte stream to a process in a container.
struct hijacked {
    net::stream_ptr stream;
    bool multiplexed = false; ///< it holds frames (frame_demux); false: raw bytes
};

struct hijack_options {
    bool tty = false;         ///< decides the framing
    bool demultiplex = false; ///< where it holds frames, take them apart: the stream is standard output only
    side_sink side;           ///< gets the rest then
};

/// HTTP to one daemon: negotiation, deadlines, pooling, errors. All members but hijack() run on the strand
/// given; hijack() runs on the caller's executor, which its stream stays on. Held by shared_ptr.
class client : public std::enable_shared_from_this<client> {
public:
    client(boost::asio::any_io_executor strand, std::shared_ptr<dialer> dialer,
           std::optional<api_version> pinned, std::string path_prefix, client_options options);

    [[nodiscard]] const boost::asio::any_io_executor& strand() const noexcept { return strand_; }

    /// One exchange; any status is an answer. Sent once, but GET and HEAD once more when a kept connection
    /// turns out to be closed. errc::timeout after `limit` with everything included (waiting for the pool,
    /// connecting, negotiating).
    [[nodiscard]] task<answer<reply>> call(request what, std::chrono::milliseconds limit);

    /// The same on a connection of its own, up to the head of the answer; a status of 400 or more is an
    /// error.
    [[nodiscard]] task<answer<open_reply>> open(request what, std::chrono::milliseconds limit);

    /// Sends an upgrade and takes the connection over: 101, or 200 as daemons and proxies without upgrades
    /// answer. Never sent twice. errc::capacity beyond the cap on hijacked streams.
    [[nodiscard]] task<answer<hijacked>> hijack(request what, hijack_options options,
                                                std::chrono::milliseconds limit);

    /// What the daemon and this client agreed on; asked once, and again after the daemon was away.
    [[nodiscard]] task<answer<api_version>> version(std::chrono::milliseconds limit);

    [[nodiscard]] std::size_t hijacked_now() const noexcept { return *hijacked_; }
    [[nodiscard]] const pool& connections() const noexcept { return pool_; }

private:
    struct progress {
        bool sent = false;
    };

    template <class T>
    task<answer<T>> bounded(task<answer<T>> work, std::string what, std::chrono::milliseconds limit,
                            std::shared_ptr<progress> state);

    task<answer<reply>> call_now(request what, std::shared_ptr<progress> state);
    task<answer<reply>> exchange(connection& one, const request& what, std::string prefix,
                                 std::shared_ptr<progress> state);
    task<answer<open_reply>> open_now(request what, std::shared_ptr<progress> state);
    task<answer<hijacked>> hijack_now(request what, hijack_options options, api_version agreed,
                                      std::shared_ptr<progress> state);
    task<answer<std::string>> read_body(connection& one);
    task<answer<std::unique_ptr<connection>>> dial(boost::asio::any_io_executor executor);
    task<answer<std::string>> prefix();
    task<answer<api_version>> ask_version();
    task<answer<reply>> ask(std::string method, std::string target);

    boost::asio::any_io_executor strand_;
    std::shared_ptr<dialer> dialer_;
    std::optional<api_version> pinned_;
    std::string path_prefix_; ///< of a daemon behind a path: "" or "/docker"
    client_options options_;
    pool pool_;
    std::optional<api_version> agreed_;
    std::shared_ptr<std::atomic<std::size_t>> hijacked_;
};

} // namespace sandboxd::docker
