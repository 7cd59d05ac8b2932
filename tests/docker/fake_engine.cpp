#include "fake_engine.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace sandboxd::test {

namespace {

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
}

/// False at end-of-file before a whole request.
bool read_request(int fd, std::string& buffer, seen_request& into) {
    std::array<char, 65536> part{};
    const auto more = [&] {
        const ssize_t got = ::recv(fd, part.data(), part.size(), 0);
        if (got > 0) {
            buffer.append(part.data(), static_cast<std::size_t>(got));
        }
        return got > 0;
    };
    std::size_t end = 0;
    while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
        if (!more()) {
            return false;
        }
    }
    std::string head = buffer.substr(0, end + 2);
    buffer.erase(0, end + 4);
    const std::size_t first = head.find(' ');
    const std::size_t second = head.find(' ', first + 1);
    into.method = head.substr(0, first);
    into.target = head.substr(first + 1, second - first - 1);
    for (std::size_t at = head.find("\r\n") + 2; at < head.size();) {
        const std::size_t stop = head.find("\r\n", at);
        const std::size_t colon = head.find(": ", at);
        into.fields[lower(head.substr(at, colon - at))] = head.substr(colon + 2, stop - colon - 2);
        at = stop + 2;
    }
    std::string path = into.target.substr(0, into.target.find('?'));
    if (path.starts_with("/v1.")) {
        path.erase(0, path.find('/', 1));
    }
    into.path = path;
    const auto length = into.fields.find("content-length");
    const std::size_t size = length != into.fields.end() ? std::stoul(length->second) : 0;
    while (buffer.size() < size) {
        if (!more()) {
            return false;
        }
    }
    into.body = buffer.substr(0, size);
    buffer.erase(0, size);
    return true;
}

} // namespace

std::string frame(int type, std::string_view payload) {
    const auto size = static_cast<std::uint32_t>(payload.size());
    std::string made{static_cast<char>(type), 0, 0, 0};
    for (int shift = 24; shift >= 0; shift -= 8) {
        made.push_back(static_cast<char>(size >> shift & 0xFFU));
    }
    return made + std::string(payload);
}

void fake_connection::send(std::string_view bytes) const {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) {
            return;
        }
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
}

void fake_connection::send_split(std::string_view bytes, std::size_t piece) const {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
        send(bytes.substr(0, piece));
        std::this_thread::yield();
    }
}

void fake_connection::answer(int status, std::string_view body, std::string_view type,
                             std::string_view more_fields) const {
    std::string all = "HTTP/1.1 " + std::to_string(status) + " Fake\r\nContent-Type: " + std::string(type) +
                      "\r\n" + std::string(more_fields);
    if (status != 204 && status != 304) {
        all += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    }
    send(all + "\r\n" + std::string(body));
}

void fake_connection::pause(int milliseconds) const {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
    while (!stopping_ && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
}

std::string fake_connection::read_some() const {
    std::array<char, 65536> part{};
    const ssize_t got = ::recv(fd_, part.data(), part.size(), 0);
    return got > 0 ? std::string(part.data(), static_cast<std::size_t>(got)) : std::string();
}

std::string fake_connection::read_all() const {
    std::string all;
    for (std::string part = read_some(); !part.empty(); part = read_some()) {
        all += part;
    }
    return all;
}

void fake_connection::half_close() const {
    ::shutdown(fd_, SHUT_WR);
}

void fake_connection::hang() const {
    while (!read_some().empty()) {
    }
}

fake_engine::fake_engine() {
    std::string pattern = (std::filesystem::temp_directory_path() / "fake-engine-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    path_ = folder_ + "/docker.sock";
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), path_.size());
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener_, 128) != 0) {
        std::abort();
    }
    acceptor_ = std::thread([this] { accept_loop(); });
}

fake_engine::~fake_engine() {
    stopping_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    ::close(listener_);
    {
        const std::lock_guard lock(mutex_);
        for (const int fd : open_) {
            ::shutdown(fd, SHUT_RDWR);
        }
    }
    for (auto& one : threads_) {
        one.join();
    }
    std::filesystem::remove_all(folder_);
}

void fake_engine::speaks(std::string newest, std::string oldest) {
    newest_ = std::move(newest);
    oldest_ = std::move(oldest);
}

std::vector<seen_request> fake_engine::seen(const std::string& path) const {
    const std::lock_guard lock(mutex_);
    std::vector<seen_request> found;
    std::copy_if(seen_.begin(), seen_.end(), std::back_inserter(found),
                 [&](const seen_request& one) { return one.path == path; });
    return found;
}

void fake_engine::accept_loop() {
    while (true) {
        const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0) {
            return;
        }
        const int number = ++connections_;
        const std::lock_guard lock(mutex_);
        open_.push_back(fd);
        threads_.emplace_back([this, fd, number] { serve(fd, number); });
    }
}

void fake_engine::serve(int fd, int number) {
    const fake_connection connection(fd, stopping_);
    std::string buffer;
    bool again = true;
    while (again && !stopping_) {
        seen_request request;
        if (!read_request(fd, buffer, request)) {
            break;
        }
        request.connection = number;
        {
            const std::lock_guard lock(mutex_);
            seen_.push_back(request);
        }
        again = handle(request, connection) && !close_after_each_;
    }
    const std::lock_guard lock(mutex_);
    std::erase(open_, fd);
    ::close(fd);
}

bool fake_engine::handle(const seen_request& request, const fake_connection& connection) {
    const auto script = scripts_.find(request.method + " " + request.path);
    if (script != scripts_.end()) {
        return script->second(request, connection);
    }
    if (request.path == "/_ping") {
        const std::string field = newest_.empty() ? "" : "Api-Version: " + newest_ + "\r\n";
        connection.send("HTTP/1.1 200 OK\r\n" + field +
                        "Content-Length: " + (request.method == "HEAD" ? "0\r\n\r\n" : "2\r\n\r\nOK"));
    } else if (request.path == "/version") {
        connection.answer(200, R"({"Version":"20.10.24","ApiVersion":")" + newest_ +
                                   R"(","MinAPIVersion":")" + oldest_ + R"("})");
    } else {
        connection.answer(404, R"({"message":"page not found"})");
    }
    return true;
}

} // namespace sandboxd::test
