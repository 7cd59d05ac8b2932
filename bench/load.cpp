// Repeats one HTTP request on some connections for some seconds and tells how long the answers took. Blocking
// sockets, one thread per connection: nothing that could be slower than the service under test.
//
//   load PORT CALLERS SECONDS <request          prints
//   {"count":…,"per_second":…,"p50_us":…,"p99_us":…,"max_us":…}
//
// 32 signs # in the request become a new number each time, for requests that need an id of their own. At
// least one request is sent, however long it takes.
//
//   load --replay PORT <requests                each once, one after the other on one connection; each behind
//   a line
//                                               that tells its length. Prints {"count":…,"seconds":…}
//
// Any answer but a 200, or a connection that ends, is a failure: exit status 1.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using steady = std::chrono::steady_clock;

struct caller_result {
    std::vector<std::uint32_t> microseconds;
    std::string problem;
};

int connect_to(int port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int one = 1;
    if (fd < 0 || ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        return -1;
    }
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

bool send_all(int fd, std::string_view data) {
    while (!data.empty()) {
        const ssize_t sent = ::send(fd, data.data(), data.size(), MSG_NOSIGNAL);
        if (sent <= 0) {
            return false;
        }
        data.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
}

// The length of the body that a head announces; the service's answers all carry one.
std::size_t content_length(std::string_view head) {
    static constexpr std::string_view name = "\r\ncontent-length:";
    const auto found = std::search(head.begin(), head.end(), name.begin(), name.end(), [](char a, char b) {
        return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b;
    });
    if (found == head.end()) {
        return 0;
    }
    return std::strtoul(&*found + name.size(), nullptr, 10);
}

// Reads one answer; empty text when it is a 200, else what was wrong.
std::string read_answer(int fd, std::string& buffer) {
    buffer.clear();
    std::size_t needed = 0;
    char chunk[16384];
    for (;;) {
        const ssize_t got = ::recv(fd, chunk, sizeof chunk, 0);
        if (got <= 0) {
            return "the connection ended";
        }
        buffer.append(chunk, static_cast<std::size_t>(got));
        if (needed == 0) {
            const auto end = buffer.find("\r\n\r\n");
            if (end == std::string::npos) {
                continue;
            }
            needed = end + 4 + content_length(std::string_view(buffer).substr(0, end + 2));
        }
        if (buffer.size() >= needed) {
            return buffer.compare(0, 13, "HTTP/1.1 200 ") == 0 ? std::string() : buffer.substr(0, 400);
        }
    }
}

// Writes the next number, as 32 digits, where the request has its place for one.
void number(std::string& request, std::size_t place) {
    static std::atomic<unsigned long long> last{
        static_cast<unsigned long long>(steady::now().time_since_epoch().count())};
    if (place != std::string::npos) {
        char digits[33];
        std::snprintf(digits, sizeof digits, "%032llu", ++last);
        request.replace(place, 32, digits, 32);
    }
}

void call(int port, std::string request, steady::time_point until, caller_result& result) {
    const int fd = connect_to(port);
    if (fd < 0) {
        result.problem = std::string("connect: ") + std::strerror(errno);
        return;
    }
    const auto place = request.find(std::string(32, '#'));
    std::string buffer;
    while (result.problem.empty()) {
        number(request, place);
        const auto begin = steady::now();
        if (begin >= until && !result.microseconds.empty()) {
            break;
        }
        result.problem = send_all(fd, request) ? read_answer(fd, buffer) : "send failed";
        const auto spent = std::chrono::duration_cast<std::chrono::microseconds>(steady::now() - begin);
        result.microseconds.push_back(static_cast<std::uint32_t>(spent.count()));
    }
    ::close(fd);
}

int replay(int port, std::string_view input) {
    const int fd = connect_to(port);
    std::string problem = fd < 0 ? std::string("connect: ") + std::strerror(errno) : std::string();
    std::string buffer;
    std::size_t count = 0;
    const auto begin = steady::now();
    for (; problem.empty() && !input.empty(); ++count) {
        const auto line = input.find('\n');
        const auto length = std::strtoul(input.data(), nullptr, 10);
        if (line == std::string_view::npos || length == 0 || length > input.size() - line - 1) {
            problem = "the requests are not as they should be";
            break;
        }
        problem = send_all(fd, input.substr(line + 1, length)) ? read_answer(fd, buffer) : "send failed";
        input.remove_prefix(line + 1 + length);
    }
    const std::chrono::duration<double> spent = steady::now() - begin;
    if (!problem.empty()) {
        std::fprintf(stderr, "load: request %zu: %s\n", count, problem.c_str());
        return 1;
    }
    std::printf("{\"count\":%zu,\"seconds\":%.6f}\n", count, spent.count());
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    if (argc == 3 && std::string_view(argv[1]) == "--replay") {
        return replay(std::atoi(argv[2]), std::string{std::istreambuf_iterator<char>(std::cin), {}});
    }
    if (argc != 4) {
        std::fprintf(stderr, "usage: load PORT CALLERS SECONDS <request, or load --replay PORT <requests\n");
        return 2;
    }
    const int port = std::atoi(argv[1]);
    const auto callers = static_cast<std::size_t>(std::atoi(argv[2]));
    const std::chrono::duration<double> length(std::atof(argv[3]));
    const std::string request{std::istreambuf_iterator<char>(std::cin), {}};

    std::vector<caller_result> results(callers);
    std::vector<std::thread> threads;
    const auto begin = steady::now();
    const auto until = begin + std::chrono::duration_cast<steady::duration>(length);
    for (auto& result : results) {
        threads.emplace_back(call, port, request, until, std::ref(result));
    }
    std::vector<std::uint32_t> all;
    for (std::size_t i = 0; i < callers; ++i) {
        threads[i].join();
        if (!results[i].problem.empty()) {
            std::fprintf(stderr, "load: %s\n", results[i].problem.c_str());
            return 1;
        }
        all.insert(all.end(), results[i].microseconds.begin(), results[i].microseconds.end());
    }
    const std::chrono::duration<double> spent = steady::now() - begin;
    if (all.empty()) {
        std::fprintf(stderr, "load: nothing was answered\n");
        return 1;
    }
    std::sort(all.begin(), all.end());
    std::printf("{\"count\":%zu,\"per_second\":%.1f,\"p50_us\":%u,\"p99_us\":%u,\"max_us\":%u}\n", all.size(),
                static_cast<double>(all.size()) / spent.count(), all[all.size() / 2],
                all[all.size() * 99 / 100], all.back());
    return 0;
}
