// Channels that end at any byte: what the host makes of the next one.

#include "core_fixture.hpp"

using namespace sandboxd;
using namespace sandboxd::test;
using protocol::frame_type;
using protocol::tag;

namespace {

std::uint64_t number_in(const frame& one, tag id) {
    return protocol::find_field(one.payload, id)->u64().value();
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(link_resume, test::core_fixture)

BOOST_AUTO_TEST_CASE(a_conversation_cut_at_every_byte_still_gives_every_byte_once) {
    const std::string output = "0123456789abcdefghijklmnopqrstuvwxyz";
    for (std::size_t at = 0;; ++at) {
        core = std::make_unique<sandboxes::link_core>(limits, *this);
        open();
        const auto one = command(1);
        const auto n = start(one);
        const auto talk = started(n) + data(n, output.substr(0, 10)) + data(n, output.substr(10)) +
                          end_of_data(n) + end(n, output.size(), 9);
        if (at > talk.size()) {
            break;
        }
        BOOST_TEST(hear(talk.substr(0, at)) == "");
        core->cut();
        const bool over = one->ended.has_value();
        BOOST_TEST(over == (at == talk.size()));
        const auto have = one->out.size();
        core->open(nonce, now);
        BOOST_TEST(sent().size() == 1U);
        BOOST_TEST(hear(welcome() + state_of(n, 1, 0, 0, true) + ready()) == "");
        if (over) {
            BOOST_TEST(sent(frame_type::forget).size() == 1U);
            continue;
        }
        const auto resumed = sent(frame_type::resume);
        BOOST_REQUIRE(resumed.size() == 1U);
        BOOST_TEST(number_in(resumed.front(), tag::out_offset) == have);
        const auto rest = have < output.size() ? data(n, output.substr(have)) : std::string();
        BOOST_TEST(hear(rest + end_of_data(n) + end(n, output.size(), 9)) == "");
        BOOST_REQUIRE(one->ended.has_value());
        BOOST_TEST(one->out == output);
        BOOST_TEST(one->ended->exit_code.value() == 9);
    }
}

BOOST_AUTO_TEST_CASE(a_start_that_never_arrived_is_sent_again_with_the_same_id) {
    open();
    const auto one = command(1);
    const auto n = start(one);
    core->cut();
    open();
    const auto again = sent(frame_type::start);
    BOOST_REQUIRE(again.size() == 1U);
    BOOST_TEST(again.front().header.stream == n);
    const auto id = id_of(1);
    BOOST_TEST(protocol::find_field(again.front().payload, tag::run_id)->value ==
               std::string_view(id.data(), id.size()));
    BOOST_TEST(hear(end(n, 0)) == "");
    BOOST_TEST(one->ended.has_value());
}

BOOST_AUTO_TEST_CASE(a_start_that_arrived_is_not_sent_again) {
    open();
    const auto one = command(1);
    const auto n = start(one);
    core->cut();
    open(state_of(n, 1, 0));
    BOOST_TEST(sent(frame_type::start).empty());
}

BOOST_AUTO_TEST_CASE(a_stop_is_repeated_and_keeps_a_lost_start_from_starting) {
    open();
    const auto one = command(1);
    const auto two = command(2);
    const auto first = start(one);
    start(two);
    BOOST_TEST(core->stop(id_of(1)));
    BOOST_TEST(core->stop(id_of(2)));
    core->cut();
    open(state_of(first, 1, 0));
    const auto frames = sent();
    BOOST_TEST(std::count_if(frames.begin(), frames.end(),
                             [](const frame& f) { return f.header.type == frame_type::start; }) == 0);
    BOOST_TEST(std::count_if(frames.begin(), frames.end(), [&](const frame& f) {
                   return f.header.type == frame_type::stop && f.header.stream == first;
               }) == 1);
    BOOST_TEST((two->ended->cause == protocol::end_cause::stopped));
    BOOST_TEST(!one->ended);
}

BOOST_AUTO_TEST_CASE(lies_about_what_it_holds_are_noticed) {
    const auto lie_of = [&](auto make) {
        core = std::make_unique<sandboxes::link_core>(limits, *this);
        open();
        const auto n = start(command(1));
        BOOST_TEST(hear(started(n) + data(n, "abc")) == "");
        core->cut();
        core->open(nonce, now);
        sent();
        return hear(welcome() + make(n) + ready());
    };
    using number = std::uint32_t;
    BOOST_TEST(lie_of([](number) { return std::string(); }) ==
               "it no longer knows a command that it was running");
    BOOST_TEST(lie_of([](number n) { return state_of(n, 1, 4); }) ==
               "it dropped output that was not acknowledged");
    BOOST_TEST(lie_of([](number n) { return state_of(n, 2, 0); }) ==
               "a stream_state that contradicts another");
    BOOST_TEST(lie_of([](number n) { return state_of(n, 1, 0) + state_of(n, 1, 0); }) ==
               "a stream_state that contradicts another");
    BOOST_TEST(lie_of([](number n) { return state_of(n, 1, 0, 1); }) ==
               "a stream_state with input that was not sent");
    BOOST_TEST(lie_of([](number n) { return state_of(n, 1, 0) + state_of(n + 1, 1, 0); }) ==
               "two streams with one run id");
    BOOST_TEST(lie_of([](number n) { return state_of(n, 1, 0) + data(n, "x"); }) ==
               "a frame about a stream before ready");
    BOOST_TEST(lie_of([](number n) { return state_of(n, 1, 3); }) == "");
}

BOOST_AUTO_TEST_CASE(commands_from_before_are_taken_over_and_their_ids_are_taken) {
    const auto same = command(7);
    BOOST_TEST(core->start(same, now).has_value());
    open(state_of(900, 7, 55) + state_of(901, 8, 0, 0, true));
    BOOST_TEST((same->failed->code == errc::exists));
    BOOST_TEST(!same->failed->may_have_started);
    BOOST_REQUIRE(found.size() == 1U);
    BOOST_TEST((found.front().id == id_of(7)));
    BOOST_TEST(found.front().started_unix_us == 77U);
    BOOST_TEST(!found.front().ended);
    BOOST_TEST(sent(frame_type::forget).size() == 2U);
    BOOST_TEST((core->start(command(7), now).error().code == errc::exists));
    BOOST_TEST(start(command(9)) == 902U);
    BOOST_TEST(core->stop(id_of(7)));
    BOOST_TEST(sent(frame_type::stop).front().header.stream == 900U);
    BOOST_TEST(hear(data(900, "dropped") + end(900, 123)) == "");
    BOOST_REQUIRE(found.size() == 2U);
    BOOST_TEST(found.back().ended);
    BOOST_TEST(!core->knows(id_of(7)));
}

BOOST_AUTO_TEST_CASE(a_forgotten_command_that_is_gone_after_a_cut_has_ended) {
    open(state_of(5, 7, 0));
    core->cut();
    open();
    BOOST_TEST(core->running() == 0U);
    BOOST_TEST(found.back().ended);
}

BOOST_AUTO_TEST_CASE(input_goes_on_where_the_agent_left_off) {
    open();
    const auto one = command(1);
    const auto n = start(one);
    BOOST_TEST(core->write_in(*one, "abcdef") == 6U);
    core->end_in(*one);
    BOOST_TEST(sent().size() == 2U);
    BOOST_TEST(hear(started(n)) == "");
    core->cut();
    open(state_of(n, 1, 0, 4));
    const auto frames = sent();
    std::string in;
    bool ended = false;
    for (const auto& one_frame : frames) {
        in += one_frame.header.type == frame_type::data ? one_frame.payload : "";
        ended = ended || one_frame.header.type == frame_type::end_of_data;
    }
    BOOST_TEST(in == "ef");
    BOOST_TEST(ended);
}

BOOST_AUTO_TEST_CASE(when_the_sandbox_ends_everything_fails_with_the_truth) {
    const auto waiting = command(1);
    BOOST_TEST(core->start(waiting, now).has_value());
    core->fail_all("it ended");
    BOOST_TEST((waiting->failed->code == errc::gone));
    BOOST_TEST(!waiting->failed->may_have_started);
    BOOST_TEST((core->start(command(3), now).error().code == errc::gone));

    core = std::make_unique<sandboxes::link_core>(limits, *this);
    open();
    const auto sent_one = command(2);
    start(sent_one);
    core->fail_all("it ended");
    BOOST_TEST(sent_one->failed->may_have_started);
    BOOST_TEST(core->running() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
