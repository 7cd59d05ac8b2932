#include "docker/exec_run.hpp"
#include "with_fake.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

using namespace sandboxd;
using namespace sandboxd::test;

namespace asio = boost::asio;

namespace {

constexpr auto tuple = asio::as_tuple(asio::use_awaitable);
const std::string switching = "HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\n"
                              "Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n";
const std::string plain_200 = "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.docker.raw-stream\r\n\r\n";

struct heard {
    std::string text;
    boost::system::error_code end;
};

task<heard> listen(net::stream& stream) {
    heard all;
    std::array<char, 64> part{};
    while (!all.end) {
        const auto [failed, size] = co_await stream.async_read_some(asio::buffer(part), tuple);
        all.text.append(part.data(), size);
        all.end = failed;
    }
    co_return all;
}

task<heard> say(net::stream& stream, std::string words) {
    co_await asio::async_write(stream, asio::buffer(words), tuple);
    stream.shutdown_send();
    co_return co_await listen(stream);
}

/// Creates "e" in "c"; its start and its inspect are the test's.
void script_exec(fake_engine& fake, fake_script start, fake_script inspect) {
    fake.on("POST /containers/c/exec", [](const auto&, const auto& to) {
        to.answer(201, R"({"Id":"e"})");
        return true;
    });
    fake.on("POST /exec/e/start", std::move(start));
    fake.on("GET /exec/e/json", std::move(inspect));
}

fake_script ended_with(int code) {
    return [code](const auto&, const auto& to) {
        to.answer(200, R"({"Running":false,"ExitCode":)" + std::to_string(code) + "}");
        return true;
    };
}

docker::exec_limits quick() {
    docker::exec_limits limits;
    limits.total = 60s;
    limits.look = 20ms;
    limits.after_end = 1s; // the fake may be held up between two of its bytes
    return limits;
}

docker::hijack_options apart(std::string& errors) {
    docker::hijack_options options;
    options.demultiplex = true;
    options.side = [&errors](docker::channel from, std::string_view part) {
        errors += std::to_string(static_cast<int>(from)) + ":" + std::string(part) + ";";
    };
    return options;
}

} // namespace

// The head, and in the same write bytes of the stream; then an echo, until the half-close.
BOOST_FIXTURE_TEST_CASE(attach_is_a_duplex_stream, with_fake) {
    fake.on("POST /containers/c/attach", [](const seen_request&, const fake_connection& to) {
        to.send(switching + frame(1, "hel") + frame(2, "oops"));
        to.send_split(frame(1, "lo ") + frame(1, to.read_all()), 3);
        return false;
    });
    std::string errors;
    docker::attach_options options;
    options.stream = apart(errors);
    auto opened = get(connect().attach(context.get_executor(), "c", options, 60s));
    BOOST_TEST_REQUIRE(opened.has_value());
    BOOST_TEST(!opened->multiplexed);
    const auto all = get(say(*opened->stream, "world"));
    BOOST_TEST(all.text == "hello world");
    BOOST_TEST(all.end == asio::error::eof);
    BOOST_TEST(errors == "2:oops;");
    const auto request = fake.seen("/containers/c/attach").at(0);
    BOOST_TEST(request.target == "/v1.41/containers/c/attach?stream=1&stdin=1&stdout=1&stderr=1&logs=0");
    BOOST_TEST(request.fields.at("upgrade") == "tcp");
}

// hard-cases B7 05, 06
BOOST_FIXTURE_TEST_CASE(an_upgrade_may_be_answered_with_200, with_fake) {
    fake.on("POST /containers/plain/attach", [](const auto&, const auto& to) {
        to.send(plain_200 + "raw ");
        to.send(to.read_all());
        return false;
    });
    fake.on("POST /containers/chunked/attach", [](const auto&, const auto& to) {
        const std::string head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        const std::string framed = frame(1, "through a proxy");
        to.send_split(
            head + "A\r\n" + framed.substr(0, 10) + "\r\nD\r\n" + framed.substr(10) + "\r\n0\r\n\r\n", 5);
        to.hang();
        return false;
    });
    fake.on("POST /containers/sized/attach", [](const auto&, const auto& to) {
        to.answer(200, "hello");
        return true;
    });
    fake.on("POST /containers/cut/attach", [](const auto&, const auto& to) {
        to.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nF\r\n" +
                frame(1, "seven b").substr(0, 12));
        return false;
    });
    auto& one = connect();
    docker::attach_options raw;
    raw.stream.tty = true;
    auto plain = get(one.attach(context.get_executor(), "plain", raw, 60s));
    BOOST_TEST(!plain->multiplexed);
    BOOST_TEST(get(say(*plain->stream, "bytes")).text == "raw bytes");
    std::string errors;
    docker::attach_options options;
    options.stream = apart(errors);
    auto chunked = get(one.attach(context.get_executor(), "chunked", options, 60s));
    const auto through = get(listen(*chunked->stream));
    BOOST_TEST(through.text == "through a proxy");
    BOOST_TEST(through.end == asio::error::eof); // the last chunk, though the connection stays open
    BOOST_TEST(code(get(one.attach(context.get_executor(), "sized", options, 60s)).error()) ==
               code(errc::protocol));
    auto cut = get(one.attach(context.get_executor(), "cut", options, 60s));
    const auto partly = get(listen(*cut->stream));
    BOOST_TEST(partly.text == "seve");
    BOOST_TEST(partly.end == make_error_code(boost::system::errc::bad_message));
}

BOOST_FIXTURE_TEST_CASE(a_refused_attach_keeps_the_words, with_fake) {
    fake.on("POST /containers/c/attach", [](const auto&, const auto& to) {
        to.answer(409, R"({"message":"container c is paused"})");
        return true;
    });
    const auto failed = get(connect().attach(context.get_executor(), "c", {}, 60s)).error();
    BOOST_TEST(failed.message == "cannot attach to the container: container c is paused");
    BOOST_TEST(failed.status == 409);
}

