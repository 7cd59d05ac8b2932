#include "docker/api_version.hpp"
#include "docker/chunk_decoder.hpp"
#include "docker/error.hpp"
#include "docker/events.hpp"
#include "docker/frame_demux.hpp"
#include "docker/image_ref.hpp"
#include "docker/json_stream.hpp"
#include "docker/query.hpp"
#include "docker/stats.hpp"
#include "docker/tar.hpp"

#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <map>

using namespace sandboxd;
using namespace sandboxd::docker;

namespace {

std::string frame(int type, std::string_view payload) {
    const auto size = static_cast<std::uint32_t>(payload.size());
    std::string made{static_cast<char>(type), 0, 0, 0};
    for (int shift = 24; shift >= 0; shift -= 8) {
        made.push_back(static_cast<char>(size >> shift & 0xFFU));
    }
    return made + std::string(payload);
}

struct taken_apart {
    std::map<channel, std::string> text;
    std::optional<engine_error> failed;
};

taken_apart demultiplex(std::string_view stream, std::size_t piece) {
    taken_apart got;
    frame_demux demux;
    const auto each = [&](channel from, std::string_view part) {
        BOOST_TEST(!part.empty());
        got.text[from] += part;
    };
    for (std::size_t at = 0; at < stream.size(); at += piece) {
        if (auto fed = demux.feed(stream.substr(at, piece), each); !fed) {
            got.failed = fed.error();
            return got;
        }
    }
    if (auto end = demux.finish(); !end) {
        got.failed = end.error();
    }
    return got;
}

std::string many_characters() {
    std::string text;
    while (text.size() < 300'000) {
        text += "a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x9A\x80";
    }
    return text;
}

} // namespace

// hard-cases B2 08
BOOST_AUTO_TEST_CASE(an_empty_frame_is_no_end) {
    BOOST_TEST(demultiplex(frame(1, "") + frame(1, "a"), 64).text[channel::out] == "a");
}

