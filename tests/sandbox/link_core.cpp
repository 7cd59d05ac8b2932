// The rules of the protocol as the host keeps and enforces them, against a scripted agent.

#include "core_fixture.hpp"

using namespace sandboxd;
using namespace sandboxd::test;
using protocol::channel;
using protocol::frame_type;

BOOST_FIXTURE_TEST_SUITE(link_core, test::core_fixture)

BOOST_AUTO_TEST_CASE(a_command_goes_from_start_to_forget) {
    open();
    const auto one = command(1);
    const auto number = start(one);
    BOOST_TEST(hear(started(number) + data(number, "hello ") + data(number, "") + data(number, "you") +
                    end_of_data(number) + end(number, 9, 7)) == "");
    BOOST_TEST(one->pid == 42U);
    BOOST_TEST(one->out == "hello you");
    BOOST_TEST(one->ended->exit_code.value() == 7);
    BOOST_TEST(one->ended->dropped == 3U);
    BOOST_TEST((one->ended->duration == 1500us));
    BOOST_TEST(core->running() == 0U);
    BOOST_TEST((gone == std::vector{id_of(1)}));
    // Acknowledged with the next frame, at the latest when tick() says so.
    BOOST_TEST(!core->urgent());
    BOOST_TEST((core->due() <= now + limits.forget_within));
    now += limits.forget_within;
    BOOST_TEST((core->tick(now) == sandboxes::link_core::verdict::well));
    BOOST_TEST(core->urgent());
    const auto frames = sent();
    BOOST_REQUIRE(frames.size() == 1U);
    BOOST_TEST((frames.front().header.type == frame_type::forget));
    BOOST_TEST(frames.front().header.stream == number);
}

BOOST_AUTO_TEST_CASE(what_comes_before_the_welcome_is_thrown_away_within_a_bound) {
    core->open(nonce, now);
    std::string stale;
    auto other = nonce;
    other[0] = 'x';
    protocol::append_welcome(stale, other, {protocol::version, boot});
    BOOST_TEST(hear("garbage" + stale + data(5, "old") + welcome().substr(0, 20)) == "");
    BOOST_TEST(hear(welcome() + ready()) == "");
    BOOST_TEST(core->ready());

    limits.garbage = 1000;
    core = std::make_unique<sandboxes::link_core>(limits, *this);
    core->open(nonce, now);
    BOOST_TEST(hear(std::string(1000, 'x')) == "");
    BOOST_TEST(hear(std::string(1000, 'x')) == "no welcome among its first bytes");
}

BOOST_AUTO_TEST_CASE(a_strange_version_and_another_agent_are_refused) {
    core->open(nonce, now);
    std::string strange;
    protocol::append_welcome(strange, nonce, {protocol::version + 1, boot});
    BOOST_TEST(hear(strange) == "it speaks a version that was not offered");
    open();
    boot[0] = 'x';
    core->open(nonce, now);
    BOOST_TEST(hear(welcome()) == "it is another agent than before");
}

BOOST_AUTO_TEST_CASE(every_lie_is_noticed) {
    const std::string kib(1024, 'x');
    const auto lie_of = [&](auto make) {
        core = std::make_unique<sandboxes::link_core>(limits, *this);
        open();
        const auto one = command(1, false, 2000);
        return hear(make(start(one)));
    };
    using number = std::uint32_t;
    BOOST_TEST(lie_of([&](number n) { return data(n, kib) + data(n, kib); }) ==
               "data beyond what was asked for");
    BOOST_TEST(lie_of([&](number n) { return data(n, "x", channel::in); }) ==
               "data on the input of a stream");
    BOOST_TEST(lie_of([&](number n) { return data(n, "x", channel::err); }) ==
               "data on a channel that was not asked for");
    BOOST_TEST(lie_of([&](number n) { return end_of_data(n) + data(n, "x"); }) == "data after its end");
    BOOST_TEST(lie_of([&](number n) { return data(n, "x") + end(n, 2); }) ==
               "an end before all output has come");
    BOOST_TEST(lie_of([&](number n) { return end(n, 0, 256); }) == "a malformed end");
    BOOST_TEST(lie_of([&](number) { return ready(); }) == "ready comes twice");
    BOOST_TEST(lie_of([&](number) { return welcome(); }) == "a frame does not belong here");
    BOOST_TEST(lie_of([&](number n) { return state_of(n, 1, 0); }) == "a stream_state after ready");
    BOOST_TEST(lie_of([](number n) {
                   std::string out;
                   protocol::append_credit(out, n, channel::in, 1);
                   return out;
               }) == "a credit for input that was not sent");
    BOOST_TEST(lie_of([](number n) {
                   std::string out;
                   protocol::append_credit(out, n, channel::out, 0);
                   return out;
               }) == "a malformed credit");
    BOOST_TEST(lie_of([](number) {
                   std::string out;
                   protocol::append_ping(out, frame_type::pong, "12345678");
                   return out;
               }) == "a pong without a ping");
    BOOST_TEST(lie_of([](number n) {
                   std::string out;
                   protocol::append_empty(out, frame_type::stop, n);
                   return out;
               }) == "a frame has a type that agents don't send");
    BOOST_TEST(lie_of([](number n) {
                   const auto head =
                       protocol::encode_header({protocol::max_payload + 1, frame_type::data, 1, n});
                   return std::string(head.begin(), head.end());
               }) == "a frame is too long");
    BOOST_TEST(lie_of([](number) { return data(0, "x"); }) ==
               "a frame has a stream number where none belongs, or none");
    // What it does not know any more it ignores.
    BOOST_TEST(lie_of([](number n) { return data(n + 1, "x") + end(n + 1, 1) + started(n + 9); }) == "");
    BOOST_TEST(lie_of([](number n) { return end(n, 0) + end(n, 0) + data(n, "x"); }) == "");
}

