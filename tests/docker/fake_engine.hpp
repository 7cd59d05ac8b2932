#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace sandboxd::test {

/// One request as the fake saw it.
struct seen_request {
    std::string method;
    std::string target;                        ///< as sent, with the version
    std::string path;                          ///< without version and query
    std::map<std::string, std::string> fields; ///< names in lower case
    std::string body;
    int connection = 0; ///< counted from 1
};

/// The fake's side of a connection, on a thread of its own: a script writes whatever it likes, well-formed or
/// not.
class fake_connection {
public:
    fake_connection(int fd, const std::atomic<bool>& stopping) : fd_(fd), stopping_(stopping) {}

    void send(std::string_view bytes) const;
    /// One write per `piece` bytes, so that they arrive in several reads.
    void send_split(std::string_view bytes, std::size_t piece) const;
    /// A well-formed answer with a length.
    void answer(int status, std::string_view body, std::string_view type = "application/json",
                std::string_view more_fields = "") const;
    void pause(int milliseconds) const; ///< ends early when the fake is stopped
    /// What the client sends until it half-closes or closes.
    [[nodiscard]] std::string read_all() const;
    [[nodiscard]] std::string read_some() const;
    void half_close() const;
    void hang() const; ///< until the client has gone or the fake is stopped

private:
    int fd_;
    const std::atomic<bool>& stopping_;
};

/// True keeps the connection for another request.
using fake_script = std::function<bool(const seen_request&, const fake_connection&)>;

/// A Docker Engine on a Unix socket of this process, for misbehaviour that a real one does not show on
/// demand. Answers /_ping and /version by itself; the rest is what a test scripts.
class fake_engine {
public:
    fake_engine();
    ~fake_engine();
    fake_engine(const fake_engine&) = delete;
    fake_engine& operator=(const fake_engine&) = delete;

    [[nodiscard]] const std::string& path() const { return path_; }

    /// "GET /containers/json": exact method and path. Set before the first call.
    void on(const std::string& route, fake_script script) { scripts_[route] = std::move(script); }
    /// "" leaves a field out.
    void speaks(std::string newest, std::string oldest);
    void close_after_each() { close_after_each_ = true; }

    [[nodiscard]] std::vector<seen_request> seen(const std::string& path) const;
    [[nodiscard]] int connections() const { return connections_; }

private:
    void accept_loop();
    void serve(int fd, int number);
    bool handle(const seen_request& request, const fake_connection& connection);

    std::string folder_;
    std::string path_;
    int listener_ = -1;
    std::atomic<bool> stopping_{false};
    std::atomic<int> connections_{0};
    bool close_after_each_ = false;
    std::string newest_ = "1.41";
    std::string oldest_ = "1.12";
    std::map<std::string, fake_script> scripts_;
    mutable std::mutex mutex_;
    std::vector<seen_request> seen_;
    std::vector<int> open_;
    std::vector<std::thread> threads_;
    std::thread acceptor_;
};

/// One frame of the daemon's multiplexed stream.
[[nodiscard]] std::string frame(int type, std::string_view payload);

} // namespace sandboxd::test
