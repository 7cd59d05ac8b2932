// What file operations say to an agent, and what is made of answers, honest or not.

#include "sandbox/file_calls.hpp"

#include "sandbox/end_frame.hpp"

#include <boost/test/unit_test.hpp>

#include <cerrno>

using namespace sandboxd;
using namespace sandboxd::sandboxes;
using protocol::end_cause;
using protocol::failure_kind;
using protocol::file_operation;
using protocol::tag;

namespace {

std::string_view payload_of(const std::string& frame) {
    return std::string_view(frame).substr(protocol::header_size);
}

end_record failed(failure_kind kind, std::uint32_t number, std::string text = {}) {
    end_record out;
    out.cause = end_cause::exited;
    out.exit_code = 1;
    out.failure = kind;
    out.os_errno = number;
    out.text = std::move(text);
    return out;
}

std::string listing(std::initializer_list<std::string_view> names) {
    std::string out;
    for (const auto name : names) {
        protocol::append_record(out, protocol::listing_record{false, 7, name});
    }
    return out;
}

} // namespace

BOOST_AUTO_TEST_SUITE(file_calls)

BOOST_AUTO_TEST_CASE(a_start_holds_what_was_asked_for) {
    file_spec spec;
    spec.operation = file_operation::edit;
    spec.path = "a\nb";
    spec.input = "oldnew";
    spec.offset = 3;
    spec.length = 1'000;
    spec.options = protocol::replace_all;
    spec.user = command_user{7, 8};
    spec.timeout = std::chrono::milliseconds(1'500);
    const auto frame = encode_file_start(spec).value();
    const auto payload = payload_of(frame);
    BOOST_TEST(protocol::find_field(payload, tag::operation)->u16().value() == 5U);
    BOOST_TEST(protocol::find_field(payload, tag::path)->value == "a\nb");
    BOOST_TEST(protocol::find_field(payload, tag::content)->value == "oldnew");
    BOOST_TEST(protocol::find_field(payload, tag::offset)->u64().value() == 3U);
    BOOST_TEST(protocol::find_field(payload, tag::length)->u64().value() == 1'000U);
    BOOST_TEST(protocol::find_field(payload, tag::option_flags)->u32().value() == 2U);
    BOOST_TEST(protocol::find_field(payload, tag::user_id)->u32().value() == 7U);
    BOOST_TEST(protocol::find_field(payload, tag::group_id)->u32().value() == 8U);
    BOOST_TEST(protocol::find_field(payload, tag::timeout_ms)->u64().value() == 1'500U);
    BOOST_TEST(!protocol::find_field(payload, tag::open_stdin));
    BOOST_TEST(*protocol::exact_u32(std::string_view(frame).substr(0, 4)) == payload.size());
    spec.input.assign(protocol::inline_content + 1, 'x');
    const auto streamed = encode_file_start(spec).value();
    BOOST_TEST(!protocol::find_field(payload_of(streamed), tag::content));
    BOOST_TEST(protocol::find_field(payload_of(streamed), tag::open_stdin).has_value());
}

BOOST_AUTO_TEST_CASE(what_no_agent_can_take_is_refused_before) {
    file_spec spec;
    spec.path = std::string("a\0b", 3);
    BOOST_TEST((encode_file_start(spec).error().code == errc::invalid));
    spec.path = "a";
    spec.pattern = std::string("\0", 1);
    BOOST_TEST((encode_file_start(spec).error().code == errc::invalid));
    spec.pattern.reset();
    spec.path.assign(protocol::longest_order, 'a');
    BOOST_TEST(encode_file_start(spec).error().message == "The path or pattern is too long");
}

BOOST_AUTO_TEST_CASE(failures_have_codes_and_words) {
    const auto check = [](const end_record& record, errc code, std::string_view words) {
        const auto wrong = file_error(record);
        BOOST_REQUIRE(wrong.has_value());
        BOOST_TEST(name_of(wrong->code) == name_of(code));
        BOOST_TEST(wrong->message == words);
    };
    check(failed(failure_kind::not_found, ENOENT), errc::not_found, "No such file or directory");
    check(failed(failure_kind::invalid, EISDIR), errc::invalid, "Is a directory");
    check(failed(failure_kind::invalid, 0, "It is a FIFO"), errc::invalid, "It is a FIFO");
    check(failed(failure_kind::os, EACCES), errc::denied, "Permission denied");
    check(failed(failure_kind::os, EROFS), errc::denied, "Read-only file system");
    check(failed(failure_kind::os, ENOSPC), errc::io, "No space left on device");
    check(failed(failure_kind::os, ETIMEDOUT), errc::timeout, "Connection timed out");
    check(failed(failure_kind::os, 0xFFFFFFFF), errc::io, "Unknown error 4294967295");
    check(failed(failure_kind::os, 0, std::string(9'000, 'x')), errc::io, std::string(256, 'x'));
    end_record late;
    late.cause = end_cause::timed_out;
    check(late, errc::timeout, "The file system did not answer in time");
    late.cause = end_cause::lost;
    check(late, errc::io, "The process at work on it was ended");
    end_record fine;
    fine.cause = end_cause::exited;
    fine.exit_code = 0;
    BOOST_TEST(!file_error(fine));
}

BOOST_AUTO_TEST_CASE(an_end_carries_marks_and_a_number) {
    std::string frame;
    protocol::frame_writer(frame, protocol::frame_type::end, 1)
        .u8(tag::cause, 1)
        .u32(tag::exit_code, 0)
        .u32(tag::option_flags, protocol::over_limit | protocol::size_known)
        .u64(tag::length, 123);
    const auto read = parse_end(payload_of(frame));
    BOOST_REQUIRE(read.has_value());
    BOOST_TEST(read->record.marks == 3U);
    BOOST_TEST(read->record.length == 123U);
    std::string narrow;
    protocol::frame_writer(narrow, protocol::frame_type::end, 1)
        .u8(tag::cause, 1)
        .u32(tag::exit_code, 0)
        .u16(tag::option_flags, 1);
    BOOST_TEST(!parse_end(payload_of(narrow)));
}

BOOST_AUTO_TEST_CASE(listings_are_checked) {
    const auto good = read_listing(listing({"a", "b c"}), 2, "./", true);
    BOOST_REQUIRE(good.has_value());
    BOOST_TEST(good->at(1).path == "./b c");
    BOOST_TEST(good->at(1).name == "b c");
    BOOST_TEST(good->at(1).size.value() == 7U);
    const auto deep = read_listing(listing({"x/y.py"}), 1, "", false);
    BOOST_TEST(deep.value().at(0).name == "y.py");
    BOOST_TEST(deep.value().at(0).path == "x/y.py");
    BOOST_TEST(!read_listing(listing({"a", "b"}), 1, "", true));
    BOOST_TEST(!read_listing(listing({"x/y"}), 9, "", true));
    BOOST_TEST(!read_listing(listing({"x/"}), 9, "", false));
    BOOST_TEST(!read_listing(listing({""}), 9, "", false));
    BOOST_TEST(!read_listing(listing({std::string_view("a\0", 2)}), 9, "", false));
    auto cut = listing({"abc"});
    for (std::size_t size = 1; size < cut.size(); ++size) {
        BOOST_TEST(!read_listing(std::string_view(cut).substr(0, size), 9, "", true));
    }
    cut[12] = '\x7f'; // a name of gigabytes
    BOOST_TEST(!read_listing(cut, 9, "", true));
}

BOOST_AUTO_TEST_CASE(matches_are_checked) {
    std::string bytes;
    protocol::append_record(bytes, protocol::match_record{3, "f", "line"});
    protocol::append_record(bytes, protocol::match_record{4, "", ""});
    const auto good = read_matches(bytes, 2, 99);
    BOOST_REQUIRE(good.has_value());
    BOOST_TEST(good->at(1).path == "f");
    BOOST_TEST(good->at(1).line_number == 4U);
    BOOST_TEST(!read_matches(bytes, 1, 99));
    for (std::size_t size = 1; size < 21; ++size) {
        BOOST_TEST(!read_matches(std::string_view(bytes).substr(0, size), 9, 99));
    }
    std::string first;
    protocol::append_record(first, protocol::match_record{3, "", "no path yet"});
    BOOST_TEST(!read_matches(first, 9, 99));
    std::string zero;
    protocol::append_record(zero, protocol::match_record{0, "f", ""});
    BOOST_TEST(!read_matches(zero, 9, 99));
    std::string huge = first;
    for (std::size_t i = 8; i < 16; ++i) {
        huge[i] = '\xff';
    }
    BOOST_TEST(!read_matches(huge, 9, 99));
}

BOOST_AUTO_TEST_CASE(one_long_path_is_not_multiplied_without_end) {
    std::string bytes;
    protocol::append_record(bytes, protocol::match_record{1, std::string(1'000, 'p'), "line"});
    for (std::uint64_t line = 2; line <= 100; ++line) {
        protocol::append_record(bytes, protocol::match_record{line, "", ""});
    }
    BOOST_TEST(read_matches(bytes, 100, 100'004).value().size() == 100U);
    BOOST_TEST(!read_matches(bytes, 100, 100'003));
}

BOOST_AUTO_TEST_SUITE_END()
