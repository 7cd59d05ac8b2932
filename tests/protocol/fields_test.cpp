#include "protocol/handshake.hpp"

#include <boost/test/unit_test.hpp>

namespace {

using namespace sandboxd::protocol;

std::string payload_of(std::string frame) {
    return frame.substr(header_size);
}

std::string fields() {
    std::string out;
    frame_writer(out, frame_type::start, 1)
        .bytes(tag::argument, "sh")
        .u8(tag::mode, 2)
        .u16(tag::rows, 24)
        .u32(tag::grace_ms, 70'000)
        .u64(tag::timeout_ms, 1ULL << 33)
        .empty(tag::open_stdin)
        .bytes(tag::argument, std::string("a\0b", 3));
    return payload_of(out);
}

nonce_bytes nonce(char fill) {
    nonce_bytes out;
    out.fill(fill);
    return out;
}

BOOST_AUTO_TEST_SUITE(field_lists)

BOOST_AUTO_TEST_CASE(what_is_written_is_read) {
    const auto payload = fields();
    field_reader reader(payload);
    field one;
    BOOST_REQUIRE(reader.next(one));
    BOOST_TEST((one.id == tag::argument));
    BOOST_TEST(one.value == "sh");
    BOOST_REQUIRE(reader.next(one));
    BOOST_TEST(+one.u8().value() == 2);
    BOOST_TEST(!one.u16());
    BOOST_REQUIRE(reader.next(one));
    BOOST_TEST(one.u16().value() == 24);
    BOOST_TEST(!one.u8());
    BOOST_REQUIRE(reader.next(one));
    BOOST_TEST(one.u32().value() == 70'000U);
    BOOST_REQUIRE(reader.next(one));
    BOOST_TEST(one.u64().value() == 1ULL << 33);
    BOOST_TEST(!one.u32());
    BOOST_REQUIRE(reader.next(one));
    BOOST_TEST((one.id == tag::open_stdin));
    BOOST_TEST(one.value.empty());
    BOOST_REQUIRE(reader.next(one));
    BOOST_TEST(one.value == std::string("a\0b", 3));
    BOOST_TEST(!reader.next(one));
    BOOST_TEST(!reader.malformed());
}

BOOST_AUTO_TEST_CASE(a_list_cut_anywhere_is_malformed_or_shorter) {
    const auto payload = fields();
    const std::size_t borders[] = {0, 8, 15, 23, 33, 47, 53, 62};
    for (std::size_t size = 0; size < payload.size(); ++size) {
        field_reader reader(std::string_view(payload).substr(0, size));
        field one;
        std::size_t count = 0;
        while (reader.next(one)) {
            ++count;
        }
        const bool border = std::find(std::begin(borders), std::end(borders), size) != std::end(borders);
        BOOST_TEST(reader.malformed() == !border, "cut at " << size);
        BOOST_TEST(count ==
                   static_cast<std::size_t>(std::upper_bound(std::begin(borders), std::end(borders), size) -
                                            std::begin(borders) - 1));
    }
    BOOST_TEST(payload.size() == 62U);
}

BOOST_AUTO_TEST_CASE(a_length_that_lies_is_malformed_for_good) {
    std::string payload("\x0b\0\xff\xff\xff\xffxyz", 9);
    payload += fields();
    field_reader reader(payload);
    field one;
    BOOST_TEST(!reader.next(one));
    BOOST_TEST(reader.malformed());
    BOOST_TEST(!reader.next(one));
}

BOOST_AUTO_TEST_CASE(find_takes_the_first_and_skips_unknown_ones) {
    std::string frame;
    frame_writer(frame, frame_type::start, 1)
        .bytes(static_cast<tag>(60'000), "what")
        .bytes(tag::argument, "one")
        .bytes(tag::argument, "two");
    const auto payload = payload_of(frame);
    BOOST_TEST(find_field(payload, tag::argument).value().value == "one");
    BOOST_TEST(!find_field(payload, tag::directory));
}

BOOST_AUTO_TEST_CASE(the_writer_puts_the_length_into_the_header) {
    std::string out = "before";
    {
        frame_writer writer(out, frame_type::end, 5);
        writer.u32(tag::exit_code, 1);
        BOOST_TEST(writer.size() == 10U);
    }
    frame_header header;
    BOOST_REQUIRE(
        (decode_header(std::string_view(out).substr(6), sender::agent, header) == parse_status::ok));
    BOOST_TEST(header.length == 10U);
    BOOST_TEST(header.stream == 5U);
    BOOST_TEST(out.size() == 6U + 12 + 10);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(handshake)

BOOST_AUTO_TEST_CASE(a_finished_frame_may_be_moved_away) {
    std::string buffer;
    std::string taken;
    {
        frame_writer out(buffer, frame_type::start, 7);
        out.u32(tag::pid, 1);
        out.finish();
        taken = std::move(buffer);
        buffer = "another's";
    }
    BOOST_TEST(buffer == "another's");
    BOOST_TEST(static_cast<int>(taken[0]) == 10);
}

BOOST_AUTO_TEST_CASE(hello_round_trip) {
    std::string frame;
    append_hello(frame, {.version_min = 1, .version_max = 3, .nonce = nonce('n')});
    const auto read = read_hello(payload_of(frame));
    BOOST_REQUIRE(read.has_value());
    BOOST_TEST(read->version_max == 3U);
    BOOST_TEST((read->nonce == nonce('n')));
    for (std::size_t size = 0; size < frame.size() - header_size; ++size) {
        BOOST_TEST(!read_hello(payload_of(frame).substr(0, size)));
    }
}

BOOST_AUTO_TEST_CASE(the_highest_common_version_is_spoken) {
    BOOST_TEST(common_version({.version_min = 1, .version_max = 9}).value() == version);
    BOOST_TEST(common_version({.version_min = 1, .version_max = version}).value() == version);
    BOOST_TEST(!common_version({.version_min = version + 1, .version_max = version + 2}));
    BOOST_TEST(!common_version({.version_min = 0, .version_max = oldest_version - 1}));
}

BOOST_AUTO_TEST_CASE(welcome_is_found_behind_whatever_came_before) {
    std::string bytes;
    append_data(bytes, 3, channel::out, std::string(100, 'z'));
    bytes.erase(0, 50); // the rest of a frame
    append_welcome(bytes, nonce('o'), {.version = 1, .boot_id = nonce('x')});
    bytes += std::string("\x40\0\0\0\x02\0\0\0\0\0\0\0", 12); // looks like one, and is not
    const auto skipped = bytes.size();
    append_welcome(bytes, nonce('n'), {.version = 1, .boot_id = nonce('b')});
    bytes += "rest";
    for (std::size_t size = 1; size <= bytes.size(); ++size) {
        welcome_finder finder(nonce('n'));
        welcome found;
        bool done = false;
        std::string rest;
        for (std::size_t at = 0; at < bytes.size(); at += size) {
            if (done) {
                rest += bytes.substr(at, size);
            } else if (finder.feed(std::string_view(bytes).substr(at, size), found)) {
                done = true;
                rest = finder.rest();
            }
        }
        BOOST_REQUIRE(done);
        BOOST_TEST(rest == "rest");
        BOOST_TEST(finder.skipped() == skipped);
        BOOST_TEST((found.boot_id == nonce('b')));
    }
}

BOOST_AUTO_TEST_CASE(another_nonce_is_no_welcome) {
    std::string bytes;
    append_welcome(bytes, nonce('m'), {.version = 1, .boot_id = nonce('b')});
    welcome_finder finder(nonce('n'));
    welcome found;
    BOOST_TEST(!finder.feed(bytes, found));
    BOOST_TEST(finder.rest().size() < header_size);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
