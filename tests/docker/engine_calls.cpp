#include "with_fake.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>

using namespace sandboxd;
using namespace sandboxd::test;
using docker::outcome;

namespace {

bool answers_json(const fake_connection& to, std::string_view body) {
    to.answer(200, body);
    return true;
}

} // namespace

// hard-cases B6 08
BOOST_FIXTURE_TEST_CASE(a_new_daemon_is_spoken_to_in_our_newest, with_fake) {
    fake.speaks("1.52", "1.44");
    fake.on("GET /containers/json", [](const auto&, const auto& to) { return answers_json(to, "[]"); });
    BOOST_TEST(get(connect().list({}, 60s))->empty());
    BOOST_TEST(fake.seen("/containers/json").at(0).target == "/v1.47/containers/json?all=1&filters=%7B%7D");
}

BOOST_FIXTURE_TEST_CASE(an_old_daemon_is_refused_in_words, with_fake) {
    fake.speaks("1.38", "1.12");
    const auto failed = get(connect().start("c", 60s)).error();
    BOOST_TEST(code(failed) == code(errc::unsupported));
    BOOST_TEST(failed.message ==
               "cannot start the container: the daemon is too old: it speaks API 1.38, sandboxd "
               "needs 1.41 to 1.47 (Docker Engine 20.10 or later)");
    BOOST_TEST(fake.seen("/containers/c/start").empty());
}

BOOST_FIXTURE_TEST_CASE(no_header_is_relied_on, with_fake) {
    fake.speaks("", "");
    BOOST_TEST(get(connect().ping(60s))->text() == "1.41");
}

BOOST_FIXTURE_TEST_CASE(a_daemon_that_is_away_is_unavailable, with_fake) {
    docker::endpoint where;
    where.path = fake.path() + "-gone";
    engine = docker::create_engine(context.get_executor(), where, {}).value();
    const auto failed = get(engine->start("c", 60s)).error();
    BOOST_TEST(code(failed) == code(errc::unavailable));
    BOOST_TEST(failed.retryable);
    BOOST_TEST(!failed.may_have_happened);
}

BOOST_FIXTURE_TEST_CASE(repeated_calls_are_told_apart, with_fake) {
    fake.on("POST /containers/c/start", [](const auto&, const auto& to) {
        to.answer(304, "");
        return true;
    });
    fake.on("POST /containers/c/stop", [](const auto&, const auto& to) {
        to.answer(304, "");
        return true;
    });
    fake.on("POST /containers/c/kill", [](const auto&, const auto& to) {
        to.answer(409, R"({"message":"Container c is not running"})");
        return true;
    });
    fake.on("POST /containers/c/unpause", [](const auto&, const auto& to) {
        to.answer(204, "");
        return true;
    });
    fake.on("POST /containers/d/unpause", [](const auto&, const auto& to) {
        to.answer(409, R"({"message":"Container d is not paused"})");
        return true;
    });
    fake.on("DELETE /containers/c", [](const auto&, const auto& to) {
        to.answer(409, R"({"message":"removal of container c is already in progress"})");
        return true;
    });
    auto& one = connect();
    BOOST_TEST((get(one.start("c", 60s)).value() == outcome::already));
    BOOST_TEST((get(one.stop("c", 10s, 60s)).value() == outcome::already));
    BOOST_TEST((get(one.kill("c", "KILL", 60s)).value() == outcome::already));
    BOOST_TEST((get(one.unpause("c", 60s)).value() == outcome::done));
    BOOST_TEST(get(one.unpause("d", 60s)).error().message ==
               "cannot unpause the container: Container d is not paused");
    BOOST_TEST((get(one.remove("c", true, 60s)).value() == outcome::in_progress));
    BOOST_TEST((get(one.remove("d", true, 60s)).value() == outcome::missing));
    BOOST_TEST(code(get(one.start("d", 60s)).error()) == code(errc::not_found));
    BOOST_TEST(fake.seen("/containers/c/stop").at(0).target == "/v1.41/containers/c/stop?t=10");
    BOOST_TEST(fake.connections() <= 2); // everything over kept connections
}

BOOST_FIXTURE_TEST_CASE(words_come_through_in_any_form, with_fake) {
    fake.on("GET /info", [](const auto&, const auto& to) {
        to.answer(400, "client version 1.41 is too old.\n", "text/plain");
        return true;
    });
    fake.on("GET /version", [](const auto&, const auto& to) {
        to.answer(200, "<html>hello</html>", "text/html");
        return true;
    });
    auto& one = connect();
    BOOST_TEST(get(one.info(60s)).error().message ==
               "cannot ask about the daemon: client version 1.41 is too old.");
    const auto html = get(one.version(60s)).error();
    BOOST_TEST(code(html) == code(errc::protocol));
    BOOST_TEST(html.message ==
               "cannot ask the daemon's version: the daemon's answer is no JSON object: <html>hello</html>");
}

