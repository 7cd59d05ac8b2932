// File operations against an agent that lies: every answer is bounded and checked, and each call ends.

#include "core/spawn.hpp"
#include "net/connect.hpp"
#include "protocol/files.hpp"
#include "protocol/handshake.hpp"
#include "sandbox/file_operations.hpp"
#include "support/run.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>

#include <functional>

using namespace sandboxd;
using namespace sandboxd::sandboxes;
using namespace std::chrono_literals;
namespace asio = boost::asio;
using protocol::tag;

namespace {

struct no_host final : sandbox_host {
    std::string_view type() const noexcept override { return "test"; }
    task<result<net::stream_ptr>> connect(asio::any_io_executor) override {
        co_return error{errc::io, "not here"};
    }
    std::optional<command_user> default_user() const override { return std::nullopt; }
    bool alive() const noexcept override { return true; }
    void on_death(std::function<void()>) override {}
    std::optional<std::uint64_t> oom_kills() const override { return std::nullopt; }
    task<result<usage_sample>> usage() override { co_return error{errc::unsupported, "none"}; }
    task<void> terminate(std::chrono::milliseconds, bool) override { co_return; }
    std::string handle() const override { return "test"; }
};

/// What the agent answers to a start on a stream; called at each start.
using script = std::function<std::string(std::uint32_t stream)>;

struct liar {
    asio::io_context context;
    core::gate background;
    std::vector<std::shared_ptr<net::stream>> peers;
    script answer;
    int starts = 0;
    std::string broken;
    link_options options;
    std::shared_ptr<agent_link> link;
    std::shared_ptr<file_operations> files;

    void open(file_options limits = {}) {
        auto connect = [this](asio::any_io_executor executor) { return dial(std::move(executor)); };
        link = agent_link::create(context.get_executor(), background, std::move(connect), options,
                                  {{}, [this](const std::string& why) { broken = why; }});
        BOOST_REQUIRE(test::get(context, link->open(5s)));
        files = std::make_shared<file_operations>(link, std::make_shared<no_host>(), limits);
    }
    ~liar() {
        link->detach();
        for (const auto& one : peers) {
            one->close();
        }
        background.close();
        test::run(context, background.drained());
    }

    task<result<net::stream_ptr>> dial(asio::any_io_executor executor) {
        auto [ours, theirs] = net::memory_pair(executor, 1'000'000);
        std::shared_ptr<net::stream> peer = std::move(theirs);
        core::spawn(executor, "liar", background, serve(peer));
        peers.push_back(peer);
        co_return std::move(ours);
    }

