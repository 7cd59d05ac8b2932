#pragma once

// A link's core with a scripted agent on the other side: no sockets, no clock.

#include "protocol/codec.hpp"
#include "protocol/fields.hpp"
#include "sandbox/link_core.hpp"
#include "sandbox/start_frame.hpp"

#include <boost/test/unit_test.hpp>

#include <map>

namespace sandboxd::test {

using namespace sandboxd::sandboxes;
using namespace std::chrono_literals;

struct recorder final : link_stream {
    using link_stream::link_stream;
    std::string out;
    std::string err;
    std::uint32_t pid = 0;
    int writable = 0;
    std::optional<end_record> ended;
    std::optional<error> failed;

    void on_started(std::uint32_t number) override { pid = number; }
    void on_data(protocol::channel which, std::string_view bytes) override {
        (which == protocol::channel::err ? err : out).append(bytes);
    }
    void on_writable() override { ++writable; }
    void on_end(end_record record) override {
        BOOST_TEST((!ended && !failed));
        ended = std::move(record);
    }
    void on_failed(error reason) override {
        BOOST_TEST((!ended && !failed));
        failed = std::move(reason);
    }
};

struct frame {
    protocol::frame_header header;
    std::string payload;
};

struct core_fixture : link_core::observer {
    link_limits limits;
    std::unique_ptr<link_core> core;
    link_core::time_point now{std::chrono::hours(1)};
    protocol::nonce_bytes boot{'b', 'o', 'o', 't'};
    protocol::nonce_bytes nonce{'n', 'o', 'n', 'c', 'e'};
    std::vector<found_command> found;
    std::vector<run_id_bytes> gone;

    core_fixture() { core = std::make_unique<link_core>(limits, *this); }

    void on_found(const found_command& command) override { found.push_back(command); }
    void on_gone(const run_id_bytes& id) override { gone.push_back(id); }

    static run_id_bytes id_of(int n) {
        run_id_bytes id{};
        id[0] = static_cast<char>(n);
        return id;
    }
    static std::shared_ptr<recorder> command(int n, bool separate = false, std::uint64_t keep = 10'000'000) {
        command_spec spec;
        spec.id = id_of(n);
        spec.script = "true";
        return std::make_shared<recorder>(spec.id, encode_start(spec).value(), separate, keep);
    }

    /// What the core sends now, cut into frames.
    std::vector<frame> sent() {
        std::string bytes;
        core->take_output(bytes);
        protocol::frame_parser parser(protocol::sender::host);
        parser.feed(bytes);
        std::vector<frame> out;
        protocol::frame_view view;
        while (parser.next(view) == protocol::parse_status::ok) {
            out.push_back({view.header, std::string(view.payload)});
        }
        BOOST_TEST(parser.unfinished().empty());
        return out;
    }
    std::vector<frame> sent(protocol::frame_type type) {
        auto all = sent();
        std::erase_if(all, [&](const frame& one) { return one.header.type != type; });
        return all;
    }

    std::string hear(std::string_view bytes) {
        return std::string(core->receive(bytes, now).value_or(std::string_view()));
    }

    std::string welcome() const {
        std::string out;
        protocol::append_welcome(out, nonce, {protocol::version, boot});
        return out;
    }
    static std::string ready() {
        std::string out;
        protocol::append_empty(out, protocol::frame_type::ready, 0);
        return out;
    }
    static std::string state_of(std::uint32_t stream, int id, std::uint64_t out_offset, std::uint64_t in = 0,
                                bool ended = false) {
        std::string out;
        protocol::frame_writer frame(out, protocol::frame_type::stream_state, stream);
        const auto name = id_of(id);
        frame.bytes(protocol::tag::run_id, {name.data(), name.size()})
            .u64(protocol::tag::started_unix_us, 77)
            .u64(protocol::tag::out_offset, out_offset)
            .u64(protocol::tag::err_offset, 0)
            .u64(protocol::tag::in_offset, in);
        if (ended) {
            frame.empty(protocol::tag::ended);
        }
        frame.finish();
        return out;
    }
    static std::string started(std::uint32_t stream) {
        std::string out;
        protocol::frame_writer(out, protocol::frame_type::started, stream).u32(protocol::tag::pid, 42);
        return out;
    }
    static std::string data(std::uint32_t stream, std::string_view bytes,
                            protocol::channel which = protocol::channel::out) {
        std::string out;
        protocol::append_data(out, stream, which, bytes);
        return out;
    }
    static std::string end_of_data(std::uint32_t stream) {
        std::string out;
        protocol::append_end_of_data(out, stream, protocol::channel::out);
        return out;
    }
    static std::string end(std::uint32_t stream, std::uint64_t out_total, std::uint32_t code = 0) {
        std::string out;
        protocol::frame_writer(out, protocol::frame_type::end, stream)
            .u8(protocol::tag::cause, static_cast<std::uint8_t>(protocol::end_cause::exited))
            .u32(protocol::tag::exit_code, code)
            .u64(protocol::tag::out_total, out_total)
            .u64(protocol::tag::err_total, 0)
            .u64(protocol::tag::dropped, 3)
            .u64(protocol::tag::duration_us, 1500);
        return out;
    }

    /// Opens a channel on which the agent tells `states` first.
    void open(const std::string& states = {}) {
        core->open(nonce, now);
        BOOST_TEST(sent().size() == 1U);
        BOOST_TEST(hear(welcome() + states + ready()) == "");
    }
    /// A command on its way over an open channel, whose number is the answer.
    std::uint32_t start(const std::shared_ptr<recorder>& one) {
        BOOST_TEST(core->start(one, now).has_value());
        const auto frames = sent(protocol::frame_type::start);
        BOOST_REQUIRE(frames.size() == 1U);
        return frames.front().header.stream;
    }
};

} // namespace sandboxd::test
