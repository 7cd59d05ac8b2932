#include "lines.hpp"
#include "support/run.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>

#include <thread>

using namespace sandboxd;
using namespace sandboxd::client;
using namespace sandboxd::lines;
using namespace std::chrono_literals;

namespace {

template <class T>
void fails(const outcome<T>& answer, fault kind) {
    BOOST_TEST_REQUIRE(answer.has_error());
    BOOST_TEST(name_of(answer.error().kind) == name_of(kind), answer.error().message);
}

std::string names(const std::vector<file_info>& rows) {
    std::string text;
    for (const auto& row : rows) {
        text += row.name + (row.is_dir ? "/ " : " ");
    }
    return text;
}

} // namespace

BOOST_AUTO_TEST_SUITE(g3)

BOOST_AUTO_TEST_CASE(k_8_3_002_018_the_first_use_opens) {
    const own_workspace workspace({.tenant = "acme"});
    BOOST_TEST(!workspace->ref().has_value());
    BOOST_TEST(workspace->working_dir().value() == "/workspace");
    BOOST_TEST(workspace->shell("pwd -P").value().out == "/workspace\n");
    BOOST_TEST(workspace->ref().value().provider == "sandboxd");
}

BOOST_AUTO_TEST_CASE(k_8_3_001_commands) {
    const own_workspace workspace;
    const auto literal = workspace->run({"printf", "%s|", "a b", "$HOME", "*", "\xC3\xBC"}).value();
    BOOST_TEST(literal.out == "a b|$HOME|*|\xC3\xBC|");
    const auto split = workspace->shell("echo out; echo err >&2; exit 3").value();
    BOOST_TEST(split.out == "out\n");
    BOOST_TEST(split.err == "err\n");
    BOOST_TEST(split.exit_code == 3);
    BOOST_TEST(workspace->run({"cat"}).value().out.empty()); // standard input is at its end
    BOOST_TEST(workspace->run({"no-such-program"}).value().exit_code == 127);
    fails(workspace->run({}), fault::invalid);
    fails(workspace->shell("true", {.timeout = 0ms}), fault::invalid);
    const auto much = workspace->shell("head -c 11000000 /dev/zero");
    fails(much, fault::output_limited);
    BOOST_TEST(much.error().message.find("10485760") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(k_8_3_003_the_calls_environment_wins) {
    const own_workspace workspace({.env = {{"BASE", "base"}, {"BOTH", "base"}}});
    const auto ran =
        workspace->shell("printf '%s %s' \"$BASE\" \"$BOTH\"", {.env = {{"BOTH", "call"}}}).value();
    BOOST_TEST(ran.out == "base call");
}

BOOST_AUTO_TEST_CASE(k_8_3_005_attaching_to_nothing_is_gone) {
    const own_workspace workspace({.ref = workspace_ref{.id = "never-opened"}});
    fails(workspace->working_dir(), fault::gone);
    BOOST_TEST(workspace->purge().has_value());
}

BOOST_AUTO_TEST_CASE(k_8_3_006_n_101_kept_files_are_found) {
    const auto name = unique("kept");
    const own_workspace first({.session_name = name});
    BOOST_TEST(first->write_bytes("/workspace/note.txt", "kept").has_value());
    // Closed by someone else; its files stay.
    const auto closer =
        remote_sandbox::create(where(), {.token = token(), .session_id = name, .reuse = true}).value();
    BOOST_TEST(closer.start().has_value());
    closer.stop();
    const own_workspace again({.ref = first->ref()});
    BOOST_TEST(again->run({"cat", "note.txt"}).value().out == "kept");
    BOOST_TEST((again->ref() == first->ref()));
    const own_workspace by_name({.session_name = name});
    BOOST_TEST(by_name->read_bytes("/workspace/note.txt").value() == "kept");
    BOOST_TEST(again->purge().has_value());
    const own_workspace late({.ref = first->ref()});
    fails(late->working_dir(), fault::gone);
}

BOOST_AUTO_TEST_CASE(k_8_3_007_a_timeout_is_told_as_itself) {
    const own_workspace workspace;
    const auto ran = workspace->shell("printf partial; sleep 30", {.timeout = 3500ms});
    fails(ran, fault::timed_out);
    BOOST_TEST(ran.error().message == "the command timed out after 3.5 seconds");
    BOOST_TEST(ran.error().out == "partial");
    // Beyond the service's ceiling the ceiling is told.
    const auto longer = workspace->shell("sleep 60", {.timeout = 90s});
    fails(longer, fault::timed_out);
    BOOST_TEST(longer.error().message == "the command reached the sandbox's time limit");
}

BOOST_AUTO_TEST_CASE(k_8_3_008_an_unknown_runtime_is_refused) {
    const own_workspace workspace({.runtime = "perl"});
    const auto answer = workspace->working_dir();
    fails(answer, fault::refused);
    BOOST_TEST(answer.error().status.value() == 400);
}

namespace {

task<bool> cancel_a_command(boost::asio::any_io_executor executor, std::string mark) {
    const auto workspace =
        async_sandboxd_workspace::create(executor, where(), own_workspace::with_token(workspace_options{}))
            .value();
    BOOST_REQUIRE((co_await workspace.working_dir()).has_value());
    boost::asio::cancellation_signal stop;
    bool aborted = false;
    auto done = [&aborted](const std::exception_ptr& why, const outcome<command_result>&) {
        try {
            if (why) {
                std::rethrow_exception(why);
            }
        } catch (const boost::system::system_error& e) {
            aborted = e.code() == boost::asio::error::operation_aborted;
        }
    };
    boost::asio::co_spawn(executor, workspace.shell("touch started; (sleep " + mark + ") & sleep " + mark),
                          boost::asio::bind_cancellation_slot(stop.slot(), std::move(done)));
    boost::asio::steady_timer timer(executor);
    for (int i = 0; i < 3000; ++i) {
        const auto started = co_await workspace.exists("/workspace/started");
        if (started && *started) {
            break;
        }
        timer.expires_after(10ms);
        co_await timer.async_wait(boost::asio::use_awaitable);
    }
    stop.emit(boost::asio::cancellation_type::terminal);
    bool ended = false;
    for (int i = 0; i < 600 && !ended; ++i) {
        // The one that looks is named otherwise: its own command line holds the mark in quotes.
        const auto left = co_await workspace.shell(
            "for f in /proc/[0-9]*/cmdline; do tr '\\0' '\\n' <$f; done 2>/dev/null | "
            "grep -qx " +
            mark.substr(0, 4) + "'" + mark.substr(4) + "'");
        ended = left && left->exit_code == 1;
        timer.expires_after(100ms);
        co_await timer.async_wait(boost::asio::use_awaitable);
    }
    (void)co_await workspace.purge();
    co_return aborted&& ended;
}

} // namespace

BOOST_AUTO_TEST_CASE(k_8_3_009_n_099_a_cancelled_command_is_stopped) {
    boost::asio::io_context context;
    BOOST_TEST(test::get(context, cancel_a_command(context.get_executor(), "98765"), 180s));
}

BOOST_AUTO_TEST_CASE(k_8_3_011_n_104_purging) {
    const own_workspace workspace;
    BOOST_TEST(workspace->shell("echo x > f").value().exit_code == 0);
    const auto directory = root() / workspace->ref()->id;
    BOOST_TEST(std::filesystem::exists(directory / "workspace/f"));
    BOOST_TEST(workspace->purge().has_value());
    BOOST_TEST(!std::filesystem::exists(directory));
    BOOST_TEST(workspace->purge().has_value());
}

BOOST_AUTO_TEST_CASE(k_n_097_files) {
    const own_workspace workspace;
    std::string every;
    for (int i = 0; i < 256; ++i) {
        every += static_cast<char>(i);
    }
    const std::string big(8U << 20U, 'b');
    for (const std::string base : {"/workspace/native", "/tmp/by-shell"}) {
        BOOST_TEST_CONTEXT(base) {
            BOOST_TEST(workspace->write_bytes(base + "/deep/a.bin", every).has_value());
            BOOST_TEST(workspace->read_bytes(base + "/deep/a.bin").value() == every);
            BOOST_TEST(workspace->write_bytes(base + "/deep/a.bin", "").has_value());
            BOOST_TEST(workspace->read_bytes(base + "/deep/a.bin").value().empty());
            BOOST_TEST(workspace->write_bytes(base + "/big", big).has_value());
            BOOST_TEST((workspace->read_bytes(base + "/big").value() == big));
            BOOST_TEST(workspace->exists(base + "/big").value());
            BOOST_TEST(!workspace->exists(base + "/none").value());
            BOOST_TEST(!workspace->exists(base + "/big/below").value());
            const auto row = workspace->stat(base + "/big").value();
            BOOST_TEST(row.name == "big");
            BOOST_TEST(row.path == base + "/big");
            BOOST_TEST(row.size.value() == big.size());
            BOOST_TEST(workspace->stat(base).value().is_dir);
            BOOST_TEST(names(workspace->list_dir(base).value()) == "big deep/ ");
            BOOST_TEST(workspace->list_dir(base).value()[0].path == base + "/big");
            BOOST_TEST(workspace->list_dir(base).value()[0].size.value() == big.size());
            BOOST_TEST(workspace->make_dir(base + "/made/here").has_value());
            BOOST_TEST(workspace->make_dir(base + "/made/here").has_value());
            fails(workspace->make_dir(base + "/big"), fault::exists);
            fails(workspace->make_dir(base + "/big/below"), fault::not_a_directory);
            fails(workspace->read_bytes(base + "/none"), fault::not_found);
            fails(workspace->read_bytes(base + "/deep"), fault::is_a_directory);
            fails(workspace->stat(base + "/none"), fault::not_found);
            fails(workspace->stat(base + "/big/below"), fault::not_a_directory);
            fails(workspace->list_dir(base + "/none"), fault::not_found);
            fails(workspace->list_dir(base + "/big"), fault::not_a_directory);
            fails(workspace->write_bytes(base + "/deep", "x"), fault::is_a_directory);
            fails(workspace->write_bytes(base + "/big/below", "x"), fault::not_a_directory);
            fails(workspace->remove(base + "/none"), fault::not_found);
            BOOST_TEST(workspace->remove(base + "/deep").has_value());
            BOOST_TEST(workspace->remove(base + "/big").has_value());
            BOOST_TEST(names(workspace->list_dir(base).value()) == "made/ ");
            BOOST_TEST(workspace->realpath(base + "/made/../no/where").value() == base + "/no/where");
        }
    }
    fails(workspace->remove("/workspace"), fault::invalid);
    fails(workspace->remove("/"), fault::invalid);
}

BOOST_AUTO_TEST_CASE(k_n_097_links_and_odd_names) {
    const own_workspace workspace;
    BOOST_TEST(
        workspace
            ->shell("mkdir d; echo target > d/t; ln -s d/t link; ln -s loop loop; ln -s d dir; mkfifo fifo; "
                    "ln -s nowhere dangling; printf x > 'a b'; printf y > \"$(printf 'n\\nl')\"; "
                    "printf z > \"$(printf 'bad\\377')\"; chmod 755 d/t")
            .value()
            .exit_code == 0);
    const auto rows = workspace->list_dir("/workspace").value();
    BOOST_TEST(names(rows) == "a b bad\xFF d/ dangling dir/ fifo link loop n\nl ");
    BOOST_TEST(workspace->read_bytes("/workspace/link").value() == "target\n");
    BOOST_TEST(workspace->read_bytes("/workspace/bad\xFF").value() == "z");
    BOOST_TEST(workspace->read_bytes("/workspace/n\nl").value() == "y");
    BOOST_TEST(workspace->write_bytes("/workspace/link", "through\n").has_value());
    BOOST_TEST(workspace->shell("cat d/t; test -L link && test -x d/t").value().out == "through\n");
    BOOST_TEST(workspace->stat("/workspace/link").value().size.value() == 8U);
    BOOST_TEST(workspace->realpath("/workspace/dir/../link").value() == "/workspace/d/t");
    BOOST_TEST(workspace->realpath("/workspace/loop").has_value());
    fails(workspace->read_bytes("/workspace/fifo"), fault::failed);
    fails(workspace->read_bytes("/workspace/dangling"), fault::not_found);
    BOOST_TEST(workspace->remove("/workspace/dir").has_value());
    BOOST_TEST(workspace->exists("/workspace/d/t").value());
    BOOST_TEST(workspace->read_bytes("d/t").value() == "through\n"); // relative: from the working directory
}

BOOST_AUTO_TEST_CASE(k_n_103_a_large_file_goes_by_the_shell) {
    const own_workspace workspace;
    std::string data(12U << 20U, '\0');
    for (std::size_t i = 0; i < data.size(); ++i) {
        data[i] = static_cast<char>(i * 7 % 251);
    }
    BOOST_TEST(workspace->write_bytes("/workspace/large", data).has_value());
    BOOST_TEST((workspace->read_bytes("/workspace/large").value() == data));
    BOOST_TEST(names(workspace->list_dir("/workspace").value()) == "large ");
}

BOOST_AUTO_TEST_CASE(k_n_100_two_with_one_name_end_in_one_session) {
    const auto name = unique("both");
    const own_workspace one({.session_name = name});
    const own_workspace two({.session_name = name});
    std::thread other([&] { (void)two->working_dir(); });
    BOOST_TEST(one->working_dir().has_value());
    other.join();
    BOOST_TEST((one->ref() == two->ref()));
    BOOST_TEST(one->shell("echo here > f").value().exit_code == 0);
    BOOST_TEST(two->run({"cat", "f"}).value().out == "here\n");
}

BOOST_AUTO_TEST_CASE(k_n_097_five_at_once_make_one_environment) {
    const own_workspace workspace;
    std::atomic<int> fine{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 5; ++i) {
        threads.emplace_back([&] { fine += workspace->shell("echo x >> all").has_value() ? 1 : 0; });
    }
    for (auto& one : threads) {
        one.join();
    }
    BOOST_TEST(fine == 5);
    BOOST_TEST(workspace->read_bytes("/workspace/all").value() == "x\nx\nx\nx\nx\n");
}

BOOST_AUTO_TEST_CASE(k_n_070_trees) {
    const auto id = unique("cold");
    std::filesystem::create_directories(root() / id / "workspace/src");
    std::ofstream(root() / id / "workspace/src/a") << "a";
    std::ofstream(root() / id / "workspace/b") << "b";
    const auto archive = workspace_archive::create(where(), {.token = token()}).value();
    const auto tree = archive.tree(id).value();
    BOOST_TEST(names(tree.entries) == "src/ b a ");
    BOOST_TEST(!tree.truncated);
    BOOST_TEST(archive.tree(id, ".", {.max_depth = 1}).value().truncated);
    const auto several = archive.trees({id, "never-there"}).value();
    BOOST_TEST_REQUIRE(several.size() == 2U);
    BOOST_TEST(names(several[0].tree.value().entries) == "src/ b a ");
    BOOST_TEST(several[1].session_id == "never-there");
    BOOST_TEST(several[1].tree.error().status.value() == 404);
    std::filesystem::remove_all(root() / id);
}

BOOST_AUTO_TEST_CASE(k_n_098_all_generations_in_one_session_ours) {
    const own_workspace workspace;
    BOOST_TEST(workspace->write_bytes("/workspace/w", "from the workspace\n").has_value());
    const auto sandbox =
        remote_sandbox::create(where(), {.token = token(), .session_id = workspace->ref()->id, .reuse = true})
            .value();
    BOOST_TEST(sandbox.read("w") == "from the workspace");
    BOOST_TEST(sandbox.write("r", "from the sandbox\n").path.has_value());
    BOOST_TEST(workspace->read_bytes("/workspace/r").value() == "from the sandbox\n");
}

BOOST_AUTO_TEST_SUITE_END()
