#include "client/url.hpp"
#include "fake_service.hpp"
#include "sandboxd/remote_sandbox.hpp"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>

using namespace sandboxd;
using namespace sandboxd::client;
using namespace std::chrono_literals;
using test::fake_peer;
using test::fake_service;
using test::seen_request;

namespace {

remote_sandbox sandbox_at(connection_options where, std::chrono::milliseconds timeout = 10s) {
    return remote_sandbox::create(where, {.token = "t", .session_id = "s", .timeout = timeout}).value();
}

remote_sandbox sandbox_at(const std::string& url, std::chrono::milliseconds timeout = 10s) {
    connection_options where;
    where.url = url;
    return sandbox_at(where, timeout);
}

/// The message of a start that fails with the kind given.
std::string start_fails(const remote_sandbox& sandbox, fault kind) {
    const auto started = sandbox.start();
    BOOST_TEST_REQUIRE(started.has_error());
    BOOST_TEST(name_of(started.error().kind) == name_of(kind));
    return started.error().message;
}

/// A service that answers every request with these bytes and closes.
fake_service::handler always(std::string bytes) {
    return [bytes = std::move(bytes)](const fake_peer& peer, const seen_request&) {
        peer.send(bytes);
        return false;
    };
}

bool has(const std::string& text, const std::string& part) {
    if (text.find(part) == std::string::npos) {
        BOOST_TEST_MESSAGE("in: " << text);
        return false;
    }
    return true;
}

struct folder {
    folder() { BOOST_REQUIRE(::mkdtemp(path.data()) != nullptr); }
    ~folder() { std::filesystem::remove_all(path); }
    std::string file(const std::string& name, const std::string& text) const {
        std::ofstream(path + "/" + name) << text;
        return path + "/" + name;
    }
    std::string path = (std::filesystem::temp_directory_path() / "client-XXXXXX").string();
};

} // namespace

BOOST_AUTO_TEST_CASE(a_closed_connection_is_made_up_for_only_where_that_is_safe) {
    // Each connection carries one request and takes a second one only to close.
    fake_service service([](const fake_peer& peer, const seen_request& request) {
        if (request.on_it > 0) {
            return false;
        }
        if (!test::answer_like_a_service(peer, request)) {
            peer.json(200, R"({"exists":true,"output":"ran","exit_code":0})");
        }
        return true;
    });
    const auto sandbox = sandbox_at(service.url());
    BOOST_TEST(sandbox.start().has_value()); // the policy is asked a second time
    BOOST_TEST(service.count("GET /policy") == 2);
    BOOST_TEST(sandbox.exists("x"));
    BOOST_TEST(service.count("POST /sessions/s/exists") == 2);
    // A command might run twice: it is not sent again.
    BOOST_TEST(sandbox.execute("x").output == "Error: sandbox service unavailable");
    BOOST_TEST(service.count("POST /sessions/s/exec") == 1);
    BOOST_TEST(sandbox.execute("x").output == "ran");
    BOOST_TEST(service.count("POST /sessions/s/exec") == 2);
}

BOOST_AUTO_TEST_CASE(a_connection_closed_while_idle_is_not_used) {
    fake_service service([](const fake_peer& peer, const seen_request& request) {
        if (!test::answer_like_a_service(peer, request)) {
            peer.json(200, R"({"output":"ran","exit_code":0})");
        }
        return request.target.ends_with("/sessions");
    });
    const auto sandbox = sandbox_at(service.url());
    BOOST_TEST(sandbox.start().has_value());
    for (int i = 0; i < 3; ++i) {
        for (int tries = 0; tries < 30'000 && service.closed() <= i; ++tries) {
            std::this_thread::sleep_for(2ms); // until the end has come
        }
        BOOST_TEST(sandbox.execute("x").output == "ran");
    }
    BOOST_TEST(service.count("POST /sessions/s/exec") == 3);
}

