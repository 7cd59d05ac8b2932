// The parts of the registry that need no executor.

#include "session/admission.hpp"
#include "session/command_queue.hpp"
#include "session/event_log.hpp"
#include "session/service.hpp"
#include "session/session.hpp"
#include "session/state.hpp"
#include "session/text.hpp"
#include "session/tombstones.hpp"
#include "session/workspace.hpp"

#include <boost/test/unit_test.hpp>

#include <fstream>
#include <map>

#include <unistd.h>

using namespace sandboxd;
using session::phase;
using session::trigger;

BOOST_AUTO_TEST_SUITE(parts)

BOOST_AUTO_TEST_CASE(the_table_of_states_is_this_one) {
    const std::map<std::pair<phase, trigger>, phase> expected{
        {{phase::opening, trigger::built}, phase::running},
        {{phase::opening, trigger::build_failed}, phase::closed},
        {{phase::running, trigger::heal_started}, phase::healing},
        {{phase::running, trigger::sleep_started}, phase::sleeping},
        {{phase::running, trigger::close_started}, phase::closing},
        {{phase::healing, trigger::healed}, phase::running},
        {{phase::healing, trigger::heal_failed}, phase::running},
        {{phase::healing, trigger::close_started}, phase::closing},
        {{phase::sleeping, trigger::slept}, phase::hibernated},
        {{phase::sleeping, trigger::sleep_failed}, phase::running},
        {{phase::sleeping, trigger::close_started}, phase::closing},
        {{phase::hibernated, trigger::wake_started}, phase::waking},
        {{phase::hibernated, trigger::close_started}, phase::closing},
        {{phase::waking, trigger::woken}, phase::running},
        {{phase::waking, trigger::wake_failed}, phase::hibernated},
        {{phase::waking, trigger::close_started}, phase::closing},
        {{phase::closing, trigger::close_failed}, phase::running},
        {{phase::closing, trigger::close_failed_asleep}, phase::hibernated},
        {{phase::closing, trigger::stopped}, phase::closed},
        {{phase::closing, trigger::stop_overdue}, phase::quarantined},
        {{phase::quarantined, trigger::stopped}, phase::closed},
    };
    int moves = 0;
    for (int p = 0; p <= static_cast<int>(phase::closed); ++p) {
        for (int t = 0; t <= static_cast<int>(trigger::stop_overdue); ++t) {
            const auto from = static_cast<phase>(p);
            const auto what = static_cast<trigger>(t);
            const auto to = session::next(from, what);
            const auto at = expected.find({from, what});
            BOOST_TEST(to.has_value() == (at != expected.end()), name_of(from) << " " << t);
            if (to && at != expected.end()) {
                BOOST_TEST((*to == at->second), name_of(from) << " " << t);
                ++moves;
            }
        }
    }
    BOOST_TEST(moves == 21);
    BOOST_TEST(!session::is_listed(phase::opening));
    BOOST_TEST(!session::is_listed(phase::closing));
    BOOST_TEST(session::is_listed(phase::healing));
    BOOST_TEST(session::shows_hibernated(phase::waking));
    BOOST_TEST(!session::shows_hibernated(phase::sleeping));
}

BOOST_AUTO_TEST_CASE(words_are_quoted_where_a_shell_needs_it) {
    BOOST_TEST(session::shell_join({"ls", "-l", "/a.b_c%d@e+f=g:h,i"}) == "ls -l /a.b_c%d@e+f=g:h,i");
    BOOST_TEST(session::shell_join({"sh", "-c", "echo $HOME; x"}) == "sh -c 'echo $HOME; x'");
    BOOST_TEST(session::shell_join({"", "'", "é", "~"}) == "'' ''\"'\"'' 'é' '~'");
    BOOST_TEST(session::shell_join({}) == "");
}