BOOST_FIXTURE_TEST_CASE(hijacked_streams_are_capped, with_fake) {
    fake.on("POST /containers/c/attach", [](const auto&, const auto& to) {
        to.send(switching);
        to.hang();
        return false;
    });
    docker::engine_options options;
    options.client.hijacked = 2;
    auto& one = connect(options);
    auto first = get(one.attach(context.get_executor(), "c", {}, 60s));
    auto second = get(one.attach(context.get_executor(), "c", {}, 60s));
    BOOST_TEST(code(get(one.attach(context.get_executor(), "c", {}, 60s)).error()) == code(errc::capacity));
    first->stream.reset();
    BOOST_TEST(get(one.attach(context.get_executor(), "c", {}, 60s)).has_value());
}

// hard-cases B1 15, B7 08
BOOST_FIXTURE_TEST_CASE(a_command_runs_and_its_connection_is_not_reused, with_fake) {
    script_exec(
        fake,
        [](const auto&, const auto& to) {
            to.send_split(switching + frame(1, "out") + frame(1, "") + frame(2, "err") + frame(1, "put"), 1);
            return true;
        },
        ended_with(3));
    auto& one = connect();
    static_cast<void>(one);
    docker::exec_spec spec;
    spec.argv = {"sh", "-c", "x"};
    for (int i = 0; i < 2; ++i) {
        // The fake keeps the connection; our half must end it. Read until the daemon says it is over.
        auto limits = quick();
        limits.look = 200ms;
        limits.after_end = 2s;
        const auto done = get(docker::run_exec(engine, "c", spec, limits));
        BOOST_TEST_REQUIRE(done.has_value());
        BOOST_TEST(done->out == "output");
        BOOST_TEST(done->err == "err");
        BOOST_TEST(done->exit_code == 3);
    }
    const auto starts = fake.seen("/exec/e/start");
    BOOST_TEST_REQUIRE(starts.size() == 2U);
    BOOST_TEST(starts[0].connection != starts[1].connection);
    BOOST_TEST(starts[0].body == R"({"Detach":false,"Tty":false})");
    BOOST_TEST(
        fake.seen("/containers/c/exec").at(0).body ==
        R"({"AttachStdin":false,"AttachStdout":true,"AttachStderr":true,"Tty":false,"Cmd":["sh","-c","x"],)"
        R"("Env":[],"WorkingDir":"","User":""})");
}

// hard-cases B1 08: the stream stays open for ever, inspect says it has ended.
BOOST_FIXTURE_TEST_CASE(a_stream_left_open_does_not_hold_a_command, with_fake) {
    script_exec(
        fake,
        [](const auto&, const auto& to) {
            to.send(switching + frame(1, "done"));
            to.hang();
            return false;
        },
        ended_with(0));
    connect();
    const auto done = get(docker::run_exec(engine, "c", {}, quick()));
    BOOST_TEST(done->out == "done");
    BOOST_TEST(done->exit_code == 0);
    BOOST_TEST(!done->whole);
}

// hard-cases B1 11
BOOST_FIXTURE_TEST_CASE(a_command_that_never_ends_times_out, with_fake) {
    script_exec(
        fake,
        [](const auto&, const auto& to) {
            to.send(switching);
            to.hang();
            return false;
        },
        [](const auto&, const auto& to) {
            to.answer(200, R"({"Running":true,"ExitCode":null})");
            return true;
        });
    connect();
    auto limits = quick();
    limits.total = 200ms;
    BOOST_TEST(code(get(docker::run_exec(engine, "c", {}, limits)).error()) == code(errc::timeout));
}

// hard-cases B3 01
BOOST_FIXTURE_TEST_CASE(an_exit_code_that_comes_late_is_waited_for, with_fake) {
    auto asked = std::make_shared<std::atomic<int>>(0);
    script_exec(
        fake,
        [](const auto&, const auto& to) {
            to.send(switching + frame(1, "x"));
            return false;
        },
        [asked](const auto&, const auto& to) {
            const int time = ++*asked;
            to.answer(200, time < 3 ? R"({"Running":false,"ExitCode":null})"
                                    : R"({"Running":false,"ExitCode":3})");
            return true;
        });
    connect();
    BOOST_TEST(get(docker::run_exec(engine, "c", {}, quick()))->exit_code == 3);
    BOOST_TEST(*asked == 3);
}

// hard-cases B2 04
BOOST_FIXTURE_TEST_CASE(a_stream_cut_in_a_frame_is_told, with_fake) {
    script_exec(
        fake,
        [](const auto&, const auto& to) {
            to.send(switching + frame(1, "kept and lost").substr(0, 12));
            return false;
        },
        ended_with(0));
    connect();
    const auto done = get(docker::run_exec(engine, "c", {}, quick()));
    BOOST_TEST(done->out == "kept");
    BOOST_TEST(!done->whole);
}

// hard-cases B1 16: more output than is kept is drained.
BOOST_FIXTURE_TEST_CASE(large_output_is_drained, with_fake) {
    script_exec(
        fake,
        [](const auto&, const auto& to) {
            to.send(switching);
            const std::string piece = frame(1, std::string(100'000, 'x'));
            for (int i = 0; i < 50; ++i) {
                to.send(piece);
            }
            return false;
        },
        ended_with(0));
    connect();
    const auto done = get(docker::run_exec(engine, "c", {}, quick()));
    BOOST_TEST(done->out.size() == 1U << 20U);
    BOOST_TEST(done->dropped == 5'000'000U - (1U << 20U));
    BOOST_TEST(done->whole);
}