BOOST_AUTO_TEST_CASE(answers_that_are_none) {
    const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
    const auto message = [](const std::string& bytes, fault kind) {
        fake_service service(always(bytes));
        return start_fails(sandbox_at(service.url()), kind);
    };
    BOOST_TEST(has(message("", fault::unreachable), "the connection ended without an answer"));
    BOOST_TEST(has(message("SSH-2.0-OpenSSH\r\n", fault::malformed), "is no HTTP"));
    BOOST_TEST(has(message("HTTP/1.1 200 OK\r\nContent-Le", fault::unreachable), "ended without an answer"));
    BOOST_TEST(
        has(message(head + "Content-Length: 100\r\n\r\n{\"a\"", fault::unreachable), "the answer was cut"));
    BOOST_TEST(has(message(head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", fault::unreachable),
                   "the answer was cut"));
    BOOST_TEST(
        has(message(head + "X: " + std::string(70'000, 'x') + "\r\n\r\n", fault::malformed), "is no HTTP"));
    std::string interims;
    for (int i = 0; i < 600; ++i) {
        interims += "HTTP/1.1 102 Processing\r\n\r\n";
    }
    BOOST_TEST(has(message(interims, fault::malformed), "nothing but interim answers"));
}

BOOST_AUTO_TEST_CASE(huge_answers_are_refused) {
    connection_options where;
    where.max_answer_bytes = 100'000;
    const std::string lots(400'000, ' ');
    for (const auto& bytes :
         {"HTTP/1.1 200 OK\r\nContent-Length: 400000\r\n\r\n" + lots, "HTTP/1.1 200 OK\r\n\r\n" + lots,
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n61A80\r\n" + lots + "\r\n0\r\n\r\n"}) {
        fake_service service(always(bytes));
        where.url = service.url();
        BOOST_TEST(has(start_fails(sandbox_at(where), fault::malformed), "larger than 100000 bytes"));
    }
    fake_service service(always("HTTP/1.1 200 OK\r\nContent-Length: 90000\r\n\r\n" + lots.substr(0, 90'000)));
    where.url = service.url();
    BOOST_TEST(has(start_fails(sandbox_at(where), fault::malformed), "not a session"));
}

BOOST_AUTO_TEST_CASE(silence_ends_and_interim_answers_start_it_anew) {
    {
        fake_service service([](const fake_peer& peer, const seen_request&) {
            peer.hang();
            return false;
        });
        BOOST_TEST(
            has(start_fails(sandbox_at(service.url(), 2s), fault::unreachable), "no answer came in time"));
    }
    {
        fake_service service([](const fake_peer& peer, const seen_request&) {
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{");
            peer.hang();
            return false;
        });
        BOOST_TEST(
            has(start_fails(sandbox_at(service.url(), 2s), fault::unreachable), "the answer stopped coming"));
    }
    fake_service service([](const fake_peer& peer, const seen_request& request) {
        for (int i = 0; i < 8 && request.target == "/sessions"; ++i) {
            peer.pause(700);
            peer.send("HTTP/1.1 102 Processing\r\n\r\n");
        }
        return test::answer_like_a_service(peer, request);
    });
    BOOST_TEST(sandbox_at(service.url(), 4s).start().has_value());
}

BOOST_AUTO_TEST_CASE(tls_is_verified) {
    const folder files;
    const auto good = test::self_signed("localhost");
    const auto other = test::self_signed("localhost");
    const auto ca = files.file("ca.pem", good.certificate);
    fake_service service(
        [](const fake_peer& peer, const seen_request& request) {
            if (!test::answer_like_a_service(peer, request)) {
                peer.json(200, R"({"exists":true})");
            }
            return true;
        },
        good);
    connection_options where;
    where.url = service.url("localhost");
    where.ca_file = ca;
    BOOST_TEST(sandbox_at(where).exists("x"));
    BOOST_TEST(service.connections() == 1);

    where.url = service.url("127.0.0.1"); // not the name in the certificate
    BOOST_TEST(has(start_fails(sandbox_at(where), fault::unreachable),
                   "the certificate of 127.0.0.1 does not hold"));
    where.verify = false;
    BOOST_TEST(sandbox_at(where).exists("x"));
    where.verify = true;
    where.url = service.url("localhost");
    where.ca_file = files.file("other.pem", other.certificate);
    BOOST_TEST(has(start_fails(sandbox_at(where), fault::unreachable), "does not hold"));
    where.ca_file = ""; // the system's
    BOOST_TEST(has(start_fails(sandbox_at(where), fault::unreachable), "does not hold"));

    for (const auto& [file, text] : std::vector<std::pair<std::string, std::string>>{
             {files.path + "/missing.pem", "No such file or directory"},
             {files.path, "Is a directory"},
             {files.file("empty.pem", ""), "it is empty"},
             {files.file("text.pem", "hello"), "no certificate in PEM form"}}) {
        where.ca_file = file;
        const auto made = remote_sandbox::create(where, {.token = "t"});
        BOOST_TEST_REQUIRE(made.has_error());
        BOOST_TEST(name_of(made.error().kind) == "invalid");
        BOOST_TEST(has(made.error().message, text));
    }
    where.ca_file = ca;
    // Plain HTTP where TLS was meant.
    fake_service plain(always("HTTP/1.1 400 Bad\r\n\r\n"));
    where.url = "https" + plain.url().substr(4);
    where.connect_timeout =
        300ms; // it waits for the end of a request, as this one's does for the handshake's
    (void)start_fails(sandbox_at(where), fault::unreachable);
}

BOOST_AUTO_TEST_CASE(urls) {
    const auto url = parse_url("https://example.com:8443/behind/proxy/").value();
    BOOST_TEST(url.tls);
    BOOST_TEST(url.host == "example.com");
    BOOST_TEST(url.port == "8443");
    BOOST_TEST(url.prefix == "/behind/proxy");
    BOOST_TEST(url.host_field == "example.com:8443");
    BOOST_TEST(parse_url("https://example.com").value().host_field == "example.com");
    BOOST_TEST(parse_url("http://[::1]:8080").value().host == "::1");
    BOOST_TEST(parse_url("http://[::1]:8080").value().host_field == "[::1]:8080");
    BOOST_TEST(parse_url("http://localhost").value().port == "80");
    for (const std::string bad :
         {"", "localhost:8080", "ftp://x", "http://", "http://a:b@c", "http://x?y", "http://x#y",
          "http://x:99999", "http://x:0", "http://a b", "http://x\r\nX: y"}) {
        BOOST_TEST(parse_url(bad).has_error(), "accepted: " << bad);
    }
    BOOST_TEST(!has(parse_url("http://user:secret@host").error().message, "secret"));
    BOOST_TEST(encoded("/workspace/dir one/\xC3\xBC+&") == "%2Fworkspace%2Fdir%20one%2F%C3%BC%2B%26");
}
