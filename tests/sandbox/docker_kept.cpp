// Containers that stay, ended, in their slots between a stop and the next start, on a daemon in memory.

#include "docker_fixture.hpp"

#include <boost/test/unit_test.hpp>

using namespace sandboxd;
using namespace std::chrono_literals;

namespace {

int code(const error& e) {
    return static_cast<int>(e.code);
}
int code(errc e) {
    return static_cast<int>(e);
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(docker_kept, test::docker_fixture)

BOOST_AUTO_TEST_CASE(a_kept_container_is_started_again_in_its_slot) {
    auto of = spec();
    of.keep = keeping::layer;
    const slot_record slot{"slot-7", "docker", "slot-7"};
    auto made = get(builder->build(of, slot));
    BOOST_TEST_REQUIRE(made.has_value());
    const auto container = daemon->containers.begin()->first;
    test::run(context, (*made)->stop(false));
    BOOST_TEST(!(*made)->alive());
    BOOST_TEST_REQUIRE(daemon->containers.size() == 1U);
    BOOST_TEST(daemon->containers.begin()->second.state == "exited");
    of.keep = keeping::kept;
    made = get(builder->build(of, slot));
    BOOST_TEST_REQUIRE(made.has_value());
    BOOST_TEST(daemon->containers.begin()->first == container);
    BOOST_TEST(daemon->containers.begin()->second.state == "running");
    test::run(context, (*made)->stop(true)); // a purge leaves nothing
    BOOST_TEST(daemon->containers.empty());
    BOOST_TEST(code(get(builder->build(of, slot)).error()) == code(errc::gone));
}

BOOST_AUTO_TEST_CASE(a_kept_container_is_ended_when_the_daemon_is_back) {
    auto of = spec();
    of.keep = keeping::layer;
    const slot_record slot{"slot-7", "docker", "slot-7"};
    auto made = get(builder->build(of, slot));
    BOOST_TEST_REQUIRE(made.has_value());
    auto& container = daemon->containers.begin()->second;
    daemon->away = docker::no_answer(errc::unavailable, "cannot reach the docker daemon");
    test::run(context, (*made)->stop(false));
    BOOST_TEST(!(*made)->alive());
    BOOST_TEST(container.state == "running");
    daemon->away.reset();
    until([&] { return container.state == "exited"; });
    settle(100ms);
    BOOST_TEST(daemon->containers.size() == 1U);
    // Used again, it is left alone.
    made = get(builder->build(of, slot));
    BOOST_TEST_REQUIRE(made.has_value());
    const auto lists = daemon->count("list");
    settle(100ms);
    BOOST_TEST(daemon->count("list") == lists);
    BOOST_TEST((*made)->alive());
    BOOST_TEST(container.state == "running");
}

BOOST_AUTO_TEST_CASE(what_is_left_of_the_first_run_of_a_container_does_not_hide_the_end_of_the_next) {
    auto of = spec();
    of.keep = keeping::layer;
    const slot_record slot{"slot-7", "docker", "slot-7"};
    auto first = get(builder->build(of, slot)).value();
    test::run(context, first->stop(false));
    auto second = get(builder->build(of, slot)).value();
    BOOST_TEST(daemon->containers.size() == 1U);
    first.reset();
    BOOST_TEST(second->alive());
    daemon->end(daemon->containers.begin()->first);
    BOOST_TEST(!second->alive());
}

BOOST_AUTO_TEST_CASE(a_kept_container_without_an_agent_that_answers_stays) {
    auto of = spec();
    of.keep = keeping::layer;
    const slot_record slot{"slot-7", "docker", "slot-7"};
    auto made = get(builder->build(of, slot));
    BOOST_TEST_REQUIRE(made.has_value());
    test::run(context, (*made)->stop(false));
    factory_error = error{errc::start_failed, "the sandbox's agent did not answer in time"};
    of.keep = keeping::kept;
    BOOST_TEST(code(get(builder->build(of, slot)).error()) == code(errc::start_failed));
    BOOST_TEST(daemon->containers.size() == 1U);
    BOOST_TEST(daemon->containers.begin()->second.state == "exited");
}

BOOST_AUTO_TEST_SUITE_END()