BOOST_AUTO_TEST_CASE(contradictory_ends_are_refused) {
    const auto end_with = [](auto fill) {
        std::string out;
        {
            protocol::frame_writer frame(out, frame_type::end, 1);
            fill(frame);
        }
        return out;
    };
    using protocol::tag;
    using writer = protocol::frame_writer;
    const auto exited = static_cast<std::uint8_t>(protocol::end_cause::exited);
    const auto unstarted = static_cast<std::uint8_t>(protocol::end_cause::never_started);
    const std::vector<std::string> wrong = {
        end_with([](writer& f) { f.u32(tag::exit_code, 0); }),
        end_with([&](writer& f) { f.u8(tag::cause, exited); }),
        end_with([&](writer& f) { f.u8(tag::cause, 7).u32(tag::exit_code, 0); }),
        end_with(
            [&](writer& f) { f.u8(tag::cause, exited).u32(tag::exit_code, 0).u32(tag::exit_signal, 9); }),
        end_with([&](writer& f) { f.u8(tag::cause, exited).u32(tag::exit_signal, 0); }),
        end_with([&](writer& f) { f.u8(tag::cause, exited).u16(tag::exit_code, 0); }),
        end_with([&](writer& f) { f.u8(tag::cause, unstarted); }),
        end_with([&](writer& f) { f.u8(tag::cause, unstarted).u16(tag::failure, 99); }),
    };
    for (const auto& one : wrong) {
        core = std::make_unique<sandboxes::link_core>(limits, *this);
        open();
        BOOST_TEST(start(command(1)) == 1U);
        BOOST_TEST(hear(one) == "a malformed end");
    }
}

BOOST_AUTO_TEST_CASE(the_window_is_enforced_and_credit_opens_it) {
    open();
    const auto one = command(1);
    const auto number = start(one);
    const std::string block(protocol::max_payload, 'x');
    BOOST_TEST(hear(data(number, block)) == "");
    BOOST_TEST(sent().empty());
    BOOST_TEST(hear(data(number, block)) == "");
    const auto credits = sent();
    BOOST_REQUIRE(credits.size() == 1U);
    BOOST_TEST((credits.front().header.type == frame_type::credit));
    BOOST_TEST(protocol::exact_u64(credits.front().payload).value() == 2 * block.size());
    // Each half window is acknowledged as it comes, so only one frame could run over; none may.
    for (int i = 0; i < 100; ++i) {
        BOOST_TEST(hear(data(number, block)) == "");
    }
    BOOST_TEST(one->out.size() == 102 * block.size());
}

BOOST_AUTO_TEST_CASE(limits_and_ids_are_kept) {
    limits.streams = 2;
    core = std::make_unique<sandboxes::link_core>(limits, *this);
    open();
    start(command(1));
    BOOST_TEST((core->start(command(1), now).error().code == errc::exists));
    start(command(2));
    const auto refused = core->start(command(3), now);
    BOOST_TEST((refused.error().code == errc::unavailable));
    BOOST_TEST(!refused.error().may_have_started);
}