// hard-cases B2 10, 11
BOOST_AUTO_TEST_CASE(frames_survive_every_cut) {
    const std::string line(40'000, 'x');
    const std::string stream =
        frame(1, "one") + frame(2, "err") + frame(1, line) + frame(3, "late") + frame(0, "in");
    for (const std::size_t piece : {1UL, 2UL, 3UL, 7UL, 8UL, 9UL, 4096UL, stream.size()}) {
        const auto got = demultiplex(stream, piece);
        BOOST_TEST(!got.failed.has_value());
        BOOST_TEST(got.text.at(channel::out) == "one" + line);
        BOOST_TEST(got.text.at(channel::err) == "err");
        BOOST_TEST(got.text.at(channel::system_error) == "late");
        BOOST_TEST(got.text.at(channel::in) == "in");
    }
}

// hard-cases B2 12, 15: one buffer per stream, so a character cut between frames is whole again.
BOOST_AUTO_TEST_CASE(streams_are_put_together_apart) {
    const auto got = demultiplex(frame(1, "\xF0\x9F") + frame(2, "err") + frame(1, "\x9A\x80"), 5);
    BOOST_TEST(got.text.at(channel::out) == "\xF0\x9F\x9A\x80");
    BOOST_TEST(got.text.at(channel::err) == "err");
    const std::string all = many_characters();
    std::string stream;
    for (std::size_t at = 0; at < all.size(); at += 7) {
        stream += frame(1, std::string_view(all).substr(at, 7));
    }
    BOOST_TEST((demultiplex(stream, 11).text.at(channel::out) == all));
}

// hard-cases B2 09
BOOST_AUTO_TEST_CASE(a_stream_out_of_step_is_told_with_its_bytes) {
    const auto first = demultiplex("HTTP/1.1 200 OK", 15);
    BOOST_TEST(first.failed.value().message ==
               "the output stream is out of step: a frame cannot begin with the bytes 48 545450"
               "2f312e3120323030204f4b");
    const auto stray = demultiplex(frame(1, "good") + "\x01\x00\x07"
                                                      "ab",
                                   100);
    BOOST_TEST(stray.text.at(channel::out) == "good");
    BOOST_TEST(static_cast<int>(stray.failed.value().code) == static_cast<int>(errc::protocol));
    const auto tail = demultiplex(frame(1, "good") + std::string("\x01\x00\x00", 3), 100);
    BOOST_TEST(tail.failed.value().message ==
               "the output stream ended in the middle of a frame's header: 010000");
}

// hard-cases B2 04; 4 GiB announced, nothing of it allocated.
BOOST_AUTO_TEST_CASE(a_cut_payload_is_an_error_and_its_part_is_kept) {
    const auto cut = demultiplex(frame(1, "abcdef").substr(0, 11), 4);
    BOOST_TEST(cut.text.at(channel::out) == "abc");
    BOOST_TEST(cut.failed.value().message == "the output stream ended 3 bytes before the end of a frame");
    const auto huge = demultiplex(std::string("\x01\x00\x00\x00\xFF\xFF\xFF\xFFxy", 10), 3);
    BOOST_TEST(huge.text.at(channel::out) == "xy");
    BOOST_TEST(huge.failed.value().message ==
               "the output stream ended 4294967293 bytes before the end of a frame");
}

BOOST_AUTO_TEST_CASE(chunks_are_decoded_whatever_the_cut) {
    const std::string coded =
        "4\r\nWiki\r\n6;x=y\r\npedia \r\nE\r\nin \r\n\r\nchunks.\r\n0\r\nTrailer: 1\r\n\r\nrest";
    for (std::size_t piece = 1; piece <= coded.size(); ++piece) {
        chunk_decoder decoder;
        std::string out;
        for (std::size_t at = 0; at < coded.size(); at += piece) {
            BOOST_TEST(decoder.feed(std::string_view(coded).substr(at, piece), out).has_value());
        }
        BOOST_TEST(out == "Wikipedia in \r\n\r\nchunks.");
        BOOST_TEST(decoder.done());
    }
    for (const std::string bad : {"zz\r\n", "\r\n", "1\r\nab\r\n", "3\nabc", "11111111111111111\r\n"}) {
        chunk_decoder decoder;
        std::string out;
        BOOST_TEST(!decoder.feed(bad, out).has_value(), bad);
    }
    chunk_decoder cut;
    std::string out;
    BOOST_TEST(cut.feed("5\r\nab", out).has_value());
    BOOST_TEST(out == "ab");
    BOOST_TEST(!cut.finish().has_value());
}

// hard-cases B2 13
BOOST_AUTO_TEST_CASE(objects_are_read_across_reads) {
    const std::string first = R"({"a":"}{","b":{"c":[1,2]}})";
    const std::string second = R"({"label":")" + std::string(5000, 'x') + R"("})";
    const std::string stream = "\n" + first + second + "\r\n " + first;
    for (const std::size_t piece : {1UL, 3UL, 1000UL, stream.size()}) {
        json_stream reader;
        std::vector<std::string> all;
        for (std::size_t at = 0; at < stream.size(); at += piece) {
            BOOST_TEST(reader
                           .feed(std::string_view(stream).substr(at, piece),
                                 [&](json::object one) { all.push_back(json::serialize(one)); })
                           .has_value());
        }
        BOOST_TEST(reader.finish().has_value());
        BOOST_TEST((all == std::vector<std::string>{first, second, first}));
    }
}

BOOST_AUTO_TEST_CASE(what_is_no_object_or_too_long_is_refused) {
    const auto nothing = [](json::object) {};
    BOOST_TEST(!json_stream().feed("<html>", nothing).has_value());
    BOOST_TEST(!json_stream().feed("{\"a\":}", nothing).has_value());
    json_stream small(100);
    BOOST_TEST(!small.feed("{\"a\":\"" + std::string(200, 'x'), nothing).has_value());
    json_stream cut;
    BOOST_TEST(cut.feed("{\"a\":1", nothing).has_value());
    BOOST_TEST(!cut.finish().has_value());
}

// hard-cases B6 08
BOOST_AUTO_TEST_CASE(versions_are_agreed_on) {
    const auto newest = parse_version("1.52");
    const auto oldest = parse_version("1.44");
    BOOST_TEST(negotiate(newest, oldest, std::nullopt)->text() == "1.47");
    BOOST_TEST(negotiate(parse_version("1.41"), parse_version("1.12"), std::nullopt)->text() == "1.41");
    BOOST_TEST(negotiate(std::nullopt, std::nullopt, std::nullopt)->text() == "1.41");
    BOOST_TEST(negotiate(newest, oldest, parse_version("1.45"))->text() == "1.45");
    BOOST_TEST(
        negotiate(parse_version("1.38"), parse_version("1.12"), std::nullopt).error().message ==
        "the daemon is too old: it speaks API 1.38, sandboxd needs 1.41 to 1.47 (Docker Engine 20.10 or "
        "later)");
    BOOST_TEST(negotiate(parse_version("1.60"), parse_version("1.50"), std::nullopt).error().message ==
               "the daemon is too new: it speaks API 1.50 and later, sandboxd speaks 1.41 to 1.47");
    BOOST_TEST(!negotiate(newest, oldest, parse_version("1.43")).has_value());
    for (const char* bad : {"", "1", "1.", ".1", "1.x", "1.41 ", "-1.4", "1.999999"}) {
        BOOST_TEST(!parse_version(bad).has_value(), bad);
    }
}

BOOST_AUTO_TEST_CASE(errors_keep_the_daemons_words) {
    const auto conflict =
        from_answer("create the container", 409,
                    R"({"message":"Conflict. The container name \"/x\" is already in use"})");
    BOOST_TEST(conflict.message ==
               "cannot create the container: Conflict. The container name \"/x\" is already in use");
    BOOST_TEST(static_cast<int>(conflict.code) == static_cast<int>(errc::exists));
    BOOST_TEST(conflict.status == 409);
    const auto old = from_answer("ping", 400, "client version 1.99 is too new. Maximum supported is 1.41\n");
    BOOST_TEST(old.message == "cannot ping: client version 1.99 is too new. Maximum supported is 1.41");
    BOOST_TEST(from_answer("ping", 502, "").message == "cannot ping: the daemon answered 502 without words");
    // hard-cases B6 09
    const auto limited =
        from_answer("pull x", 500, R"({"message":"toomanyrequests: You have reached your pull rate limit"})");
    BOOST_TEST(limited.retryable);
    BOOST_TEST(static_cast<int>(limited.code) == static_cast<int>(errc::unavailable));
    BOOST_TEST(!from_answer("pull x", 500, R"({"message":"no space left on device"})").retryable);
}