// hard-cases B7 10: the daemon closes, without a word, every connection after one answer.
BOOST_FIXTURE_TEST_CASE(a_stale_connection_costs_a_get_nothing, with_fake) {
    fake.close_after_each();
    fake.on("GET /containers/c/json",
            [](const auto&, const auto& to) { return answers_json(to, R"({"Id":"c"})"); });
    auto& one = connect();
    for (int i = 0; i < 20; ++i) {
        BOOST_TEST(get(one.inspect("c", 60s))->id == "c");
    }
}

// The request is read, and the connection closed instead of an answer: a POST is never sent twice.
BOOST_FIXTURE_TEST_CASE(a_post_is_never_repeated, with_fake) {
    fake.on("GET /containers/c/json",
            [](const auto&, const auto& to) { return answers_json(to, R"({"Id":"c"})"); });
    fake.on("POST /containers/c/exec", [](const auto&, const auto&) { return false; });
    fake.on("GET /containers/d/json", [](const auto&, const auto&) { return false; });
    auto& one = connect();
    BOOST_TEST(get(one.inspect("c", 60s)).has_value()); // leaves a kept connection
    const auto failed = get(one.create_exec("c", {}, 60s)).error();
    BOOST_TEST(code(failed) == code(errc::unavailable));
    BOOST_TEST(failed.may_have_happened);
    BOOST_TEST(fake.seen("/containers/c/exec").size() == 1U);
    // A GET is, once, on a fresh connection.
    BOOST_TEST(get(one.inspect("c", 60s)).has_value());
    BOOST_TEST(code(get(one.inspect("d", 60s)).error()) == code(errc::unavailable));
    BOOST_TEST(fake.seen("/containers/d/json").size() == 2U);
}

// hard-cases B6 02
BOOST_FIXTURE_TEST_CASE(a_stop_that_never_answers_ends_at_its_deadline, with_fake) {
    fake.on("POST /containers/c/stop", [](const auto&, const auto& to) {
        to.hang();
        return false;
    });
    fake.on("GET /containers/d/json",
            [](const auto&, const auto& to) { return answers_json(to, R"({"Id":"d"})"); });
    auto& one = connect();
    BOOST_TEST_REQUIRE(get(one.ping(60s)).has_value()); // so that the time below is the call's own
    const auto failed = get(one.stop("c", 0s, 500ms)).error();
    BOOST_TEST(code(failed) == code(errc::timeout));
    BOOST_TEST(failed.may_have_happened);
    BOOST_TEST(failed.message == "cannot stop the container: no answer from the daemon within 500 ms");
    BOOST_TEST(get(one.inspect("d", 60s))->id == "d");
}

// hard-cases B6 15: the create answers after the deadline; its container is found by label and removed.
BOOST_FIXTURE_TEST_CASE(a_late_create_can_be_cleaned_up, with_fake) {
    auto born = std::make_shared<std::atomic<bool>>(false);
    fake.on("POST /containers/create", [born](const auto&, const auto& to) {
        to.hang(); // the client gives up; the daemon does not
        *born = true;
        return false;
    });
    fake.on("GET /containers/json", [born](const auto&, const auto& to) {
        for (int i = 0; i < 30'000 && !*born; ++i) {
            to.pause(1);
        }
        return answers_json(
            to, R"([{"Id":"late","Names":["/n"],"State":"created","Labels":{"sandboxd.slot":"s"}}])");
    });
    fake.on("DELETE /containers/late", [](const auto&, const auto& to) {
        to.answer(204, "");
        return true;
    });
    auto& one = connect();
    docker::container_spec spec;
    spec.image = "x";
    BOOST_TEST_REQUIRE(get(one.ping(10s)).has_value()); // so that the time below is the call's own
    const auto failed = get(one.create(spec, 1s)).error();
    BOOST_TEST(code(failed) == code(errc::timeout));
    BOOST_TEST(failed.may_have_happened);
    BOOST_TEST(get(docker::remove_matching(engine, {{"label", "sandboxd.slot=s"}}, 60s)).value() == 1U);
    BOOST_TEST(fake.seen("/containers/late").at(0).target == "/v1.41/containers/late?v=1&force=1");
}

