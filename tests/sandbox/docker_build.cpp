// How the docker backend makes and removes sandboxes, on a daemon in memory ("Decided" 2, 5, 6; contract 4.1
// to 4.3 and 4.5).

#include "docker_fixture.hpp"

#include "core/spawn.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>

using namespace sandboxd;
using namespace std::chrono_literals;
using test::daemon_says;

namespace {

constexpr const char* agent_missing =
    R"(cannot start the container: OCI runtime create failed: exec: "/.sandboxd/bin/sandboxd-agent": stat )"
    R"(/.sandboxd/bin/sandboxd-agent: no such file or directory: unknown)";

std::string label(const docker::container_spec& spec, const std::string& name) {
    for (const auto& [key, value] : spec.labels) {
        if (key == name) {
            return value;
        }
    }
    return "(none)";
}

bool is_helper(const docker::container_spec& spec) {
    return label(spec, docker::label_slot).starts_with("helper-");
}

int code(const error& e) {
    return static_cast<int>(e.code);
}
int code(errc e) {
    return static_cast<int>(e);
}

task<void> open_one(std::shared_ptr<sandbox_builder> builder, sandbox_spec of, int* opened) {
    const auto slot = co_await builder->prepare(of);
    const auto made = co_await builder->build(std::move(of), *slot);
    *opened += made ? 1 : 0;
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(docker_build, test::docker_fixture)

BOOST_AUTO_TEST_CASE(the_agent_is_the_entrypoint_and_runs_the_images_own) {
    daemon->add_image("entry", {"/docker-entrypoint.sh", "-x"});
    const auto made = open(spec("entry"));
    BOOST_TEST_REQUIRE(made.has_value());
    BOOST_TEST((*made)->type() == "docker");
    BOOST_TEST((*made)->alive());
    const auto& asked = daemon->created.back();
    const auto slot = label(asked, docker::label_slot);
    BOOST_TEST(slot == (*made)->handle());
    BOOST_TEST(label(asked, docker::label_service) == "uuid-1");
    BOOST_TEST(asked.image == "sha256:entry");
    const std::vector<std::string> argv{
        "/.sandboxd/bin/sandboxd-agent", "serve", "--stdio", "--bridge", slot, "--entrypoint",
        "/docker-entrypoint.sh",         "-x",    "sleep",   "infinity"};
    BOOST_TEST(*asked.entrypoint == argv, boost::test_tools::per_element());
    BOOST_TEST(asked.log_driver == "none");
    BOOST_TEST(asked.open_stdin);
    BOOST_TEST(*asked.oom_score_adj == -100);
    BOOST_TEST(asked.mounts.size() == 1U);
    BOOST_TEST(asked.mounts[0].destination == "/.sandboxd/bin");
    BOOST_TEST(asked.mounts[0].read_only);
}

BOOST_AUTO_TEST_CASE(the_agents_volume_is_filled_once_by_a_container_that_never_runs) {
    BOOST_TEST_REQUIRE(open(spec()).has_value());
    BOOST_TEST_REQUIRE(daemon->created.size() == 2U);
    BOOST_TEST(is_helper(daemon->created[0]));
    BOOST_TEST(!daemon->created[0].mounts[0].read_only);
    BOOST_TEST(daemon->count("put_archive") == 1U);
    BOOST_TEST(daemon->containers.size() == 1U); // the helper is gone
    BOOST_TEST(daemon->count("start") == 1U);
    BOOST_TEST_REQUIRE(open(spec()).has_value());
    BOOST_TEST(daemon->count("put_archive") == 1U);
    BOOST_TEST(daemon->volumes.size() == 1U);
    BOOST_TEST(daemon->volumes.begin()->first == daemon->created.back().mounts[0].source);
}

BOOST_AUTO_TEST_CASE(a_pruned_volume_is_filled_again) {
    BOOST_TEST_REQUIRE(open(spec()).has_value());
    daemon->start_errors.push_back(daemon_says(400, agent_missing));
    const auto made = open(spec());
    BOOST_TEST_REQUIRE(made.has_value());
    BOOST_TEST(daemon->count("put_archive") == 2U);
    BOOST_TEST(daemon->containers.size() == 2U); // nothing of the failed attempt, nor of the helper
}

BOOST_AUTO_TEST_CASE(an_agent_that_stays_missing_is_an_error_in_the_daemons_words) {
    for (int i = 0; i < 10; ++i) {
        daemon->start_errors.push_back(daemon_says(400, agent_missing));
    }
    const auto made = open(spec());
    BOOST_TEST(code(made.error()) == code(errc::start_failed));
    BOOST_TEST(made.error().message == agent_missing);
    BOOST_TEST(daemon->containers.empty());
}

BOOST_AUTO_TEST_CASE(an_absent_image_is_pulled_once_for_all_who_ask) {
    int opened = 0;
    for (int i = 0; i < 3; ++i) {
        core::spawn(context.get_executor(), "open", background, open_one(builder, spec("new:1"), &opened));
    }
    until([&] { return opened == 3; });
    BOOST_TEST(daemon->pulls == 1);
}

BOOST_AUTO_TEST_CASE(a_pull_that_fails_is_told_in_words) {
    daemon->pull_error = daemon_says(404, "cannot pull no/such: pull access denied for no/such");
    const auto made = open(spec("no/such"));
    BOOST_TEST(code(made.error()) == code(errc::start_failed));
    BOOST_TEST(made.error().message == "cannot pull no/such: pull access denied for no/such");
    BOOST_TEST(daemon->created.empty());
}

BOOST_AUTO_TEST_CASE(a_daemon_that_cannot_give_many_open_files_is_asked_for_fewer) {
    daemon->start_errors.push_back(daemon_says(
        400, "cannot start the container: error setting rlimit type 7: operation not permitted: unknown"));
    const auto made = open(spec());
    BOOST_TEST_REQUIRE(made.has_value());
    BOOST_TEST(daemon->created[daemon->created.size() - 2].ulimits[0].hard == 65'536);
    BOOST_TEST(daemon->created.back().ulimits[0].hard == 16'384);
    BOOST_TEST(daemon->created.back().ulimits[0].soft == 1024);
    BOOST_TEST_REQUIRE(open(spec()).has_value()); // known from now on
    BOOST_TEST(daemon->created.back().ulimits[0].hard == 16'384);
}

BOOST_AUTO_TEST_CASE(what_a_daemon_cannot_give_is_left_out_for_all_who_open_at_once) {
    daemon->gives_scores = false;
    daemon->most_open_files = 65'536;
    daemon->starts_that_meet = 3;
    int opened = 0;
    for (int i = 0; i < 3; ++i) {
        core::spawn(context.get_executor(), "open", background, open_one(builder, spec(), &opened));
    }
    until([&] { return daemon->starts_that_meet == 0; });
    until([&] { return opened == 3; });
    for (const auto& [id, one] : daemon->containers) {
        BOOST_TEST(!one.spec.oom_score_adj.has_value());
        BOOST_TEST(one.spec.ulimits[0].hard == 65'536);
    }
    BOOST_TEST(daemon->containers.size() == 3U);
}

BOOST_AUTO_TEST_CASE(what_a_given_up_create_has_made_is_removed) {
    auto late = docker::no_answer(errc::timeout, "cannot create the container: no answer in time", true);
    BOOST_TEST_REQUIRE(open(spec()).has_value());
    daemon->create_errors.push_back(late);
    daemon->creates_late = true;
    const auto made = open(spec());
    BOOST_TEST(made.error().message == "cannot create the container: no answer in time");
    BOOST_TEST(daemon->containers.size() == 1U);
    // It comes into being only now, with the same label.
    auto ghost = daemon->created.back();
    daemon->containers["ghost"].spec = ghost;
    until([&] { return !daemon->containers.contains("ghost"); });
    BOOST_TEST(daemon->containers.size() == 1U);
}

BOOST_AUTO_TEST_CASE(an_agent_that_does_not_answer_leaves_nothing) {
    factory_error = error{errc::start_failed, "the sandbox's agent did not answer in time"};
    const auto made = open(spec());
    BOOST_TEST(made.error().message == "the sandbox's agent did not answer in time");
    BOOST_TEST(daemon->containers.empty());
}

BOOST_AUTO_TEST_CASE(what_cannot_be_is_refused_before_the_daemon_is_asked) {
    auto of = spec();
    of.oci_runtime = "crun";
    BOOST_TEST(open(of).error().message ==
               "oci_runtime 'crun' is not registered with the docker daemon: it has runc, runsc");
    BOOST_TEST(code(open(spec("dir:/srv/tree")).error()) == code(errc::start_failed));
    BOOST_TEST(code(open(spec("host")).error()) == code(errc::start_failed));
    BOOST_TEST(code(open(spec("")).error()) == code(errc::start_failed));
    BOOST_TEST(daemon->count("inspect_image") == 0U);
    of = spec();
    of.oci_runtime = "runsc";
    BOOST_TEST(open(of).has_value());
    BOOST_TEST(*daemon->created.back().runtime == "runsc");
}

BOOST_AUTO_TEST_CASE(a_socket_that_can_not_be_bound_is_an_attach) {
    daemon->local = may_be_local = true;
    make_builder();
    const auto slot = get(builder->prepare(spec())).value();
    daemon->start_errors.push_back(daemon_says(400, "cannot start the container: error mounting \"" + state +
                                                        "/docker/" + slot.slot + "\": permission denied"));
    const auto made = get(builder->build(spec(), slot));
    BOOST_TEST_REQUIRE(made.has_value());
    const auto has = [](const docker::container_spec& of, std::string_view word) {
        return std::ranges::count(*of.entrypoint, word) != 0;
    };
    BOOST_TEST_REQUIRE(daemon->created.size() == 3U); // a helper's first
    BOOST_TEST(has(daemon->created[1], "--dial"));
    BOOST_TEST(has(daemon->created[2], "--stdio"));
    BOOST_TEST(!has(daemon->created[2], "--dial"));
    BOOST_TEST(get(host_of(**made).connect(context.get_executor())).has_value());
    BOOST_TEST(daemon->count("attach") == 1U);
    BOOST_TEST(daemon->execs.empty());
    // The next one is not tried that way.
    BOOST_TEST(open(spec()).has_value());
    BOOST_TEST(has(daemon->created.back(), "--stdio"));
}

BOOST_AUTO_TEST_CASE(a_stop_removes_the_container) {
    const auto made = open(spec());
    BOOST_TEST_REQUIRE(made.has_value());
    test::run(context, (*made)->stop(true));
    BOOST_TEST(daemon->containers.empty());
    BOOST_TEST(!(*made)->alive());
}

BOOST_AUTO_TEST_CASE(a_stop_while_the_daemon_is_away_is_made_up_for) {
    const auto made = open(spec());
    BOOST_TEST_REQUIRE(made.has_value());
    daemon->away = docker::no_answer(errc::unavailable, "cannot reach the docker daemon");
    test::run(context, (*made)->stop(true));
    BOOST_TEST(daemon->containers.size() == 1U);
    daemon->away.reset();
    until([&] { return daemon->containers.empty(); });
}

BOOST_AUTO_TEST_CASE(a_restarted_service_finds_its_own_and_nothing_else) {
    const auto made = open(spec());
    BOOST_TEST_REQUIRE(made.has_value());
    const slot_record slot{(*made)->handle(), "docker", (*made)->handle()};
    docker::container_spec foreign;
    foreign.labels = {{docker::label_service, "uuid-2"}, {docker::label_slot, "theirs"}};
    daemon->containers["foreign"] = {foreign, "running", {}};
    daemon->containers["unlabelled"] = {};
    make_builder();
    const auto owned = get(builder->owned());
    BOOST_TEST_REQUIRE(owned->size() == 1U);
    BOOST_TEST(owned->front().slot == slot.slot);
    auto adopted = get(builder->adopt(slot));
    BOOST_TEST_REQUIRE(adopted.has_value());
    BOOST_TEST(dynamic_cast<test::plain_sandbox&>(**adopted).was_adopted);
    BOOST_TEST((*adopted)->handle() == slot.slot);
    BOOST_TEST(get(builder->remove(slot)).has_value());
    BOOST_TEST(get(builder->remove(slot)).has_value());
    BOOST_TEST(daemon->containers.size() == 2U);
    BOOST_TEST(code(get(builder->adopt(slot)).error()) == code(errc::gone));
    BOOST_TEST(code(get(builder->adopt({"../x", "docker", ""})).error()) == code(errc::gone));
}

BOOST_AUTO_TEST_CASE(a_paused_container_goes_on_when_it_is_found_again) { // hard-cases B4 07
    const auto made = open(spec());
    BOOST_TEST_REQUIRE(made.has_value());
    const slot_record slot{(*made)->handle(), "docker", (*made)->handle()};
    auto& container = daemon->containers.begin()->second;
    container.state = "paused";
    make_builder();
    auto adopted = get(builder->adopt(slot));
    BOOST_TEST_REQUIRE(adopted.has_value());
    BOOST_TEST((*adopted)->alive());
    BOOST_TEST(container.state == "running");
    BOOST_TEST(daemon->count("unpause") == 1U);
}

BOOST_AUTO_TEST_CASE(a_container_without_the_agent_is_entered_through_the_bridge) {
    docker::container_spec plain;
    plain.labels = {{docker::label_service, "uuid-1"}, {docker::label_slot, "slot-9"}};
    plain.entrypoint = std::vector<std::string>{"sleep", "infinity"};
    daemon->containers["plain"] = {plain, "running", {}};
    auto adopted = get(builder->adopt({"slot-9", "docker", "slot-9"}));
    BOOST_TEST_REQUIRE(adopted.has_value());
    BOOST_TEST(daemon->containers["plain"].archives.contains("/"));
    BOOST_TEST(get(host_of(**adopted).connect(context.get_executor())).has_value());
    BOOST_TEST(daemon->count("attach") == 0U);
    const std::vector<std::string> argv{"/.sandboxd/bin/sandboxd-agent", "bridge", "slot-9"};
    BOOST_TEST_REQUIRE(daemon->execs.size() == 1U);
    BOOST_TEST(daemon->execs[0].argv == argv, boost::test_tools::per_element());
    BOOST_TEST(daemon->execs[0].working_dir == ""); // the container's own
}

BOOST_AUTO_TEST_CASE(a_container_that_has_ended_is_not_adopted) {
    const auto made = open(spec());
    BOOST_TEST_REQUIRE(made.has_value());
    daemon->end(daemon->containers.begin()->first, false);
    BOOST_TEST(code(get(builder->adopt({(*made)->handle(), "docker", ""})).error()) == code(errc::gone));
}

BOOST_AUTO_TEST_SUITE_END()