// A `run` may have megabytes of arguments, and 200 characters of them are ever shown.
BOOST_AUTO_TEST_CASE(of_long_arguments_there_is_only_what_is_shown) {
    const std::string long_word(16 << 20, 'x');
    BOOST_TEST(session::shorten(session::shell_join({"cat", long_word})) ==
               "cat " + std::string(196, 'x') + "…");
    BOOST_TEST(session::shorten(session::shell_join({"sh", "-c", long_word + " "})) ==
               "sh -c '" + std::string(193, 'x') + "…");
    BOOST_TEST(session::shell_join({long_word, long_word, long_word}).size() < 4'000U);
    std::string wide;
    for (int i = 0; i < 100'000; ++i) {
        wide += "𝄞";
    }
    std::string shown = "'";
    for (int i = 0; i < 199; ++i) {
        shown += "𝄞";
    }
    BOOST_TEST(session::shorten(session::shell_join({wide})) == shown + "…");
    // The last that is shown whole, and one word more.
    BOOST_TEST(session::shorten(session::shell_join({std::string(98, 'x'), std::string(99, 'y'), "z"})) ==
               std::string(98, 'x') + " " + std::string(99, 'y') + " z");
    BOOST_TEST(session::shorten(session::shell_join(std::vector<std::string>(100'000, ""))) == [] {
        std::string line;
        while (line.size() < 200) {
            line += "'' ";
        }
        return line.substr(0, 200) + "…";
    }());
}

BOOST_AUTO_TEST_CASE(long_targets_are_cut_at_200_characters_not_bytes) {
    const std::string exact(200, 'x');
    BOOST_TEST(session::shorten(exact) == exact);
    BOOST_TEST(session::shorten(exact + "y") == exact + "…");
    std::string wide;
    for (int i = 0; i < 200; ++i) {
        wide += "ü";
    }
    BOOST_TEST(session::shorten(wide) == wide);
    BOOST_TEST(session::shorten(wide + "ü") == wide + "…");
    BOOST_TEST(session::shorten("") == "");
}

BOOST_AUTO_TEST_CASE(event_numbers_come_out_of_reserved_blocks_only) {
    session::event_log log(3);
    for (int i = 0; i < 3; ++i) {
        BOOST_TEST(log.add({}));
    }
    BOOST_TEST(!log.add({}));
    BOOST_TEST(log.wanted_limit() == 3 + 2 * session::event_log::first_block);
    log.reserved(log.wanted_limit());
    BOOST_TEST(log.add({}));
    BOOST_TEST(log.latest() == 4);
    BOOST_TEST(log.wanted_limit() == 0);
    BOOST_TEST(log.unwritten().size() == 4U);
    log.written(3);
    BOOST_TEST(log.unwritten().size() == 1U);
    // After a crash everything that may have been given out counts as given out.
    session::event_log after(515, {{7, 0, "exec", "", true, "", 0}});
    BOOST_TEST(after.latest() == 515);
    BOOST_TEST(after.unwritten().empty());
    BOOST_TEST(!after.add({}));
    after.reserved(600);
    BOOST_TEST(after.add({}));
    BOOST_TEST(after.after(7).events.at(0).seq == 516);
}

BOOST_AUTO_TEST_CASE(places_come_back_once) {
    boost::asio::io_context context;
    session::admission places;
    store::session_record record;
    record.tenant = "t";
    session::session one(context.get_executor(), record, "");
    places.enter_open(one);
    places.enter_resident(one);
    places.enter_resident(one);
    BOOST_TEST(places.resident() == 1);
    BOOST_TEST(places.of_tenant("t") == 1);
    BOOST_TEST(places.of_tenant("u") == 0);
    places.leave_resident(one);
    places.leave_resident(one);
    BOOST_TEST(places.resident() == 0);
    BOOST_TEST(places.open() == 1);
    places.leave(one);
    places.leave(one);
    BOOST_TEST(places.open() == 0);
    BOOST_TEST(places.of_tenant("t") == 0);
}

BOOST_AUTO_TEST_CASE(the_line_is_served_in_order) {
    session::command_queue queue(1);
    std::optional<session::command_queue::place> first(queue.enter());
    std::optional<session::command_queue::place> second(queue.enter());
    std::optional<session::command_queue::place> third(queue.enter());
    std::optional<session::command_queue::place> fourth(queue.enter());
    BOOST_TEST(first->granted());
    BOOST_TEST(!second->granted());
    BOOST_TEST(queue.waiting() == 3U);
    third.reset(); // gives up
    first.reset();
    BOOST_TEST(second->granted());
    BOOST_TEST(second->wake()->is_set());
    BOOST_TEST(!fourth->granted());
    BOOST_TEST(queue.running() == 1U);
    second.reset();
    BOOST_TEST(fourth->granted());
    fourth.reset();
    BOOST_TEST(queue.running() == 0U);
    BOOST_TEST(queue.enter().granted());
}

BOOST_AUTO_TEST_CASE(tombstones_are_forgotten_by_age) {
    session::tombstones all;
    all.add({1}, 10);
    all.add({2}, 20);
    all.add({1}, 30); // already there
    all.forget_before(20);
    BOOST_TEST(!all.contains({1}));
    BOOST_TEST(all.contains({2}));
}

BOOST_AUTO_TEST_CASE(a_workspace_is_made_with_its_modes_and_removed_whole) {
    namespace blocking = session::blocking;
    const test::temporary_directory root;
    const auto made = blocking::make_workspace(root.path().string(), "a", std::nullopt);
    BOOST_REQUIRE(made.has_value());
    BOOST_TEST(*made == root.path().string() + "/a/workspace");
    const auto mode = [](const std::filesystem::path& of) {
        return static_cast<unsigned>(std::filesystem::status(of).permissions());
    };
    BOOST_TEST(mode(root.path() / "a") == 0700U);
    BOOST_TEST(mode(*made) == 0755U);
    BOOST_TEST(blocking::make_workspace(root.path().string(), "a", ::getuid()).has_value());
    BOOST_TEST(blocking::workspace_exists(root.path().string(), "a"));
    BOOST_TEST(!blocking::workspace_exists(root.path().string(), "b"));
    // A file outside, reached through links, and a tree deeper than a path may be long.
    const auto outside = root.path() / "outside";
    std::ofstream(outside) << "kept";
    std::filesystem::create_symlink(outside, std::filesystem::path(*made) / "link");
    std::filesystem::create_directory_symlink(root.path(), std::filesystem::path(*made) / "linkdir");
    const auto home = std::filesystem::current_path();
    std::filesystem::current_path(*made);
    for (int i = 0; i < 300; ++i) {
        std::filesystem::create_directory(std::string(40, 'd'));
        std::ofstream("file") << "x";
        std::filesystem::current_path(std::string(40, 'd'));
    }
    std::filesystem::current_path(home);
    BOOST_TEST(blocking::remove_workspace(root.path().string(), "a"));
    BOOST_TEST(!std::filesystem::exists(root.path() / "a"));
    BOOST_TEST(std::filesystem::exists(outside));
    for (const char* bad : {"", ".", "..", ".pool", "a/../outside"}) {
        BOOST_TEST(!blocking::remove_workspace(root.path().string(), bad));
        BOOST_TEST(blocking::make_workspace(root.path().string(), bad, std::nullopt).has_error());
    }
    std::filesystem::create_directory_symlink(root.path(), root.path() / "l");
    BOOST_TEST(blocking::make_workspace(root.path().string(), "l", std::nullopt).has_error());
    BOOST_TEST(!blocking::remove_workspace(root.path().string(), "l"));
    BOOST_TEST(std::filesystem::exists(outside));
}

BOOST_AUTO_TEST_CASE(a_claim_that_has_ended_makes_no_workspace) {
    const test::temporary_directory root;
    session::blocking::workspace_claim claim;
    BOOST_TEST(claim.make(root.path().string(), "a", std::nullopt).value() ==
               root.path().string() + "/a/workspace");
    BOOST_TEST(session::blocking::remove_workspace(root.path().string(), "a"));
    claim.end();
    const auto refused = claim.make(root.path().string(), "a", std::nullopt);
    BOOST_REQUIRE(refused.has_error());
    BOOST_TEST((refused.error().code == errc::gone));
    BOOST_TEST(!std::filesystem::exists(root.path() / "a"));
}

BOOST_AUTO_TEST_SUITE_END()