BOOST_AUTO_TEST_CASE(statistics_of_both_cgroup_versions) {
    const auto v1 = read_stats(*json_object(R"({"memory_stats":{"usage":1000,"limit":5000,
        "stats":{"total_inactive_file":300,"inactive_file":1}},"pids_stats":{"current":3},
        "cpu_stats":{"cpu_usage":{"total_usage":100},"system_cpu_usage":1000,"online_cpus":2}})"));
    BOOST_TEST(v1.memory_bytes.value() == 700U);
    BOOST_TEST(v1.memory_limit_bytes.value() == 5000U);
    BOOST_TEST(v1.pids.value() == 3U);
    // hard-cases B6 11
    const auto v2 = read_stats(*json_object(R"({"memory_stats":{"usage":1000,"stats":{"inactive_file":1000}},
        "pids_stats":{},"cpu_stats":{"cpu_usage":{"total_usage":300},"system_cpu_usage":2000,"online_cpus":2}})"));
    BOOST_TEST(v2.memory_bytes.value() == 1000U); // not smaller: not subtracted
    BOOST_TEST(!v2.memory_limit_bytes.has_value());
    BOOST_TEST(!v2.pids.has_value());
    BOOST_TEST(cpu_percent(v1, v2).value() == 40.0);
    BOOST_TEST(!cpu_percent(v2, v1).has_value());
    BOOST_TEST(!cpu_percent(v1, v1).has_value());
    const auto empty = read_stats(*json_object(R"({"memory_stats":{"stats":{}},"cpu_stats":
        {"cpu_usage":{"total_usage":0},"online_cpus":0}})"));
    BOOST_TEST(!empty.memory_bytes.has_value());
    BOOST_TEST(!empty.cpu_ns.has_value());
    BOOST_TEST(!cpu_percent(empty, empty).has_value());
}