    task<void> serve(std::shared_ptr<net::stream> peer) {
        protocol::frame_parser parser(protocol::sender::host);
        std::vector<char> bytes(65'536);
        for (;;) {
            const auto into = asio::buffer(bytes);
            const auto [failed, count] =
                co_await peer->async_read_some(into, asio::as_tuple(asio::use_awaitable));
            if (failed || count == 0) {
                co_return;
            }
            std::string out;
            parser.feed({bytes.data(), count});
            protocol::frame_view frame;
            while (parser.next(frame) == protocol::parse_status::ok) {
                take(frame, out);
            }
            for (std::size_t done = 0; done < out.size();) {
                const asio::const_buffer rest = asio::buffer(out) + done;
                const auto [wrong, written] =
                    co_await peer->async_write_some(rest, asio::as_tuple(asio::use_awaitable));
                if (wrong) {
                    co_return;
                }
                done += written;
            }
        }
    }
    void take(const protocol::frame_view& frame, std::string& out) {
        if (frame.header.type == protocol::frame_type::hello) {
            const auto message = protocol::read_hello(frame.payload);
            protocol::append_welcome(out, message->nonce, {.version = protocol::version, .boot_id = {}});
            protocol::append_empty(out, protocol::frame_type::ready, 0);
        } else if (frame.header.type == protocol::frame_type::start) {
            ++starts;
            out += answer(frame.header.stream);
        }
    }
};

std::string end_of(std::uint32_t stream, std::size_t total, std::uint32_t marks = 0,
                   std::uint64_t length = 0) {
    std::string out;
    protocol::frame_writer(out, protocol::frame_type::end, stream)
        .u8(tag::cause, 1)
        .u32(tag::exit_code, 0)
        .u32(tag::option_flags, marks)
        .u64(tag::length, length)
        .u64(tag::out_total, total);
    return out;
}

std::string whole_answer(std::uint32_t stream, std::string_view bytes, std::uint32_t marks = 0) {
    std::string out;
    if (!bytes.empty()) {
        protocol::append_data(out, stream, protocol::channel::out, bytes);
    }
    return out + end_of(stream, bytes.size(), marks);
}

BOOST_FIXTURE_TEST_SUITE(file_liar, liar)

BOOST_AUTO_TEST_CASE(honest_answers_pass) {
    answer = [](auto stream) { return whole_answer(stream, "content"); };
    open();
    BOOST_TEST(test::get(context, files->read("f", 7)).value().bytes == "content");
}

BOOST_AUTO_TEST_CASE(more_than_was_asked_for_breaks_the_channel) {
    answer = [](auto stream) { return whole_answer(stream, "content"); };
    options.lies = 2;
    open();
    const auto got = test::get(context, files->read("f", 6));
    BOOST_REQUIRE(!got);
    BOOST_TEST(broken == "the sandbox's agent broke the protocol");
    BOOST_TEST(starts == 2); // once on each channel: the agent claimed not to know it
}

BOOST_AUTO_TEST_CASE(records_that_make_no_sense_are_an_error) {
    std::string bytes;
    answer = [&](auto stream) { return whole_answer(stream, bytes); };
    file_options few;
    few.entries = 1;
    few.matches = 1;
    open(few);
    const auto wrong = [](const auto& got) { return !got && got.error().code == errc::protocol; };
    bytes = "x";
    BOOST_TEST(wrong(test::get(context, files->ls("d"))));
    BOOST_TEST(wrong(test::get(context, files->glob({"*", "d"}))));
    BOOST_TEST(wrong(test::get(context, files->grep({"p", "d", {}, false}))));
    bytes.clear();
    protocol::append_record(bytes, protocol::listing_record{false, 1, "a"});
    BOOST_TEST(test::get(context, files->ls("d")).value().entries.size() == 1U);
    protocol::append_record(bytes, protocol::listing_record{false, 1, "b"});
    BOOST_TEST(wrong(test::get(context, files->ls("d"))));
    bytes.clear();
    protocol::append_record(bytes, protocol::listing_record{false, 1, "../a"});
    BOOST_TEST(wrong(test::get(context, files->ls("d"))));
    BOOST_TEST(broken.empty());
}

BOOST_AUTO_TEST_CASE(marks_that_contradict_the_bytes_do_no_harm) {
    answer = [](auto stream) {
        return whole_answer(stream, "content", protocol::over_limit | protocol::binary_file);
    };
    open();
    const auto got = test::get(context, files->read("f", 100)).value();
    BOOST_TEST(got.over_limit);
    BOOST_TEST(got.bytes.empty());
    BOOST_TEST(!got.size);
}

BOOST_AUTO_TEST_CASE(an_answer_that_never_comes_is_a_timeout) {
    answer = [](auto) { return std::string(); };
    file_options quick;
    quick.exists_within = 50ms;
    quick.answer_grace = 50ms;
    open(quick);
    const auto got = test::get(context, files->exists("f"));
    BOOST_REQUIRE(!got);
    BOOST_TEST(name_of(got.error().code) == "timeout");
}

BOOST_AUTO_TEST_CASE(what_was_not_begun_is_tried_once_more_and_no_more) {
    answer = [](auto stream) {
        std::string out;
        protocol::frame_writer(out, protocol::frame_type::end, stream)
            .u8(tag::cause, 5)
            .u16(tag::failure, static_cast<std::uint16_t>(protocol::failure_kind::no_process))
            .bytes(tag::text, "no process");
        return out;
    };
    open();
    const auto got = test::get(context, files->write("f", "x"));
    BOOST_REQUIRE(!got);
    BOOST_TEST(name_of(got.error().code) == "unavailable");
    BOOST_TEST(got.error().message == "no process");
    BOOST_TEST(starts == 2);
    answer = [](auto stream) {
        std::string out;
        protocol::frame_writer(out, protocol::frame_type::end, stream).u8(tag::cause, 6); // lost
        return out;
    };
    starts = 0;
    BOOST_TEST(name_of(test::get(context, files->write("f", "x")).error().code) == "io");
    BOOST_TEST(starts == 1); // it may have been done
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
