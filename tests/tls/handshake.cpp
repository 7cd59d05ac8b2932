#include "core/spawn.hpp"
#include "net/connect.hpp"
#include "support/run.hpp"
#include "tls/context.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <string>
#include <sys/socket.h>
#include <sys/time.h>
#include <thread>

using namespace sandboxd;
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

/// A folder with a key, a certificate for it, and another key.
class files {
public:
    files() {
        BOOST_REQUIRE(::mkdtemp(folder_.data()) != nullptr);
        EVP_PKEY* key = EVP_EC_gen("P-256");
        EVP_PKEY* other = EVP_EC_gen("P-256");
        X509* made = X509_new();
        ASN1_INTEGER_set(X509_get_serialNumber(made), 1);
        X509_gmtime_adj(X509_getm_notBefore(made), 0);
        X509_gmtime_adj(X509_getm_notAfter(made), 3600);
        X509_set_pubkey(made, key);
        auto* name = X509_get_subject_name(made);
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                   reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
        X509_set_issuer_name(made, name);
        X509_sign(made, key, EVP_sha256());
        save("cert.pem", [&](std::FILE* out) { PEM_write_X509(out, made); });
        save("key.pem",
             [&](std::FILE* out) { PEM_write_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr); });
        save("other.pem", [&](std::FILE* out) {
            PEM_write_PrivateKey(out, other, nullptr, nullptr, 0, nullptr, nullptr);
        });
        std::ofstream(path("text.pem")) << "not a certificate\n";
        X509_free(made);
        EVP_PKEY_free(other);
        EVP_PKEY_free(key);
    }
    ~files() { std::filesystem::remove_all(folder_); }

    [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }

private:
    template <class F>
    void save(const std::string& name, F write) {
        std::FILE* out = std::fopen(path(name).c_str(), "w");
        BOOST_REQUIRE(out != nullptr);
        write(out);
        std::fclose(out);
    }
    std::string folder_ = (std::filesystem::temp_directory_path() / "sandboxd-tls-XXXXXX").string();
};

std::shared_ptr<tls::server_context> load(const files& all) {
    auto made = tls::load_server(all.path("cert.pem"), all.path("key.pem"));
    BOOST_REQUIRE_MESSAGE(made, (made ? "" : made.error().message));
    return *made;
}

/// A blocking TLS client on a thread of its own: says a word, then its farewell, and listens to the end.
struct caller {
    caller(int fd, int version, std::string offered)
        : thread([this, fd, version, offered] { talk(fd, version, offered); }) {}
    ~caller() { thread.join(); }

    void talk(int fd, int version, const std::string& offered) {
        SSL_CTX* context = SSL_CTX_new(TLS_client_method());
        SSL_CTX_set_security_level(context, 0);
        SSL_CTX_set_min_proto_version(context, version);
        SSL_CTX_set_max_proto_version(context, version);
        SSL* ssl = SSL_new(context);
        const std::string list = static_cast<char>(offered.size()) + offered;
        SSL_set_alpn_protos(ssl, reinterpret_cast<const unsigned char*>(list.data()),
                            static_cast<unsigned>(list.size()));
        SSL_set_fd(ssl, fd);
        // A stop and a continuation interrupt a read that has a limit.
        const auto again = [ssl, until = std::chrono::steady_clock::now() + 60s](int got) {
            return SSL_get_error(ssl, got) == SSL_ERROR_WANT_READ && std::chrono::steady_clock::now() < until;
        };
        int connected = SSL_connect(ssl);
        while (connected <= 0 && again(connected)) {
            connected = SSL_connect(ssl);
        }
        if (connected == 1) {
            const unsigned char* chosen = nullptr;
            unsigned size = 0;
            SSL_get0_alpn_selected(ssl, &chosen, &size);
            protocol.assign(reinterpret_cast<const char*>(chosen), size);
            spoken = SSL_get_version(ssl);
            SSL_write(ssl, "hello", 5);
            std::array<char, 70'000> piece{};
            for (;;) {
                const int got = SSL_read(ssl, piece.data(), static_cast<int>(piece.size()));
                if (got <= 0 && again(got)) {
                    continue;
                }
                if (got <= 0) {
                    clean_end = SSL_get_error(ssl, got) == SSL_ERROR_ZERO_RETURN;
                    break;
                }
                heard.append(piece.data(), static_cast<std::size_t>(got));
            }
            SSL_shutdown(ssl);
        }
        SSL_free(ssl);
        SSL_CTX_free(context);
        ::close(fd);
    }

