// Many short connections against a server on several threads that is stopped in their middle, again and
// again. Meant for ThreadSanitizer. Exits with 0 when every round ended, nothing is left and no answer was
// wrong.

#include "core/deadline.hpp"
#include "core/log.hpp"
#include "core/spawn.hpp"
#include "http/server.hpp"
#include "net/connect.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

using namespace sandboxd;
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

std::atomic<long> answers{0};
std::atomic<long> wrong{0};

task<void> answer(http::exchange& x) {
    auto body = co_await x.body().read_all(64U << 10U);
    if (!body) {
        co_await http::refuse(x, body.error());
        co_return;
    }
    if (body->size() % 3 == 0) {
        co_await core::sleep_for(1ms);
        co_await x.answer().interim(102);
    }
    co_await x.answer().send(http::json_reply(200, std::move(*body)));
}

/// One connection: a few requests, some of them left in the middle.
task<void> call(asio::any_io_executor executor, std::string port, int number) {
    auto made = co_await net::connect_tcp(executor, "127.0.0.1", port);
    if (!made) {
        co_return;
    }
    net::stream_ptr stream = std::move(*made);
    const std::string body(static_cast<std::size_t>(number % 50), 'a');
    const std::string request =
        "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    for (int i = 0; i < 3; ++i) {
        std::size_t sent = 0;
        const std::size_t wanted = number % 7 == 6 && i == 2 ? request.size() / 2 : request.size();
        while (sent < wanted) {
            const auto piece = asio::buffer(request.data() + sent, wanted - sent);
            const auto [failed, bytes] =
                co_await stream->async_write_some(piece, asio::as_tuple(asio::use_awaitable));
            if (failed) {
                co_return;
            }
            sent += bytes;
        }
        if (wanted < request.size()) {
            co_return;
        }
        std::string heard;
        const std::string end = "\r\n\r\n" + body;
        while (heard.find("HTTP/1.1 200") == std::string::npos || !heard.ends_with(end)) {
            std::array<char, 4096> piece{};
            const auto [failed, bytes] =
                co_await stream->async_read_some(asio::buffer(piece), asio::as_tuple(asio::use_awaitable));
            if (failed) {
                co_return;
            }
            heard.append(piece.data(), bytes);
            if (heard.size() > 10'000) {
                ++wrong;
                co_return;
            }
        }
        ++answers;
    }
}

task<void> stop_soon(http::server& server, std::chrono::milliseconds after, std::chrono::milliseconds grace) {
    co_await core::sleep_for(after);
    co_await server.stop(grace);
}

bool one_round(int round) {
    asio::io_context context(4);
    core::gate callers;
    http::memory_budget budget(200U << 10U);
    auto server = http::create_server(&answer, budget, {});
    auto listeners = net::listen_tcp(context.get_executor(), "127.0.0.1", 0);
    if (!listeners) {
        std::fprintf(stderr, "%s\n", listeners.error().message.c_str());
        return false;
    }
    const std::string port = std::to_string(listeners->front()->port());
    server->listen(std::move(listeners->front()));
    for (int i = 0; i < 60; ++i) {
        asio::any_io_executor strand = asio::make_strand(context);
        core::spawn(strand, "a caller", callers, call(strand, port, i));
    }
    core::spawn(
        context.get_executor(), "stopping", callers,
        stop_soon(*server, std::chrono::milliseconds(round % 20), std::chrono::milliseconds(round % 3 * 5)));
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] { context.run(); });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    const bool clean = server->connections() == 0 && budget.used() == 0 && callers.inside() == 0;
    if (!clean) {
        std::fprintf(stderr, "%zu connections, %llu bytes, %zu callers left\n", server->connections(),
                     static_cast<unsigned long long>(budget.used()), callers.inside());
    }
    return clean;
}

} // namespace

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 30;
    core::log::set_level("error");
    for (int round = 0; round < rounds; ++round) {
        if (!one_round(round)) {
            std::fprintf(stderr, "round %d left something behind\n", round);
            return 1;
        }
    }
    std::printf("%d rounds, %ld answers, %ld wrong\n", rounds, answers.load(), wrong.load());
    return wrong == 0 && answers > 0 && core::escaped_exceptions() == 0 ? 0 : 1;
}
