// Against a real daemon, asked for by SANDBOXD_TEST_DOCKER_HOST=unix:///... It needs an image named
// "sandboxd-test" with a POSIX shell in it: `tar -c . | docker import - sandboxd-test` of a busybox tree.

#include "core/deadline.hpp"
#include "core/random.hpp"
#include "docker/exec_run.hpp"
#include "docker/tar.hpp"
#include "support/run.hpp"
#include "words.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <functional>

using namespace sandboxd;
using namespace sandboxd::docker;
using namespace std::chrono_literals;

namespace asio = boost::asio;

namespace {

const char* host() {
    return std::getenv("SANDBOXD_TEST_DOCKER_HOST");
}

boost::test_tools::assertion_result asked_for(boost::unit_test::test_unit_id) {
    return host() != nullptr;
}

struct daemon_fixture {
    asio::cancellation_signal stop; ///< outlives the coroutine it stops, also when a check ends the test
    std::string deaths;             ///< told by the events: exit code and slot
    bool listening = false;
    bool watched = false;
    asio::io_context context;
    std::shared_ptr<engine> docker =
        create_engine(context.get_executor(), parse_host(host(), false).value(), {}).value();
    std::string mark = core::random_hex(8);
    std::string volume = "sandboxd-test-" + mark;

    template <class T>
    T get(task<T> work) {
        return test::get(context, std::move(work), 60s);
    }

    void until(const std::function<bool()>& holds) {
        for (int i = 0; i < 3'000 && !holds(); ++i) {
            get(core::sleep_for(10ms));
        }
        BOOST_TEST_REQUIRE(holds());
    }

    container_spec spec() const {
        container_spec made;
        made.image = "sandboxd-test";
        made.name = "sandboxd-test-" + mark;
        made.entrypoint = std::vector<std::string>{"/bin/cat"};
        made.command.emplace();
        made.environment = {{"MARK", mark}};
        made.labels = {{label_slot, mark}};
        made.open_stdin = true;
        made.healthcheck = false;
        made.init = false;
        made.memory = 64U << 20U;
        made.memory_swap = 64U << 20U;
        made.nano_cpus = 500'000'000;
        made.pids = 32;
        made.network_mode = "none";
        made.tmpfs = {{"/tmp", "size=1m,exec"}};
        made.security_options = {"no-new-privileges:true"};
        made.ulimits.push_back({"nofile", 1024, 4096}); // raising the daemon's own would need its privilege
        made.log_driver = "none";
        mount bound;
        bound.type = mount::kind::volume;
        bound.source = volume;
        bound.destination = "/agent";
        bound.read_only = true;
        made.mounts.push_back(bound);
        return made;
    }

    ~daemon_fixture() {
        stop.emit(asio::cancellation_type::terminal);
        get(core::sleep_for(100ms));
        (void)get(remove_matching(docker, {{"label", std::string(label_slot) + "=" + mark}}, 30s));
        (void)get(docker->remove_volume(volume, 30s));
    }
};

task<std::string> echo(net::stream& stream, std::string words) {
    co_await asio::async_write(stream, asio::buffer(words), asio::as_tuple(asio::use_awaitable));
    std::string heard;
    std::array<char, 256> part{};
    while (heard.size() < words.size()) {
        const auto [failed, size] =
            co_await stream.async_read_some(asio::buffer(part), asio::as_tuple(asio::use_awaitable));
        heard.append(part.data(), size);
        if (failed) {
            break;
        }
    }
    co_return heard;
}

exec_spec command(const std::string& script) {
    exec_spec made;
    made.argv = {"/bin/sh", "-c", script};
    return made;
}

void fill_volume(daemon_fixture& with) {
    BOOST_TEST_REQUIRE(
        with.get(with.docker->create_volume(with.volume, {{label_slot, with.mark}}, 30s)).has_value());
    BOOST_TEST(with.get(with.docker->inspect_volume(with.volume, 30s))->name == with.volume);
    // A volume is filled through a container that is never started.
    auto filler = with.spec();
    filler.name.clear();
    filler.mounts.front().read_only = false;
    const auto made = with.get(with.docker->create(filler, 30s));
    BOOST_TEST_REQUIRE(made.has_value(), test::words(made));
    tar_file program;
    program.name = "hello";
    program.content = "#!/bin/sh\necho from the volume\n";
    program.mode = 0755;
    const auto put = with.get(with.docker->put_archive(made->id, "/agent", make_tar({program}), 30s));
    BOOST_TEST(put.has_value(), test::words(put));
    const auto missing = with.get(with.docker->put_archive(made->id, "/nowhere", make_tar({program}), 30s));
    BOOST_TEST(missing.error().status == 404);
    BOOST_TEST((with.get(with.docker->remove(made->id, true, 30s)).value() == outcome::done));
}

} // namespace

BOOST_AUTO_TEST_SUITE(real_daemon, *boost::unit_test::precondition(asked_for))

