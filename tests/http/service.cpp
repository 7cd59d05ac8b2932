#include "http/service.hpp"

#include "core/deadline.hpp"
#include "core/log.hpp"
#include "core/spawn.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <iostream>

namespace sandboxd::test {

using namespace std::chrono_literals;

service::service() : service(options{}) {}

service::service(options chosen) : budget_(chosen.budget), grace_(chosen.grace) {
    start(std::move(chosen), [this](http::exchange& x) { return handle(x); });
}

service::service(options chosen, http::handler handler) : budget_(chosen.budget), grace_(chosen.grace) {
    start(std::move(chosen), std::move(handler));
}

void service::start(options chosen, http::handler handler) {
    core::log::set_level("error");
    server_ = http::create_server(std::move(handler), budget_, chosen.bounds);
    auto listeners = net::listen_tcp(context_.get_executor(), "127.0.0.1", 0);
    BOOST_REQUIRE(listeners);
    port_ = listeners->front()->port();
    server_->listen(std::move(listeners->front()), chosen.tls);
    for (int i = 0; i < 2; ++i) {
        ++running_;
        threads_.emplace_back([this] {
            context_.run();
            --running_;
        });
    }
}

task<void> service::stop_and_tell(std::chrono::milliseconds grace) {
    co_await server_->stop(grace);
}

void service::begin_stop(std::chrono::milliseconds grace) {
    stopped_ = true;
    boost::asio::co_spawn(context_, stop_and_tell(grace), [](const std::exception_ptr& failure) {
        if (failure) {
            std::cerr << "stop() threw\n";
            std::abort();
        }
    });
}

void service::stop(std::chrono::milliseconds grace) {
    if (!stopped_) {
        begin_stop(grace);
    }
    // Nobody stops the context: it has to run dry.
    if (!eventually([this] { return running_ == 0; })) {
        std::cerr << "the server does not end\n";
        std::abort();
    }
    for (auto& thread : threads_) {
        thread.join();
    }
    threads_.clear();
    BOOST_TEST(server_->connections() == 0U);
    BOOST_TEST(budget_.used() == 0U);
    BOOST_TEST(core::escaped_exceptions() == 0U);
}

service::~service() {
    if (!threads_.empty()) {
        stop(grace_);
    }
}

task<void> service::handle(http::exchange& x) {
    const auto path = x.head().target.substr(0, x.head().target.find('?'));
    auto& answer = x.answer();
    if (path == "/ok") {
        co_await answer.send(http::json_reply(200, "\"ok\""));
    } else if (path == "/echo") {
        auto body = co_await x.body().read_all(1U << 20U);
        if (!body) {
            co_await http::refuse(x, body.error());
            co_return;
        }
        co_await answer.send(http::json_reply(200, std::move(*body)));
    } else if (path == "/refuse") {
        co_await answer.send(http::detail_reply(401, "no \"token\""));
    } else if (path == "/count") {
        std::vector<char> piece(100'000);
        std::uint64_t total = 0;
        for (;;) {
            auto got = co_await x.body().read_some(piece);
            if (!got) {
                co_await http::refuse(x, got.error());
                co_return;
            }
            if (*got == 0) {
                break;
            }
            total += *got;
        }
        co_await answer.send(http::json_reply(200, std::to_string(total)));
    } else if (path == "/describe") {
        const auto& head = x.head();
        std::string text = std::string(head.method) + " " + std::string(head.target) + " " +
                           std::to_string(head.version) + " " + std::string(head.host) + " " +
                           std::string(head.header("x-sandbox-token").value_or("-")) +
                           (head.secure ? " tls" : " plain");
        co_await answer.send(http::json_reply(200, std::move(text)));
    } else if (path == "/wait") {
        ++waiting;
        const bool slept = co_await core::sleep_for(60s);
        cancelled += slept ? 0 : 1;
        co_await answer.send(http::json_reply(200, "\"awake\""));
    } else if (path == "/nap") {
        ++waiting;
        co_await core::sleep_for(300ms);
        co_await answer.send(http::json_reply(200, "\"rested\""));
    } else if (path == "/hold") {
        ++waiting;
        while (!released) {
            co_await core::sleep_for(5ms);
        }
        co_await answer.send(http::json_reply(200, "\"rested\""));
    } else if (path == "/until_gone") {
        ++waiting;
        while (!answer.gone()) {
            co_await core::sleep_for(5ms);
        }
        ++found_gone;
    } else if (path == "/probe") {
        ++waiting;
        while (co_await answer.interim(102)) {
            co_await core::sleep_for(5ms);
        }
        ++probed_gone;
    } else if (path == "/interim") {
        co_await answer.interim(102);
        co_await answer.interim(102);
        co_await answer.send(http::json_reply(200, "\"at last\""));
    } else if (path == "/throw") {
        throw std::runtime_error("deliberate");
    } else if (path == "/none") {
    } else if (path == "/empty") {
        http::reply nothing;
        nothing.status = 204;
        co_await answer.send(std::move(nothing));
    } else if (path == "/stream") {
        http::header_list fields{{"Content-Type", "text/plain"}};
        co_await answer.begin(200, std::move(fields));
        co_await answer.write("one,");
        co_await answer.write("");
        co_await answer.write("two");
        co_await answer.end();
    } else if (path == "/cut") {
        http::header_list fields;
        co_await answer.begin(200, std::move(fields));
        co_await answer.write("half");
        throw std::runtime_error("deliberate");
    } else if (path == "/big") {
        co_await answer.send(http::json_reply(200, std::string(32U << 20U, 'x')));
    } else {
        co_await answer.send(http::detail_reply(404, "Not Found"));
    }
}

} // namespace sandboxd::test