    std::string protocol;
    std::string spoken;
    std::string heard;
    bool clean_end = false;
    std::thread thread;
};

struct sockets {
    sockets() {
        int both[2] = {-1, -1};
        BOOST_REQUIRE_EQUAL(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both), 0);
        const timeval limit{20, 0};
        ::setsockopt(both[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        mine = both[0];
        theirs = core::unique_fd(both[1]);
    }
    int mine = -1;
    core::unique_fd theirs;
};

constexpr auto token = asio::as_tuple(asio::use_awaitable);

/// Accepts, reads a word, answers with two buffers and much more, says farewell, waits for the end.
task<std::string> serve(tls::server_context& context, net::stream_ptr plain) {
    auto made = co_await context.accept(std::move(plain), 10s);
    if (!made) {
        co_return made.error().message;
    }
    net::stream_ptr stream = std::move(*made);
    std::array<char, 100> piece{};
    const auto [failed, bytes] = co_await stream->async_read_some(asio::buffer(piece), token);
    const std::string word(piece.data(), failed ? 0 : bytes);
    std::string much(1'000'000, 'm');
    std::array<asio::const_buffer, 2> answer{asio::buffer("head,", 5), asio::buffer(much)};
    while (answer[1].size() > 0) {
        const auto [broken, sent] = co_await stream->async_write_some(answer, token);
        if (broken) {
            co_return broken.message();
        }
        const auto first = std::min(sent, answer[0].size());
        answer[0] += first;
        answer[1] += sent - first;
    }
    stream->shutdown_send();
    for (;;) {
        const auto [ended, more] = co_await stream->async_read_some(asio::buffer(piece), token);
        if (ended) {
            break;
        }
    }
    co_return word;
}

task<result<net::stream_ptr>> accept(tls::server_context& context, net::stream_ptr plain,
                                     std::chrono::milliseconds limit) {
    co_return co_await context.accept(std::move(plain), limit);
}

} // namespace

BOOST_AUTO_TEST_CASE(tls_1_2_and_1_3_carry_bytes_both_ways) {
    const files all;
    const auto context = load(all);
    for (const auto& [version, name] :
         {std::pair(TLS1_2_VERSION, "TLSv1.2"), std::pair(TLS1_3_VERSION, "TLSv1.3")}) {
        asio::io_context io;
        sockets both;
        auto plain = net::adopt(io.get_executor(), std::move(both.theirs));
        std::string word;
        std::string spoken;
        std::string protocol;
        std::string heard;
        bool clean = false;
        {
            auto client = std::make_unique<caller>(both.mine, version, "http/1.1");
            word = test::get(io, serve(*context, std::move(*plain)));
            client->thread.join();
            client->thread = std::thread([] {});
            spoken = client->spoken;
            protocol = client->protocol;
            heard = client->heard;
            clean = client->clean_end;
        }
        BOOST_TEST(word == "hello");
        BOOST_TEST(spoken == name);
        BOOST_TEST(protocol == "http/1.1");
        BOOST_TEST((heard == "head," + std::string(1'000'000, 'm')));
        BOOST_TEST(clean);
    }
}

BOOST_AUTO_TEST_CASE(older_versions_and_other_protocols_are_refused) {
    const files all;
    const auto context = load(all);
    for (const auto& [version, offered] :
         {std::pair(TLS1_1_VERSION, "http/1.1"), std::pair(TLS1_3_VERSION, "h2")}) {
        asio::io_context io;
        sockets both;
        auto plain = net::adopt(io.get_executor(), std::move(both.theirs));
        const caller client(both.mine, version, offered);
        auto made = test::get(io, accept(*context, std::move(*plain), 10s));
        BOOST_REQUIRE(!made);
        BOOST_TEST((made.error().code == errc::protocol));
    }
}

