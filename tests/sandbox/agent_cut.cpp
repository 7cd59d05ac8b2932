// Channels that are cut while commands run: nothing is lost, nothing runs twice.

#include "agent_fixture.hpp"

#include "core/random.hpp"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>
#include <random>

using namespace sandboxd;
using namespace std::chrono_literals;

namespace {

/// A directory of its own, gone afterwards.
struct scratch {
    std::filesystem::path path = std::filesystem::temp_directory_path() / ("link-" + core::random_hex(8));
    scratch() { std::filesystem::create_directory(path); }
    ~scratch() { std::filesystem::remove_all(path); }
    [[nodiscard]] std::string read(const std::string& name) const {
        std::ifstream file(path / name);
        return {std::istreambuf_iterator<char>(file), {}};
    }
};

std::string numbers(int from, int to) {
    std::string out;
    for (int i = from; i <= to; ++i) {
        out += std::to_string(i) + "\n";
    }
    return out;
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(agent_cut, test::agent_fixture)

BOOST_AUTO_TEST_CASE(a_command_survives_a_cut_channel) {
    std::optional<result<exec_result>> running;
    start("seq 1 1000; " + held("seq 1001 2000; exit 3"), running);
    until([&] { return descendants() >= 1; });
    BOOST_TEST(host->cut());
    let_go();
    until([&] { return running.has_value(); });
    BOOST_TEST(running->value().output == numbers(1, 2000));
    BOOST_TEST(running->value().status.exit_code.value() == 3);
    BOOST_TEST(host->connections() == 2);
}

BOOST_AUTO_TEST_CASE(cuts_at_random_moments_lose_nothing_and_run_nothing_twice) {
    const auto seed = std::random_device{}();
    BOOST_TEST_MESSAGE("seed " << seed);
    std::mt19937 random(seed);
    const scratch dir;
    constexpr int rounds = 25;
    constexpr int at_once = 8;
    int count = 0;
    for (int round = 0; round < rounds; ++round) {
        std::vector<std::optional<result<exec_result>>> answers(at_once);
        for (auto& one : answers) {
            const auto name = dir.path.string() + "/" + std::to_string(count++);
            start("echo ran >> " + name + "; seq 1 9000; exit 7", one);
        }
        for (int cuts = 0; cuts < 3; ++cuts) {
            for (unsigned steps = random() % 40; steps > 0; --steps) {
                context.restart();
                context.run_one_for(1ms);
            }
            host->cut();
        }
        until([&] {
            return std::all_of(answers.begin(), answers.end(),
                               [](const auto& one) { return one.has_value(); });
        });
        for (auto& one : answers) {
            BOOST_TEST((one->value().output == numbers(1, 9000)));
            BOOST_TEST(one->value().status.exit_code.value() == 7);
        }
    }
    for (int i = 0; i < count; ++i) {
        BOOST_TEST(dir.read(std::to_string(i)) == "ran\n");
    }
    BOOST_TEST(host->connections() > rounds);
}

BOOST_AUTO_TEST_CASE(a_stop_reaches_a_command_over_the_next_channel) {
    const auto id = test::fresh_id();
    std::optional<result<exec_result>> running;
    start("sleep 55", running, id);
    until([&] { return descendants() >= 1; });
    BOOST_TEST(host->cut());
    test::run(context, box->stop_run(id));
    until([&] { return running.has_value(); });
    BOOST_TEST(running->value().status.stopped);
    BOOST_TEST(descendants() == 0);
}

BOOST_AUTO_TEST_CASE(a_restarted_service_finds_what_runs_and_can_stop_it) {
    const auto id = test::fresh_id();
    auto& lost = unanswered.emplace_back();
    start("seq 1 100000; sleep 55", lost, id);
    until([&] { return descendants() >= 1; });
    restart();
    BOOST_TEST(exec("echo new").value().output == "new\n");
    auto again = test::exec_of("true", 10, 20s);
    again.run_id = id;
    BOOST_TEST((test::get(context, box->exec(again)).error().code == errc::exists));
    test::run(context, box->stop_run(id));
    BOOST_TEST(descendants() == 0);
    BOOST_TEST(exec("echo after").value().output == "after\n");
}

BOOST_AUTO_TEST_CASE(a_found_command_keeps_its_deadline) {
    auto& lost = unanswered.emplace_back();
    start("sleep 55", lost, test::fresh_id(), 3s);
    until([&] { return descendants() >= 1; });
    restart();
    until([&] { return descendants() == 0; });
    BOOST_TEST(exec("echo after").value().output == "after\n");
}

BOOST_AUTO_TEST_SUITE_END()
