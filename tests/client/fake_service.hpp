#pragma once

#include "docker/certificate.hpp"

#include <openssl/ssl.h>

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace sandboxd::test {

struct seen_request {
    std::string method;
    std::string target;
    std::map<std::string, std::string> fields; ///< names in lower case
    std::string body;
    int connection = 0; ///< its number, from 0
    int on_it = 0;      ///< the number of the request on its connection, from 0

    [[nodiscard]] std::string token() const;
};

/// One connection to the fake service, from its side. Blocking.
class fake_peer {
public:
    fake_peer(int fd, SSL* tls, const std::atomic<bool>& stopping)
        : fd_(fd), tls_(tls), stopping_(stopping) {}

    void send(std::string_view bytes) const;
    void json(int status, std::string_view body, std::string_view more_fields = "") const;
    /// Waits, but not beyond the service's end.
    void pause(int milliseconds) const;
    /// Until the client closes.
    void hang() const;
    /// "" at the end.
    [[nodiscard]] std::string receive() const;

private:
    int fd_;
    SSL* tls_;
    const std::atomic<bool>& stopping_;
};

/// A service on loopback that answers what it is told to. The handler runs on a thread for each connection;
/// false closes it.
class fake_service {
public:
    using handler = std::function<bool(const fake_peer&, const seen_request&)>;

    explicit fake_service(handler answer, std::optional<pem_pair> identity = std::nullopt);
    ~fake_service();
    fake_service(const fake_service&) = delete;
    fake_service& operator=(const fake_service&) = delete;

    [[nodiscard]] std::string url(const std::string& host = "127.0.0.1") const;
    [[nodiscard]] int connections() const { return connections_; }
    /// How many of them it has closed.
    [[nodiscard]] int closed() const { return closed_; }
    [[nodiscard]] std::vector<seen_request> seen() const;
    /// "POST /sessions", "GET /policy", ... in the order of their coming.
    [[nodiscard]] std::vector<std::string> lines() const;
    [[nodiscard]] int count(const std::string& line) const;
    /// Waits (at most a minute) until as many such requests came.
    [[nodiscard]] bool wait_for(const std::string& line, int times) const;

private:
    struct link {
        int fd;
        std::thread thread;
    };

    void accept_loop();
    void serve(int fd, int number);
    bool serve_one(const fake_peer& peer, std::string& buffer, int number, int on_it);

    handler answer_;
    SSL_CTX* tls_ = nullptr;
    int listener_ = -1;
    int port_ = 0;
    std::atomic<bool> stopping_{false};
    std::atomic<int> connections_{0};
    std::atomic<int> closed_{0};
    mutable std::mutex mutex_;
    std::vector<seen_request> seen_;
    std::list<link> links_;
    std::thread acceptor_;
};

/// A session's JSON, and the answer to an open.
[[nodiscard]] std::string session_json(const std::string& id, bool alive = true);
[[nodiscard]] std::string created_json(const std::string& id, const std::string& token);

/// Answers opens (with the id asked for, or "s-made", and the token "session-token"), the policy and closes
/// like a service; false when it is none of these, true when it has answered.
[[nodiscard]] bool answer_like_a_service(const fake_peer& peer, const seen_request& request,
                                         const std::string& policy = R"({"execute_timeout":300})");

} // namespace sandboxd::test