BOOST_AUTO_TEST_CASE(plain_http_on_a_tls_port_gets_a_readable_400) {
    const files all;
    const auto context = load(all);
    asio::io_context io;
    sockets both;
    auto plain = net::adopt(io.get_executor(), std::move(both.theirs));
    const std::string request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    BOOST_REQUIRE(::write(both.mine, request.data(), request.size()) > 0);
    auto made = test::get(io, accept(*context, std::move(*plain), 10s));
    BOOST_REQUIRE(!made);
    BOOST_TEST((made.error().code == errc::protocol));
    std::string heard(1000, ' ');
    const auto got = ::read(both.mine, heard.data(), heard.size());
    BOOST_REQUIRE(got > 0);
    heard.resize(static_cast<std::size_t>(got));
    BOOST_TEST(heard.starts_with("HTTP/1.1 400 Bad Request\r\n"));
    const auto body = heard.substr(heard.find("\r\n\r\n") + 4);
    BOOST_TEST(body == "{\"detail\":\"this port speaks TLS, use https\"}");
    BOOST_TEST(heard.find("Content-Length: " + std::to_string(body.size()) + "\r\n") != std::string::npos);
    ::close(both.mine);
}

BOOST_AUTO_TEST_CASE(a_silent_client_runs_into_the_deadline_and_a_leaving_one_into_an_error) {
    const files all;
    const auto context = load(all);
    asio::io_context io;
    sockets silent;
    auto plain = net::adopt(io.get_executor(), std::move(silent.theirs));
    auto made = test::get(io, accept(*context, std::move(*plain), 20ms));
    BOOST_REQUIRE(!made);
    BOOST_TEST((made.error().code == errc::timeout));
    ::close(silent.mine);
    sockets leaving;
    plain = net::adopt(io.get_executor(), std::move(leaving.theirs));
    ::close(leaving.mine);
    made = test::get(io, accept(*context, std::move(*plain), 10s));
    BOOST_REQUIRE(!made);
    BOOST_TEST((made.error().code == errc::protocol));
}

namespace {
task<void> accept_and_tell(tls::server_context& context, net::stream_ptr plain, std::string& ended) {
    try {
        auto made = co_await context.accept(std::move(plain), 1h);
        ended = made ? "made" : "failed";
    } catch (const boost::system::system_error& e) {
        ended = e.code() == asio::error::operation_aborted ? "cancelled" : "other";
    }
}
} // namespace

BOOST_AUTO_TEST_CASE(a_handshake_can_be_cancelled) {
    const files all;
    const auto context = load(all);
    asio::io_context io;
    core::gate inside;
    sockets silent;
    auto plain = net::adopt(io.get_executor(), std::move(silent.theirs));
    auto signal = std::make_shared<asio::cancellation_signal>();
    std::string ended;
    core::spawn(io.get_executor(), "test", inside, accept_and_tell(*context, std::move(*plain), ended),
                signal);
    io.poll();
    signal->emit(asio::cancellation_type::terminal);
    io.restart();
    io.run_for(60s);
    // The error is answered, or the cancellation thrown by the next wait: it has ended either way, at once.
    BOOST_TEST((ended == "failed" || ended == "cancelled"));
    BOOST_TEST(inside.inside() == 0U);
    ::close(silent.mine);
}

BOOST_AUTO_TEST_CASE(faults_of_certificate_and_key_name_the_file) {
    const files all;
    const auto failure = [&](const std::string& certificate, const std::string& key) {
        auto made = tls::load_server(all.path(certificate), all.path(key));
        BOOST_REQUIRE(!made);
        BOOST_TEST((made.error().code == errc::invalid));
        return made.error().message;
    };
    BOOST_TEST(failure("none.pem", "key.pem") == "cannot read " + all.path("none.pem"));
    BOOST_TEST(failure("cert.pem", "none.pem") == "cannot read " + all.path("none.pem"));
    BOOST_TEST(failure("text.pem", "key.pem").starts_with(all.path("text.pem") + " holds no certificate"));
    BOOST_TEST(failure("cert.pem", "text.pem").starts_with(all.path("text.pem") + " holds no private key"));
    BOOST_TEST(
        failure("cert.pem", "other.pem").starts_with(all.path("other.pem") + " holds no private key for"));
}