BOOST_FIXTURE_TEST_CASE(it_answers, daemon_fixture) {
    const auto agreed = get(docker->ping(10s));
    BOOST_TEST_REQUIRE(agreed.has_value(), test::words(agreed));
    BOOST_TEST((*agreed >= oldest_api));
    BOOST_TEST(!get(docker->version(10s))->engine.empty());
    const auto info = get(docker->info(10s));
    BOOST_TEST(info->os_type == "linux");
    BOOST_TEST(!info->runtimes.empty());
    BOOST_TEST(!info->default_runtime.empty());
    const auto image = get(docker->inspect_image("sandboxd-test", 10s));
    BOOST_TEST(image->os == "linux");
    BOOST_TEST(get(docker->inspect_image("sandboxd-no-such-image", 10s)).error().status == 404);
    const auto images = get(docker->list_images({{"reference", "sandboxd-test"}}, 10s));
    BOOST_TEST(images->at(0).id == image->id);
}

BOOST_FIXTURE_TEST_CASE(a_containers_whole_life, daemon_fixture) {
    fill_volume(*this);
    const auto wanted = spec();
    const auto made = get(docker->create(wanted, 30s));
    BOOST_TEST_REQUIRE(made.has_value(), test::words(made));
    BOOST_TEST(static_cast<int>(get(docker->create(wanted, 30s)).error().code) ==
               static_cast<int>(errc::exists));
    const auto fresh = get(docker->inspect(made->id, 30s));
    for (const auto& difference : differences(wanted, *fresh)) {
        // Kernels without swap accounting can't limit it; the daemon says so.
        BOOST_TEST(difference.starts_with("the daemon did not take over MemorySwap"), difference);
    }
    BOOST_TEST(fresh->status == "created");

    event_sink sink;
    sink.connected = [&](bool) { listening = true; };
    sink.event = [&](const engine_event& one) {
        if (one.action == "die") {
            deaths += one.attribute("exitCode") + " " + one.attribute(label_slot) + ";";
        }
    };
    asio::co_spawn(
        context,
        docker->watch_events({{"type", "container"}, {"label", std::string(label_slot) + "=" + mark}}, sink),
        asio::bind_cancellation_slot(stop.slot(), [&](const std::exception_ptr&) { watched = true; }));

    attach_options options;
    options.stream.demultiplex = true;
    auto attached = get(docker->attach(context.get_executor(), made->id, options, 30s));
    BOOST_TEST_REQUIRE(attached.has_value());
    BOOST_TEST((get(docker->start(made->id, 30s)).value() == outcome::done));
    BOOST_TEST((get(docker->start(made->id, 30s)).value() == outcome::already));
    BOOST_TEST(get(echo(*attached->stream, std::string(100'000, 'x') + "\n")).size() == 100'001U);

    const auto ran = get(run_exec(docker, made->id, command("echo $MARK; /agent/hello >&2; exit 3"), {}));
    BOOST_TEST_REQUIRE(ran.has_value(), test::words(ran));
    BOOST_TEST(ran->out == mark + "\n");
    BOOST_TEST(ran->err == "from the volume\n");
    BOOST_TEST(ran->exit_code == 3);
    BOOST_TEST(ran->whole);
    exec_spec absent;
    absent.argv = {"no-such-command"};
    const auto not_found = get(run_exec(docker, made->id, absent, {}));
    BOOST_TEST((!not_found.has_value() || not_found->exit_code == 127 || not_found->exit_code == 126));

    BOOST_TEST(get(docker->stats(made->id, 30s))->pids.value() >= 1U);
    const auto listed = get(docker->list({{"label", std::string(label_slot) + "=" + mark}}, 30s));
    BOOST_TEST_REQUIRE(listed->size() == 1U);
    BOOST_TEST(listed->at(0).id == made->id);
    BOOST_TEST(listed->at(0).state == "running");
    BOOST_TEST(get(docker->rename(made->id, wanted.name + "-new", 30s)).has_value());
    BOOST_TEST(get(docker->inspect(made->id, 30s))->name == wanted.name + "-new");

    BOOST_TEST(listening);
    BOOST_TEST(static_cast<int>(get(docker->wait(made->id, "next-exit", 200ms)).error().code) ==
               static_cast<int>(errc::timeout));
    BOOST_TEST((get(docker->kill(made->id, "KILL", 30s)).value() == outcome::done));
    BOOST_TEST(get(docker->wait(made->id, "not-running", 30s))->exit_code == 137);
    BOOST_TEST((get(docker->kill(made->id, "KILL", 30s)).value() == outcome::already));
    BOOST_TEST((get(docker->stop(made->id, 1s, 30s)).value() == outcome::already));
    BOOST_TEST(get(echo(*attached->stream, "gone")) == ""); // end-of-file
    until([this] { return !deaths.empty(); });
    get(core::sleep_for(300ms)); // one death, told once
    BOOST_TEST(deaths == "137 " + mark + ";");
    stop.emit(asio::cancellation_type::terminal);
    until([this] { return watched; });

    BOOST_TEST((get(docker->remove(made->id, false, 30s)).value() == outcome::done));
    BOOST_TEST((get(docker->remove(made->id, false, 30s)).value() == outcome::missing));
    BOOST_TEST((get(docker->remove_volume(volume, 30s)).value() == outcome::done));
    BOOST_TEST((get(docker->remove_volume(volume, 30s)).value() == outcome::missing));
}

BOOST_FIXTURE_TEST_CASE(a_pull_that_cannot_work_is_told, daemon_fixture) {
    const auto failed = get(docker->pull("localhost:1/no/such:image", "", {}, 30s)).error();
    BOOST_TEST(!failed.message.empty());
    BOOST_TEST(failed.message.starts_with("cannot pull localhost:1/no/such:image: "));
}

BOOST_AUTO_TEST_SUITE_END()
