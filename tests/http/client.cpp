#include "http/client.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

namespace sandboxd::test {

std::string answer::header(std::string_view name) const {
    for (const auto& [known, value] : headers) {
        if (known == name) {
            return value;
        }
    }
    return {};
}

std::size_t answer::count(std::string_view name) const {
    return static_cast<std::size_t>(
        std::count_if(headers.begin(), headers.end(), [&](const auto& one) { return one.first == name; }));
}

client::client(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    BOOST_REQUIRE_EQUAL(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    // Not before: with a limit, a connect that a frozen machine holds up ends with EINTR.
    const timeval limit{60, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

bool client::try_send(std::string_view bytes) {
    while (!bytes.empty()) {
        const auto sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent <= 0) {
            return false;
        }
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
}

void client::send(std::string_view bytes) {
    BOOST_REQUIRE(try_send(bytes));
}

bool client::fill() {
    std::array<char, 65536> piece{};
    auto got = ::recv(socket_.get(), piece.data(), piece.size(), 0);
    while (got < 0 && errno == EINTR) {
        got = ::recv(socket_.get(), piece.data(), piece.size(), 0);
    }
    if (got < 0) {
        BOOST_REQUIRE_MESSAGE(errno == ECONNRESET, "the server says nothing");
        reset_ = true;
    }
    if (got <= 0) {
        return false;
    }
    input_.append(piece.data(), static_cast<std::size_t>(got));
    return true;
}

std::optional<std::string> client::line() {
    std::size_t end = 0;
    while ((end = input_.find("\r\n")) == std::string::npos) {
        if (!fill()) {
            return std::nullopt;
        }
    }
    std::string text = input_.substr(0, end);
    input_.erase(0, end + 2);
    return text;
}

bool client::take(std::size_t bytes, std::string& into) {
    while (input_.size() < bytes) {
        if (!fill()) {
            return false;
        }
    }
    into.append(input_, 0, bytes);
    input_.erase(0, bytes);
    return true;
}

std::optional<answer> client::read_one() {
    auto first = line();
    if (!first) {
        return std::nullopt;
    }
    answer one;
    BOOST_REQUIRE_MESSAGE(first->starts_with("HTTP/1.1 "), *first);
    one.status = static_cast<unsigned>(std::stoul(first->substr(9, 3)));
    for (;;) {
        auto field = line();
        BOOST_REQUIRE(field);
        if (field->empty()) {
            break;
        }
        const auto colon = field->find(": ");
        BOOST_REQUIRE(colon != std::string::npos);
        std::string name = field->substr(0, colon);
        std::transform(name.begin(), name.end(), name.begin(),
                       [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        one.headers.emplace_back(std::move(name), field->substr(colon + 2));
    }
    if (one.status < 200 || one.status == 204 || one.status == 304) {
        return one;
    }
    if (one.header("transfer-encoding") == "chunked") {
        for (;;) {
            const auto size = line();
            BOOST_REQUIRE(size);
            const auto bytes = std::stoul(*size, nullptr, 16);
            BOOST_REQUIRE(take(bytes, one.body));
            BOOST_REQUIRE(line() == "");
            if (bytes == 0) {
                return one;
            }
        }
    }
    if (one.count("content-length") > 0) {
        BOOST_REQUIRE(take(std::stoul(one.header("content-length")), one.body));
    } else {
        while (fill()) {
        }
        one.body = std::exchange(input_, {});
    }
    return one;
}

std::optional<answer> client::read() {
    std::vector<unsigned> interim;
    for (;;) {
        auto one = read_one();
        if (!one) {
            return std::nullopt;
        }
        if (one->status >= 200) {
            one->interim = std::move(interim);
            return one;
        }
        interim.push_back(one->status);
    }
}

std::optional<unsigned> client::interim() {
    const auto one = read_one();
    return one ? std::optional(one->status) : std::nullopt;
}

answer client::expect() {
    auto one = read();
    BOOST_REQUIRE_MESSAGE(one, (reset_ ? "the connection was reset" : "the connection ended"));
    return *one;
}

std::optional<std::string> client::read_to_end() {
    while (fill()) {
    }
    if (reset_) {
        return std::nullopt;
    }
    return std::exchange(input_, {});
}

bool client::at_end() {
    return input_.empty() && !fill();
}

void client::half_close() {
    ::shutdown(socket_.get(), SHUT_WR);
}

void client::reset() {
    const linger now{1, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    socket_.reset();
}

} // namespace sandboxd::test
