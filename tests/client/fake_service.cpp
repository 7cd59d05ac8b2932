#include "fake_service.hpp"

#include <boost/json.hpp>
#include <openssl/pem.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace sandboxd::test {

namespace {

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
}

SSL_CTX* context_for(const pem_pair& identity) {
    SSL_CTX* made = SSL_CTX_new(TLS_server_method());
    BIO* text = BIO_new_mem_buf(identity.certificate.data(), static_cast<int>(identity.certificate.size()));
    X509* certificate = PEM_read_bio_X509(text, nullptr, nullptr, nullptr);
    BIO_free(text);
    text = BIO_new_mem_buf(identity.key.data(), static_cast<int>(identity.key.size()));
    EVP_PKEY* key = PEM_read_bio_PrivateKey(text, nullptr, nullptr, nullptr);
    BIO_free(text);
    if (SSL_CTX_use_certificate(made, certificate) != 1 || SSL_CTX_use_PrivateKey(made, key) != 1) {
        std::abort();
    }
    X509_free(certificate);
    EVP_PKEY_free(key);
    return made;
}

} // namespace

std::string seen_request::token() const {
    const auto found = fields.find("x-sandbox-token");
    return found == fields.end() ? "" : found->second;
}

void fake_peer::send(std::string_view bytes) const {
    while (!bytes.empty()) {
        const auto sent = tls_ != nullptr
                              ? SSL_write(tls_, bytes.data(), static_cast<int>(bytes.size()))
                              : static_cast<int>(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL));
        if (sent <= 0) {
            return;
        }
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
}

void fake_peer::json(int status, std::string_view body, std::string_view more_fields) const {
    std::string all = "HTTP/1.1 " + std::to_string(status) + " Fake\r\nContent-Type: application/json\r\n" +
                      std::string(more_fields);
    if (status != 204) {
        all += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    }
    send(all + "\r\n" + std::string(body));
}

void fake_peer::pause(int milliseconds) const {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
    while (!stopping_ && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
}

std::string fake_peer::receive() const {
    std::array<char, 65536> part{};
    const auto got = tls_ != nullptr ? SSL_read(tls_, part.data(), static_cast<int>(part.size()))
                                     : static_cast<int>(::recv(fd_, part.data(), part.size(), 0));
    return got > 0 ? std::string(part.data(), static_cast<std::size_t>(got)) : std::string();
}

void fake_peer::hang() const {
    while (!receive().empty()) {
    }
}

fake_service::fake_service(handler answer, std::optional<pem_pair> identity) : answer_(std::move(answer)) {
    if (identity) {
        tls_ = context_for(*identity);
    }
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 64) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
        std::abort();
    }
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_loop(); });
}

fake_service::~fake_service() {
    stopping_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    ::close(listener_);
    for (auto& one : links_) {
        ::shutdown(one.fd, SHUT_RDWR);
        one.thread.join();
        ::close(one.fd);
    }
    SSL_CTX_free(tls_);
}

void fake_service::accept_loop() {
    while (true) {
        const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0) {
            return;
        }
        const int number = connections_++;
        links_.push_back({fd, std::thread([this, fd, number] { serve(fd, number); })});
    }
}

void fake_service::serve(int fd, int number) {
    SSL* tls = nullptr;
    if (tls_ != nullptr) {
        tls = SSL_new(tls_);
        SSL_set_fd(tls, fd);
        if (SSL_accept(tls) != 1) {
            SSL_free(tls);
            ::shutdown(fd, SHUT_RDWR);
            return;
        }
    }
    const fake_peer peer(fd, tls, stopping_);
    std::string buffer;
    for (int on_it = 0; serve_one(peer, buffer, number, on_it); ++on_it) {
    }
    SSL_free(tls);
    ::shutdown(fd, SHUT_RDWR);
    ++closed_;
}

bool fake_service::serve_one(const fake_peer& peer, std::string& buffer, int number, int on_it) {
    const auto more = [&] {
        const auto part = peer.receive();
        buffer += part;
        return !part.empty();
    };
    std::size_t end = 0;
    while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
        if (!more()) {
            return false;
        }
    }
    const std::string head = buffer.substr(0, end + 2);
    buffer.erase(0, end + 4);
    seen_request request;
    request.connection = number;
    request.on_it = on_it;
    const std::size_t first = head.find(' ');
    const std::size_t second = head.find(' ', first + 1);
    request.method = head.substr(0, first);
    request.target = head.substr(first + 1, second - first - 1);
    for (std::size_t at = head.find("\r\n") + 2; at < head.size();) {
        const std::size_t stop = head.find("\r\n", at);
        const std::size_t colon = head.find(": ", at);
        request.fields[lower(head.substr(at, colon - at))] = head.substr(colon + 2, stop - colon - 2);
        at = stop + 2;
    }
    const auto length = request.fields.find("content-length");
    const std::size_t size = length != request.fields.end() ? std::stoul(length->second) : 0;
    while (buffer.size() < size) {
        if (!more()) {
            return false;
        }
    }
    request.body = buffer.substr(0, size);
    buffer.erase(0, size);
    {
        const std::lock_guard lock(mutex_);
        seen_.push_back(request);
    }
    return answer_(peer, request);
}

std::string fake_service::url(const std::string& host) const {
    return (tls_ != nullptr ? "https://" : "http://") + host + ":" + std::to_string(port_);
}

std::vector<seen_request> fake_service::seen() const {
    const std::lock_guard lock(mutex_);
    return seen_;
}

std::vector<std::string> fake_service::lines() const {
    std::vector<std::string> made;
    for (const auto& one : seen()) {
        made.push_back(one.method + " " + one.target);
    }
    return made;
}

int fake_service::count(const std::string& line) const {
    const auto all = lines();
    return static_cast<int>(std::count(all.begin(), all.end(), line));
}

bool fake_service::wait_for(const std::string& line, int times) const {
    for (int i = 0; i < 30'000 && count(line) < times; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return count(line) >= times;
}

std::string session_json(const std::string& id, bool alive) {
    return R"({"session_id":")" + id + R"(","runtime":"r","tenant":null,"alive":)" +
           (alive ? "true" : "false") +
           R"(,"state":"running","created_at":1.5,"last_activity":1,"idle_seconds":0,"usage":null})";
}

std::string created_json(const std::string& id, const std::string& token) {
    return R"({"session":)" + session_json(id) + R"(,"token":")" + token + R"("})";
}

bool answer_like_a_service(const fake_peer& peer, const seen_request& request, const std::string& policy) {
    if (request.method == "POST" && request.target == "/sessions") {
        const auto body = boost::json::parse(request.body);
        const auto& id = body.at("session_id");
        peer.json(200,
                  created_json(id.is_string() ? std::string(id.get_string()) : "s-made", "session-token"));
    } else if (request.method == "GET" && request.target == "/policy") {
        peer.json(200, policy);
    } else if (request.method == "DELETE") {
        peer.json(204, "");
    } else {
        return false;
    }
    return true;
}

} // namespace sandboxd::test
