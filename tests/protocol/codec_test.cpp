#include "protocol/fields.hpp"

#include <boost/test/unit_test.hpp>

#include <vector>

namespace {

using namespace sandboxd::protocol;

/// Frames as the host would send them: short, empty, long, with a channel.
std::string sample() {
    std::string out;
    append_ping(out, frame_type::ping, "12345678");
    append_data(out, 7, channel::in, std::string(300, 'x'));
    append_empty(out, frame_type::stop, 9);
    frame_writer(out, frame_type::start, 0x01020304).bytes(tag::argument, "true").u64(tag::timeout_ms, 5);
    append_credit(out, 7, channel::err, 1ULL << 40);
    append_end_of_data(out, 7, channel::in);
    append_signal(out, 7, 15);
    append_resize(out, 7, 24, 80);
    return out;
}

struct copied {
    frame_header header;
    std::string payload;
};

/// Takes all frames of what is fed in pieces of `size`.
std::vector<copied> cut(const std::string& bytes, std::size_t size) {
    std::vector<copied> out;
    frame_parser parser(sender::host);
    for (std::size_t at = 0; at < bytes.size(); at += size) {
        const std::string piece = bytes.substr(at, size); // so that a view kept too long is found
        parser.feed(piece);
        frame_view frame;
        auto status = parse_status::ok;
        while ((status = parser.next(frame)) == parse_status::ok) {
            out.push_back({frame.header, std::string(frame.payload)});
        }
        BOOST_REQUIRE(status == parse_status::need_more);
    }
    BOOST_TEST(parser.unfinished().empty());
    return out;
}

std::string header_bytes(std::uint32_t length, int type, int flags, std::uint32_t stream) {
    const auto bytes =
        encode_header({length, static_cast<frame_type>(type), static_cast<std::uint8_t>(flags), stream});
    return {bytes.begin(), bytes.end()};
}

parse_status decode(const std::string& bytes, sender from) {
    frame_header header;
    return decode_header(bytes, from, header);
}

BOOST_AUTO_TEST_SUITE(codec)

BOOST_AUTO_TEST_CASE(header_is_little_endian_and_twelve_bytes) {
    const auto bytes = header_bytes(0x0102, 12, 2, 0x0a0b0c0d);
    BOOST_TEST(bytes == std::string("\x02\x01\x00\x00\x0c\x02\x00\x00\x0d\x0c\x0b\x0a", 12));
    frame_header header;
    BOOST_REQUIRE(decode_header(bytes, sender::agent, header) == parse_status::ok);
    BOOST_TEST(header.length == 0x0102U);
    BOOST_TEST((header.type == frame_type::data));
    BOOST_TEST(+header.flags == 2);
    BOOST_TEST(header.stream == 0x0a0b0c0dU);
}

BOOST_AUTO_TEST_CASE(frames_are_the_same_however_they_are_cut) {
    const auto bytes = sample();
    const auto whole = cut(bytes, bytes.size());
    BOOST_REQUIRE(whole.size() == 8U);
    BOOST_TEST(whole[0].payload == "12345678");
    BOOST_TEST(whole[1].payload == std::string(300, 'x'));
    BOOST_TEST(whole[3].header.stream == 0x01020304U);
    BOOST_TEST(exact_u64(whole[4].payload).value() == 1ULL << 40);
    BOOST_TEST(whole[6].payload == std::string("\x0f\0\0\0", 4));
    BOOST_TEST(whole[7].payload == std::string("\x18\0\x50\0", 4));
    for (std::size_t size = 1; size < bytes.size(); ++size) {
        const auto pieces = cut(bytes, size);
        BOOST_REQUIRE(pieces.size() == whole.size());
        for (std::size_t i = 0; i < whole.size(); ++i) {
            BOOST_REQUIRE(pieces[i].payload == whole[i].payload);
            BOOST_REQUIRE((pieces[i].header.type == whole[i].header.type));
            BOOST_REQUIRE(pieces[i].header.stream == whole[i].header.stream);
        }
    }
}

BOOST_AUTO_TEST_CASE(whole_frames_are_not_copied) {
    std::string bytes;
    append_data(bytes, 1, channel::in, "abc");
    frame_parser parser(sender::host);
    parser.feed(bytes);
    frame_view frame;
    BOOST_REQUIRE(parser.next(frame) == parse_status::ok);
    BOOST_TEST(static_cast<const void*>(frame.payload.data()) == static_cast<const void*>(bytes.data() + 12));
}

BOOST_AUTO_TEST_CASE(lengths_are_bounded_by_type) {
    BOOST_TEST((decode(header_bytes(max_payload, 12, 0, 1), sender::host) == parse_status::ok));
    BOOST_TEST((decode(header_bytes(max_payload + 1, 12, 0, 1), sender::host) == parse_status::too_long));
    BOOST_TEST((decode(header_bytes(max_start, 10, 0, 1), sender::host) == parse_status::ok));
    BOOST_TEST((decode(header_bytes(max_start + 1, 10, 0, 1), sender::host) == parse_status::too_long));
    BOOST_TEST((decode(header_bytes(9, 4, 0, 0), sender::host) == parse_status::too_long));
    BOOST_TEST((decode(header_bytes(1, 17, 0, 1), sender::host) == parse_status::too_long));
    BOOST_TEST((decode(header_bytes(0xffffffff, 15, 0, 1), sender::agent) == parse_status::too_long));
}

BOOST_AUTO_TEST_CASE(each_side_sends_its_own_types_only) {
    for (int type = 0; type < 256; ++type) {
        const auto from_host =
            decode(header_bytes(0, type, 0, 1), sender::host) != parse_status::unknown_type;
        const auto from_agent =
            decode(header_bytes(0, type, 0, 1), sender::agent) != parse_status::unknown_type;
        const bool both = type == 4 || type == 5 || (type >= 12 && type <= 14);
        const bool host = type == 1 || type == 6 || type == 10 || (type >= 16 && type <= 19) || type == 21;
        const bool agent = type == 2 || type == 3 || type == 11 || type == 15 || type == 20;
        BOOST_TEST(from_host == (both || host), "type " << type << " from the host");
        BOOST_TEST(from_agent == (both || agent), "type " << type << " from the agent");
    }
}

BOOST_AUTO_TEST_CASE(reserved_bytes_channels_and_stream_numbers_are_checked) {
    BOOST_TEST((decode(header_bytes(0, 12, 2, 1), sender::host) == parse_status::ok));
    BOOST_TEST((decode(header_bytes(0, 12, 3, 1), sender::host) == parse_status::reserved));
    BOOST_TEST((decode(header_bytes(0, 17, 1, 1), sender::host) == parse_status::reserved));
    auto bytes = header_bytes(0, 17, 0, 1);
    bytes[6] = 1;
    BOOST_TEST((decode(bytes, sender::host) == parse_status::reserved));
    bytes[6] = 0;
    bytes[7] = 1;
    BOOST_TEST((decode(bytes, sender::host) == parse_status::reserved));
    BOOST_TEST((decode(header_bytes(0, 17, 0, 0), sender::host) == parse_status::bad_stream));
    BOOST_TEST((decode(header_bytes(0, 4, 0, 1), sender::host) == parse_status::bad_stream));
}

BOOST_AUTO_TEST_CASE(an_error_is_final) {
    frame_parser parser(sender::host);
    const auto bad = header_bytes(0, 99, 0, 1);
    parser.feed(bad);
    frame_view frame;
    BOOST_TEST((parser.next(frame) == parse_status::unknown_type));
    const auto good = sample();
    parser.feed(good);
    BOOST_TEST((parser.next(frame) == parse_status::unknown_type));
    parser.reset();
    parser.feed(good);
    BOOST_TEST((parser.next(frame) == parse_status::ok));
}

BOOST_AUTO_TEST_CASE(an_announced_length_takes_no_memory) {
    frame_parser parser(sender::host);
    const auto begin = header_bytes(max_start, 10, 0, 1) + "some";
    parser.feed(begin);
    frame_view frame;
    BOOST_TEST((parser.next(frame) == parse_status::need_more));
    BOOST_TEST(parser.unfinished().size() == begin.size());
}

BOOST_AUTO_TEST_CASE(exact_integers_refuse_other_widths) {
    const std::string bytes("\x01\x02\x03\x04\x05\x06\x07\x08\x09", 9);
    for (std::size_t size = 0; size <= bytes.size(); ++size) {
        const auto part = std::string_view(bytes).substr(0, size);
        BOOST_TEST(exact_u8(part).has_value() == (size == 1));
        BOOST_TEST(exact_u16(part).has_value() == (size == 2));
        BOOST_TEST(exact_u32(part).has_value() == (size == 4));
        BOOST_TEST(exact_u64(part).has_value() == (size == 8));
    }
    BOOST_TEST(exact_u64(std::string_view(bytes).substr(0, 8)).value() == 0x0807060504030201ULL);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