BOOST_FIXTURE_TEST_CASE(answers_are_read_however_they_come, with_fake) {
    fake.on("GET /containers/split/json", [](const auto&, const auto& to) {
        to.send_split("HTTP/1.1 200 OK\r\nTransfer-Encoding: "
                      "chunked\r\n\r\n5\r\n{\"Id\"\r\n9\r\n:\"split\"}\r\n0\r\n\r\n",
                      1);
        return true;
    });
    fake.on("GET /containers/until-close/json", [](const auto&, const auto& to) {
        to.send_split("HTTP/1.1 200 OK\r\n\r\n{\"Id\":\"until-close\"}", 3);
        return false;
    });
    fake.on("GET /containers/cut/json", [](const auto&, const auto& to) {
        to.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"Id\":");
        return false;
    });
    fake.on("GET /containers/junk/json", [](const auto&, const auto& to) {
        to.send("SSH-2.0-OpenSSH_9.2\r\n\r\n");
        return false;
    });
    fake.on("GET /containers/continue/json", [](const auto&, const auto& to) {
        to.send("HTTP/1.1 102 Processing\r\n\r\n");
        return answers_json(to, R"({"Id":"continue"})");
    });
    auto& one = connect();
    BOOST_TEST(get(one.inspect("split", 60s))->id == "split");
    BOOST_TEST(get(one.inspect("until-close", 60s))->id == "until-close");
    BOOST_TEST(get(one.inspect("continue", 60s))->id == "continue");
    BOOST_TEST(code(get(one.inspect("cut", 60s)).error()) == code(errc::protocol));
    BOOST_TEST(code(get(one.inspect("junk", 60s)).error()) == code(errc::protocol));
}

BOOST_FIXTURE_TEST_CASE(an_endless_answer_is_refused, with_fake) {
    fake.on("GET /info", [](const auto&, const auto& to) {
        to.send("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + std::string(5000, ' '));
        return true;
    });
    docker::engine_options options;
    options.client.largest_body = 4096;
    const auto failed = get(connect(options).info(60s)).error();
    BOOST_TEST(failed.message ==
               "cannot ask about the daemon: the daemon's answer is larger than 4096 bytes");
}

// hard-cases B6 14, B7 07: 30 calls at once over at most 4 connections.
BOOST_FIXTURE_TEST_CASE(calls_beyond_the_cap_wait, with_fake) {
    auto now = std::make_shared<std::atomic<int>>(0);
    auto most = std::make_shared<std::atomic<int>>(0);
    fake.on("GET /containers/c/json", [now, most](const auto&, const auto& to) {
        const int mine = ++*now;
        for (int seen = *most; seen < mine && !most->compare_exchange_weak(seen, mine);) {
        }
        for (int i = 0; i < 10'000 && *most < 4; ++i) {
            to.pause(1); // until as many as may have come
        }
        to.pause(5);
        --*now;
        return answers_json(to, R"({"Id":"c"})");
    });
    docker::engine_options options;
    options.client.pool.at_once = 4;
    options.client.pool.idle = 4;
    auto& one = connect(options);
    int good = 0;
    for (int i = 0; i < 30; ++i) {
        boost::asio::co_spawn(context, one.inspect("c", 60s),
                              [&](const std::exception_ptr& thrown, auto found) {
                                  good += !thrown && found.has_value() ? 1 : 0;
                              });
    }
    context.run();
    BOOST_TEST(good == 30);
    BOOST_TEST(*most == 4);
    BOOST_TEST(fake.connections() <= 4 + 8); // and what negotiating took
}

BOOST_FIXTURE_TEST_CASE(a_cancelled_call_ends_at_once, with_fake) {
    fake.on("POST /containers/c/wait", [](const auto&, const auto& to) {
        to.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        to.hang();
        return false;
    });
    auto& one = connect();
    boost::asio::cancellation_signal stop;
    bool ended = false;
    bool good = false;
    auto done = [&](const std::exception_ptr& thrown, auto found) {
        ended = true;
        good = !thrown && found.has_value();
    };
    boost::asio::co_spawn(context, one.wait("c", "not-running", 60s),
                          boost::asio::bind_cancellation_slot(stop.slot(), done));
    while (fake.seen("/containers/c/wait").empty() && context.run_one_for(10s) > 0) {
    }
    context.run_for(50ms);
    BOOST_TEST(!ended);
    stop.emit(boost::asio::cancellation_type::terminal);
    while (!ended && context.run_one_for(10s) > 0) {
    }
    BOOST_TEST(ended);
    engine.reset();
    context.run_for(60s); // what is left of the call, before its signal goes
    BOOST_TEST(!good);
}

BOOST_FIXTURE_TEST_CASE(a_wait_answers_when_the_container_ends, with_fake) {
    fake.on("POST /containers/c/wait", [](const auto&, const auto& to) {
        to.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        to.pause(20);
        to.send_split("12\r\n{\"StatusCode\":137}\r\n0\r\n\r\n", 4);
        return true;
    });
    BOOST_TEST(get(connect().wait("c", "next-exit", 60s))->exit_code == 137);
}