BOOST_AUTO_TEST_CASE(a_stop_before_the_start_keeps_it_from_ever_starting) {
    const auto one = command(1);
    BOOST_TEST(core->start(one, now).has_value());
    BOOST_TEST(core->stop(id_of(1)));
    BOOST_TEST((one->ended->cause == protocol::end_cause::stopped));
    BOOST_TEST(!core->stop(id_of(1)));
    open();
    BOOST_TEST(sent().empty());
}

BOOST_AUTO_TEST_CASE(a_silent_agent_is_asked_and_then_given_up) {
    open();
    start(command(1));
    now += limits.quiet_busy;
    BOOST_TEST((core->tick(now) == sandboxes::link_core::verdict::well));
    auto pings = sent();
    BOOST_REQUIRE(pings.size() == 1U);
    BOOST_TEST((pings.front().header.type == frame_type::ping));
    std::string pong;
    protocol::append_ping(pong, frame_type::pong, pings.front().payload);
    BOOST_TEST(hear(pong) == "");
    now += limits.quiet_busy;
    BOOST_TEST((core->tick(now) == sandboxes::link_core::verdict::well));
    BOOST_TEST(sent().size() == 1U);
    BOOST_TEST((core->due() == now + limits.pong_within));
    now += limits.pong_within;
    BOOST_TEST((core->tick(now) == sandboxes::link_core::verdict::dead));
}

BOOST_AUTO_TEST_CASE(pings_are_answered_once_at_a_time) {
    open();
    std::string ping;
    protocol::append_ping(ping, frame_type::ping, "abc");
    BOOST_TEST(hear(ping + ping + ping) == "");
    const auto pongs = sent();
    BOOST_REQUIRE(pongs.size() == 1U);
    BOOST_TEST(pongs.front().payload == "abc");
}

BOOST_AUTO_TEST_CASE(a_command_that_does_not_end_is_given_up_and_then_the_sandbox) {
    open();
    const auto one = command(1);
    one->give_up_at(now + 5s);
    const auto number = start(one);
    BOOST_TEST((core->due() <= now + 5s));
    now += 5s;
    BOOST_TEST((core->tick(now) == sandboxes::link_core::verdict::well));
    BOOST_TEST((one->failed->code == errc::timeout));
    const auto frames = sent();
    BOOST_REQUIRE(frames.size() == 2U);
    BOOST_TEST((frames[0].header.type == frame_type::forget));
    BOOST_TEST((frames[1].header.type == frame_type::stop));
    BOOST_TEST(core->running() == 1U);
    BOOST_TEST(hear(data(number, "late")) == "");
    now += limits.stop_within;
    BOOST_TEST((core->tick(now) == sandboxes::link_core::verdict::stuck));
}

BOOST_AUTO_TEST_CASE(an_abandoned_command_is_counted_until_it_ends) {
    open();
    const auto one = command(1);
    const auto number = start(one);
    core->abandon(*one);
    BOOST_TEST(sent(frame_type::forget).size() == 1U);
    BOOST_TEST(hear(started(number) + data(number, "x")) == "");
    BOOST_TEST(core->knows(id_of(1)));
    BOOST_TEST(hear(end(number, 0)) == "");
    BOOST_TEST(!core->knows(id_of(1)));
    BOOST_TEST((!one->ended && !one->failed && one->out.empty()));
}

BOOST_AUTO_TEST_CASE(input_goes_in_turns_within_the_window) {
    open();
    const auto one = command(1);
    const auto two = command(2);
    const auto first = start(one);
    const auto second = start(two);
    const std::string much(300 * 1024, 'a');
    BOOST_TEST(core->write_in(*one, much) == protocol::window);
    BOOST_TEST(core->write_in(*two, "short") == 5U);
    core->end_in(*two);
    std::vector<frame> frames;
    while (core->urgent()) {
        auto more = sent();
        frames.insert(frames.end(), more.begin(), more.end());
    }
    BOOST_REQUIRE(frames.size() == 10U);
    BOOST_TEST(frames[0].header.stream == first);
    BOOST_TEST(frames[1].header.stream == second);
    BOOST_TEST(frames[1].payload == "short");
    BOOST_TEST((frames[2].header.type == frame_type::end_of_data));
    std::string credit;
    protocol::append_credit(credit, first, channel::in, 1000);
    BOOST_TEST(hear(credit) == "");
    BOOST_TEST(one->writable == 1);
    BOOST_TEST(core->write_in(*one, much) == 1000U);
}

BOOST_AUTO_TEST_SUITE_END()
