#include "certificate.hpp"
#include "core/gate.hpp"
#include "core/spawn.hpp"
#include "docker/engine.hpp"
#include "net/connect.hpp"
#include "support/run.hpp"
#include "tls/context.hpp"
#include "words.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace sandboxd;
using namespace sandboxd::docker;
using namespace std::chrono_literals;

namespace asio = boost::asio;

namespace {

constexpr auto tuple = asio::as_tuple(asio::use_awaitable);

/// A daemon behind TLS that answers every request with 200 and its version.
class tls_daemon {
public:
    tls_daemon(asio::io_context& context, const test::pem_pair& identity)
        : acceptor_(context, asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), 0)) {
        std::string pattern = (std::filesystem::temp_directory_path() / "tls-daemon-XXXXXX").string();
        const std::filesystem::path folder = ::mkdtemp(pattern.data());
        std::ofstream(folder / "cert.pem") << identity.certificate;
        std::ofstream(folder / "key.pem") << identity.key;
        tls_ = tls::load_server((folder / "cert.pem").string(), (folder / "key.pem").string()).value();
        std::filesystem::remove_all(folder);
        core::spawn(context.get_executor(), "tls daemon", gate_, serve());
    }

    [[nodiscard]] std::string port() const { return std::to_string(acceptor_.local_endpoint().port()); }
    void stop() { acceptor_.close(); }

private:
    task<void> serve() {
        while (true) {
            auto [failed, socket] = co_await acceptor_.async_accept(tuple);
            if (failed) {
                co_return;
            }
            core::unique_fd fd(socket.release());
            auto plain = net::adopt(acceptor_.get_executor(), std::move(fd));
            auto stream = co_await tls_->accept(std::move(*plain), 5s);
            if (stream) {
                core::spawn(acceptor_.get_executor(), "tls connection", gate_,
                            answer_all(std::move(*stream)));
            }
        }
    }

    static task<void> answer_all(net::stream_ptr stream) {
        std::array<char, 4096> part{};
        std::string request;
        while (true) {
            const auto [failed, size] = co_await stream->async_read_some(asio::buffer(part), tuple);
            if (failed) {
                co_return;
            }
            request.append(part.data(), size);
            if (request.find("\r\n\r\n") == std::string::npos) {
                continue;
            }
            if (request.find("/attach?") != std::string::npos) {
                co_await echo_after_the_end(std::move(stream));
                co_return;
            }
            const std::string body = request.starts_with("HEAD") ? "" : R"({"ApiVersion":"1.41","Id":"c"})";
            const std::string answer =
                "HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nContent-Length: " + std::to_string(body.size()) +
                "\r\n\r\n" + body;
            request.clear();
            co_await asio::async_write(*stream, asio::buffer(answer), tuple);
        }
    }

    /// Reads to the client's half-close, and only then answers.
    static task<void> echo_after_the_end(net::stream_ptr stream) {
        const std::string head = "HTTP/1.1 101 UPGRADED\r\n\r\n";
        co_await asio::async_write(*stream, asio::buffer(head), tuple);
        std::array<char, 4096> part{};
        std::string heard;
        while (true) {
            const auto [failed, size] = co_await stream->async_read_some(asio::buffer(part), tuple);
            heard.append(part.data(), size);
            if (failed) {
                heard += failed == asio::error::eof ? " and the end" : " and " + failed.message();
                break;
            }
        }
        co_await asio::async_write(*stream, asio::buffer(heard), tuple);
        stream->shutdown_send();
        co_await stream->async_read_some(asio::buffer(part), tuple);
    }

    core::gate gate_;
    asio::ip::tcp::acceptor acceptor_;
    std::shared_ptr<tls::server_context> tls_;
};

struct tls_fixture {
    asio::io_context context;
    test::pem_pair identity = test::self_signed("localhost");
    tls_daemon daemon{context, identity};

    answer<container_details> inspect(const std::string& host, tls_material material) {
        auto where = parse_host("tcp://" + host + ":" + daemon.port(), true).value();
        where.tls = std::move(material);
        auto docker = create_engine(context.get_executor(), where, {}).value();
        return test::get(context, docker->inspect("c", 10s));
    }

    ~tls_fixture() {
        daemon.stop();
        context.restart();
        context.run_for(60s);
    }
};

} // namespace

BOOST_FIXTURE_TEST_CASE(a_daemon_behind_tls_is_verified, tls_fixture) {
    tls_material known;
    known.ca = identity.certificate;
    known.certificate = identity.certificate;
    known.key = identity.key;
    const auto found = inspect("localhost", known);
    BOOST_TEST_REQUIRE(found.has_value(), test::words(found));
    BOOST_TEST(found->id == "c");
}

BOOST_FIXTURE_TEST_CASE(a_wrong_name_or_authority_is_refused, tls_fixture) {
    tls_material known;
    known.ca = identity.certificate;
    const auto by_address = inspect("127.0.0.1", known).error();
    BOOST_TEST(static_cast<int>(by_address.code) == static_cast<int>(errc::denied));
    BOOST_TEST(by_address.message.find("the certificate of 127.0.0.1 does not hold: ") != std::string::npos);
    tls_material stranger;
    stranger.ca = test::self_signed("localhost").certificate;
    BOOST_TEST(static_cast<int>(inspect("localhost", stranger).error().code) ==
               static_cast<int>(errc::denied));
    stranger.verify = false;
    BOOST_TEST(inspect("localhost", stranger)->id == "c");
}

namespace {

task<std::string> converse(net::stream& stream, std::string words) {
    co_await asio::async_write(stream, asio::buffer(words), tuple);
    stream.shutdown_send();
    std::string heard;
    std::array<char, 100> part{};
    while (true) {
        const auto [failed, size] = co_await stream.async_read_some(asio::buffer(part), tuple);
        heard.append(part.data(), size);
        if (failed) {
            co_return heard + (failed == asio::error::eof ? "." : failed.message());
        }
    }
}

} // namespace

// Half-close over TLS is a close_notify with reading left open (engine-facts A2).
BOOST_FIXTURE_TEST_CASE(a_half_closed_stream_over_tls_is_still_read, tls_fixture) {
    auto where = parse_host("tcp://localhost:" + daemon.port(), true).value();
    where.tls.emplace();
    where.tls->ca = identity.certificate;
    auto docker = create_engine(context.get_executor(), where, {}).value();
    attach_options options;
    options.stream.tty = true;
    auto attached = test::get(context, docker->attach(context.get_executor(), "c", options, 10s));
    BOOST_TEST_REQUIRE(attached.has_value(), test::words(attached));
    const std::string words(200'000, 'w');
    BOOST_TEST((test::get(context, converse(*attached->stream, words)) == words + " and the end."));
}

BOOST_AUTO_TEST_CASE(unusable_material_is_told) {
    endpoint where = parse_host("tcp://box", true).value();
    where.tls.emplace();
    where.tls->ca = "junk";
    boost::asio::io_context context;
    const auto failed = create_engine(context.get_executor(), where, {}).error();
    BOOST_TEST(
        failed.message.starts_with("tcp://box:2376 (TLS): the CA file holds no certificate in PEM form"));
}