BOOST_AUTO_TEST_CASE(events_are_told_once) {
    const auto one = read_event(*json_object(R"({"Type":"container","Action":"die","Actor":{"ID":"c1",
        "Attributes":{"exitCode":"137","sandboxd.slot":"s"}},"time":12,"timeNano":12000000345})"));
    BOOST_TEST(one->action == "die");
    BOOST_TEST(one->attribute("exitCode") == "137");
    BOOST_TEST(one->attribute("none") == "");
    event_cursor cursor;
    BOOST_TEST(cursor.since() == "");
    BOOST_TEST(cursor.accept(*one));
    BOOST_TEST(!cursor.accept(*one));
    BOOST_TEST(cursor.since() == "12.000000345");
    auto next = *one;
    next.action = "oom";
    next.time_nano -= 5; // late, but new
    BOOST_TEST(cursor.accept(next));
    BOOST_TEST(cursor.since() == "12.000000345");
    for (int i = 0; i < 5000; ++i) {
        next.time_nano += 1000;
        BOOST_TEST(cursor.accept(next));
    }
    BOOST_TEST(!read_event(*json_object(R"({"status":"x"})")).has_value());
}

BOOST_AUTO_TEST_CASE(image_references) {
    const auto check = [](const char* text, const char* name, const char* tag, const char* registry) {
        const auto parsed = parse_image(text);
        BOOST_TEST_REQUIRE(parsed.has_value(), text);
        BOOST_TEST(parsed->name == name);
        BOOST_TEST(parsed->tag == tag);
        BOOST_TEST(parsed->registry == registry);
    };
    check("python", "python", "latest", "docker.io");
    check("python:3.12-slim", "python", "3.12-slim", "docker.io");
    check("a/b", "a/b", "latest", "docker.io");
    check("ghcr.io/a/b:x", "ghcr.io/a/b", "x", "ghcr.io");
    check("localhost:5000/a", "localhost:5000/a", "latest", "localhost:5000");
    check("localhost/a", "localhost/a", "latest", "localhost");
    check("a@sha256:00ff", "a", "sha256:00ff", "docker.io");
    check("a:t@sha256:00ff", "a", "sha256:00ff", "docker.io");
    for (const char* bad : {"", ":x", "a:", "a b", "a?x=1", "/a", "a//b", "a@sha256", "a\n"}) {
        BOOST_TEST(!parse_image(bad).has_value(), bad);
    }
}

BOOST_AUTO_TEST_CASE(targets_are_encoded) {
    BOOST_TEST(segment("a/b c%") == "a%2Fb%20c%25");
    BOOST_TEST(image_path("ghcr.io/a:b@c?") == "ghcr.io/a:b@c%3F");
    BOOST_TEST(filters_json({{"label", "a=b"}, {"status", "running"}, {"label", "c"}}) ==
               R"({"label":["a=b","c"],"status":["running"]})");
    auto to = target("/x").with("a", "1&2").flag("f", true);
    BOOST_TEST(to.text() == "/x?a=1%262&f=1");
    to = std::move(to).with("since", "1.5");
    BOOST_TEST(to.text() == "/x?a=1%262&f=1&since=1.5");
}

BOOST_AUTO_TEST_CASE(a_tar_archive_has_the_right_header) {
    tar_file one;
    one.name = "agent";
    one.content = "hello";
    one.mode = 0755;
    const auto tar = make_tar({one});
    BOOST_TEST(tar.size() == 2048U);
    BOOST_TEST(tar.substr(0, 5) == "agent");
    BOOST_TEST(tar.substr(100, 7) == "0000755");
    BOOST_TEST(tar.substr(124, 11) == "00000000005");
    BOOST_TEST(tar.substr(257, 8) == std::string("ustar\00000", 8));
    BOOST_TEST(tar.substr(512, 5) == "hello");
    unsigned sum = 8 * ' ';
    for (std::size_t i = 0; i < 512; ++i) {
        sum += i >= 148 && i < 156 ? 0U : static_cast<unsigned char>(tar[i]);
    }
    BOOST_TEST(std::stoul(tar.substr(148, 6), nullptr, 8) == sum);
}
