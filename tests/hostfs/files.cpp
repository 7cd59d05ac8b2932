#include "fixture.hpp"

#include "hostfs/blocking/content.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <atomic>
#include <set>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

namespace hostfs_tests {

namespace data = boost::unit_test::data;

BOOST_FIXTURE_TEST_SUITE(hostfs_files, workspace_fixture)

BOOST_AUTO_TEST_CASE(this_kernel_has_openat2) {
    BOOST_TEST((blocking::best_walk() == walk_kind::kernel));
}

BOOST_AUTO_TEST_CASE(a_workspace_that_is_not_there) {
    for (const char* id : {"t", "", ".", "..", "s/workspace", "../s"}) {
        const auto opened = blocking::workspace::open(root, id);
        BOOST_REQUIRE_MESSAGE(!opened, id);
        BOOST_TEST(opened.error().value() == ENOENT);
    }
    fs::create_directory(root + "/linked");
    fs::create_directory_symlink(host(), root + "/linked/workspace");
    BOOST_TEST(!blocking::workspace::open(root, "linked"));
}

BOOST_DATA_TEST_CASE(what_is_written_is_read_back, data::make(both_walks), how) {
    const auto in = open(how);
    std::string bytes;
    for (int i = 0; i < 256; ++i) {
        bytes += static_cast<char>(i);
    }
    ::umask(022);
    BOOST_TEST(why(blocking::write(in, path("/workspace/a b/c/\xC3\xBC.bin"), bytes, soon())) == "done");
    BOOST_TEST(blocking::read(in, path("/workspace/a b/c/\xC3\xBC.bin"), 256, soon()).value() == bytes);
    BOOST_TEST(why(blocking::read(in, path("/workspace/a b/c/\xC3\xBC.bin"), 255, soon())) == "ask");
    BOOST_TEST(blocking::read(in, path("/workspace/a b/c/\xC3\xBC.bin"), 255, soon())
                   .error()
                   .message.find("limit") != std::string::npos);
    BOOST_TEST(mode_of(work("a b/c/\xC3\xBC.bin")) == 0644U);
    BOOST_TEST(mode_of(work("a b/c")) == 0755U);
    BOOST_TEST(why(blocking::write(in, path("/workspace/empty"), "", soon())) == "done");
    BOOST_TEST(blocking::read(in, path("/workspace/empty/"), 0, soon()).value().empty());
}

BOOST_DATA_TEST_CASE(a_large_file_is_whole, data::make(both_walks), how) {
    const auto in = open(how);
    std::string bytes(5 * 1024 * 1024 + 7, '\0');
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<char>(i * 2654435761U >> 24);
    }
    BOOST_TEST(why(blocking::write(in, path("/workspace/big"), bytes, soon())) == "done");
    BOOST_TEST((blocking::read(in, path("/workspace/big"), bytes.size(), soon()).value() == bytes));
}

BOOST_DATA_TEST_CASE(a_write_keeps_the_mode_and_leaves_hard_links_alone, data::make(both_walks), how) {
    const auto in = open(how);
    put(work("script"), "old");
    fs::create_hard_link(work("script"), work("other"));
    BOOST_REQUIRE(::chmod(work("script").c_str(), 04755) == 0);
    BOOST_TEST(why(blocking::write(in, path("/workspace/script"), "new", soon())) == "done");
    BOOST_TEST(get(work("script")) == "new");
    BOOST_TEST(mode_of(work("script")) == 0755U); // no foreign set-user-id program of the service's
    BOOST_TEST(get(work("other")) == "old");
    BOOST_TEST(std::distance(fs::directory_iterator(work()), fs::directory_iterator()) == 2);
}

BOOST_DATA_TEST_CASE(a_write_that_fails_leaves_everything_as_it_was, data::make(both_walks), how) {
    const auto in = open(how);
    put(work("f"), "old");
    const auto late = std::chrono::steady_clock::now() - std::chrono::seconds(1);
    BOOST_TEST(why(blocking::write(in, path("/workspace/f"), "new", late)) == "timeout");
    BOOST_TEST(why(blocking::write(in, path("/workspace/f"), "", late)) == "timeout");
    BOOST_TEST(get(work("f")) == "old");
    BOOST_TEST(std::distance(fs::directory_iterator(work()), fs::directory_iterator()) == 1);
}

BOOST_DATA_TEST_CASE(the_lengths_of_names, data::make(both_walks), how) {
    const auto in = open(how);
    const auto named = [](std::size_t length) { return path("/workspace/" + std::string(length, 'n')); };
    BOOST_TEST(why(blocking::write(in, named(237), "x", soon())) == "done");
    BOOST_TEST(why(blocking::write(in, named(238), "x", soon())) == "ask");
    BOOST_TEST(why(blocking::write(in, named(255), "x", soon())) == "ask");
    BOOST_TEST(why(blocking::write(in, named(256), "x", soon())) == "ask");
    BOOST_TEST(why(blocking::read(in, named(256), 1, soon())) == "ask");
    BOOST_TEST(why(blocking::stat(in, named(256))) == "ask");
    BOOST_TEST(why(blocking::list(in, named(256), soon())) == "ask");
    BOOST_TEST(why(blocking::realpath(in, named(256))) == "ask");
    BOOST_TEST(why(blocking::mkdir(in, named(256), soon())) == "ask");
    BOOST_TEST(why(blocking::remove(in, named(256), soon())) == "ask");
    BOOST_TEST(why(blocking::mkdir(in, named(255), soon())) == "done");
}

BOOST_DATA_TEST_CASE(a_path_longer_than_the_kernel_takes, data::make(both_walks), how) {
    const auto in = open(how);
    std::string deep = "/workspace";
    for (int i = 0; i < 50; ++i) {
        deep += "/" + std::string(200, 'd');
    }
    BOOST_TEST(why(blocking::stat(in, path(deep))) == "FileNotFoundError");
    BOOST_TEST(why(blocking::write(in, path(deep + "/f"), "deep", soon())) == "done");
    BOOST_TEST(blocking::read(in, path(deep + "/f"), 10, soon()).value() == "deep");
    BOOST_TEST(blocking::list(in, path(deep), soon()).value().size() == 1U);
    BOOST_TEST(why(blocking::remove(in, path("/workspace/" + std::string(200, 'd')), soon())) == "done");
    BOOST_TEST(fs::is_empty(work()));
}

BOOST_DATA_TEST_CASE(directories_and_what_is_missing, data::make(both_walks), how) {
    const auto in = open(how);
    fs::create_directory(work("d"));
    put(work("f"), "x");
    for (const char* directory : {"/workspace", "/workspace/", "/workspace/d"}) {
        BOOST_TEST(why(blocking::read(in, path(directory), 10, soon())) == "IsADirectoryError");
        BOOST_TEST(why(blocking::write(in, path(directory), "x", soon())) == "IsADirectoryError");
        BOOST_TEST(why(blocking::mkdir(in, path(directory), soon())) == "done");
    }
    BOOST_TEST(why(blocking::read(in, path("/workspace/no"), 10, soon())) == "FileNotFoundError");
    BOOST_TEST(why(blocking::stat(in, path("/workspace/no/f"))) == "FileNotFoundError");
    BOOST_TEST(why(blocking::list(in, path("/workspace/no"), soon())) == "FileNotFoundError");
    BOOST_TEST(why(blocking::remove(in, path("/workspace/no"), soon())) == "FileNotFoundError");
    BOOST_TEST(why(blocking::remove(in, path("/workspace/no/f"), soon())) == "FileNotFoundError");
    BOOST_TEST(why(blocking::read(in, path("/workspace/f/g"), 10, soon())) == "NotADirectoryError");
    BOOST_TEST(why(blocking::write(in, path("/workspace/f/g"), "x", soon())) == "NotADirectoryError");
    BOOST_TEST(why(blocking::write(in, path("/workspace/f/g/h"), "x", soon())) == "NotADirectoryError");
    BOOST_TEST(why(blocking::stat(in, path("/workspace/f/g"))) == "NotADirectoryError");
    BOOST_TEST(why(blocking::list(in, path("/workspace/f"), soon())) == "NotADirectoryError");
    BOOST_TEST(why(blocking::mkdir(in, path("/workspace/f"), soon())) == "FileExistsError");
    BOOST_TEST(why(blocking::mkdir(in, path("/workspace/f/g"), soon())) == "NotADirectoryError");
    BOOST_TEST(why(blocking::remove(in, path("/workspace/f/g"), soon())) == "NotADirectoryError");
    BOOST_TEST(why(blocking::remove(in, path("/workspace"), soon())) == "ValueError");
    BOOST_TEST(blocking::remove(in, path("/workspace/"), soon()).error().message.find("working directory") !=
               std::string::npos);
    BOOST_TEST(get(work("f")) == "x");
    BOOST_TEST(why(blocking::mkdir(in, path("/workspace/d/e/f"), soon())) == "done");
    BOOST_TEST(fs::is_directory(work("d/e/f")));
}

BOOST_DATA_TEST_CASE(stat_and_list_show_rows, data::make(both_walks), how) {
    const auto in = open(how);
    fs::create_directory(work("d"));
    for (const char* name : {"d/b", "d/B", "d/.h", "d/\xC3\xA9", "d/a b"}) {
        put(work(name), "12345");
    }
    fs::create_directory(work("d/c"));
    const auto file = blocking::stat(in, path("/workspace//d/b/")).value();
    BOOST_TEST(file.name == "b");
    BOOST_TEST(file.path == "/workspace//d/b/");
    BOOST_TEST(!file.is_dir);
    BOOST_TEST(file.size.value() == 5U);
    const auto top = blocking::stat(in, path("/workspace/")).value();
    BOOST_TEST(top.name == "workspace");
    BOOST_TEST(top.is_dir);
    BOOST_TEST(!top.size.has_value());
    std::string listed;
    for (const auto& one : blocking::list(in, path("/workspace/d/"), soon()).value()) {
        listed += one.path + (one.is_dir ? "/" : "=" + std::to_string(one.size.value())) + "\n";
    }
    BOOST_TEST(listed == "/workspace/d/.h=5\n/workspace/d/B=5\n/workspace/d/a b=5\n/workspace/d/b=5\n"
                         "/workspace/d/c/\n/workspace/d/\xC3\xA9=5\n");
    BOOST_TEST(blocking::list(in, path("/workspace/d/c"), soon()).value().empty());
}

BOOST_DATA_TEST_CASE(no_link_is_followed, data::make(both_walks), how) {
    const auto in = open(how);
    fs::create_directory(work("d"));
    put(work("d/f"), "x");
    fs::create_directory_symlink("d", work("inside"));
    fs::create_directory_symlink(host(), work("outside"));
    fs::create_symlink(host() + "/secret", work("file"));
    fs::create_symlink("nowhere", work("dangling"));
    fs::create_symlink("loop", work("loop"));
    for (const std::string name : {"inside", "outside", "file", "dangling", "loop", "inside/f",
                                   "outside/secret", "outside/new", "dangling/f", "loop/f", "d/../file"}) {
        if (name.find("..") != std::string::npos) {
            continue; // refused as text
        }
        const auto at = path("/workspace/" + name);
        BOOST_TEST_CONTEXT(name) {
            BOOST_TEST(why(blocking::read(in, at, 10, soon())) == "ask");
            BOOST_TEST(why(blocking::write(in, at, "x", soon())) == "ask");
            BOOST_TEST(why(blocking::stat(in, at)) == "ask");
            BOOST_TEST(why(blocking::list(in, at, soon())) == "ask");
            BOOST_TEST(why(blocking::realpath(in, at)) == "ask");
            BOOST_TEST(why(blocking::mkdir(in, at, soon())) == "ask");
        }
    }
    BOOST_TEST(why(blocking::list(in, path("/workspace"), soon())) == "ask");
    BOOST_TEST(why(blocking::remove(in, path("/workspace/outside/secret"), soon())) == "ask");
    BOOST_TEST(why(blocking::remove(in, path("/workspace/outside"), soon())) == "done");
    BOOST_TEST(why(blocking::remove(in, path("/workspace/dangling"), soon())) == "done");
    BOOST_TEST(!fs::is_symlink(work("outside")));
    BOOST_TEST(get(host() + "/secret") == "host");
    BOOST_TEST(std::distance(fs::directory_iterator(host()), fs::directory_iterator()) == 1);
}

BOOST_DATA_TEST_CASE(fifos_sockets_and_devices_are_not_opened, data::make(both_walks), how) {
    const auto in = open(how);
    BOOST_REQUIRE(::mkfifo(work("fifo").c_str(), 0600) == 0);
    const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string at = work("sock");
    BOOST_REQUIRE(at.size() < sizeof address.sun_path);
    at.copy(address.sun_path, at.size());
    BOOST_REQUIRE(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    ::close(socket);
    for (const char* name : {"/workspace/fifo", "/workspace/sock"}) {
        BOOST_TEST(why(blocking::read(in, path(name), 10, soon())) == "ask");
        BOOST_TEST(why(blocking::write(in, path(name), "x", soon())) == "ask");
        BOOST_TEST(why(blocking::stat(in, path(name))) == "ask");
        BOOST_TEST(why(blocking::mkdir(in, path(name), soon())) == "FileExistsError");
        BOOST_TEST(why(blocking::list(in, path(name), soon())) == "NotADirectoryError");
        BOOST_TEST(blocking::realpath(in, path(name)).value() == name);
    }
    BOOST_TEST(why(blocking::list(in, path("/workspace"), soon())) == "ask");
    BOOST_TEST(why(blocking::remove(in, path("/workspace/fifo"), soon())) == "done");
    BOOST_TEST(why(blocking::remove(in, path("/workspace/sock"), soon())) == "done");
    BOOST_TEST(fs::is_empty(work()));
    if (::geteuid() == 0 && ::mknod(work("null").c_str(), S_IFCHR | 0666, 0x103) == 0) {
        BOOST_TEST(why(blocking::read(in, path("/workspace/null"), 10, soon())) == "ask");
        BOOST_TEST(why(blocking::write(in, path("/workspace/null"), "x", soon())) == "ask");
    }
}

BOOST_DATA_TEST_CASE(realpath_keeps_what_is_missing, data::make(both_walks), how) {
    const auto in = open(how);
    put(work("f"), "x");
    BOOST_TEST(blocking::realpath(in, path("/workspace//f/")).value() == "/workspace/f");
    BOOST_TEST(blocking::realpath(in, path("/workspace/")).value() == "/workspace");
    BOOST_TEST(blocking::realpath(in, path("/workspace/no/such//x")).value() == "/workspace/no/such/x");
    BOOST_TEST(blocking::realpath(in, path("/workspace/f/below")).value() == "/workspace/f/below");
}

BOOST_DATA_TEST_CASE(names_of_any_bytes, data::make(both_walks), how) {
    const auto in = open(how);
    fs::create_directory(work("d"));
    put(work("d/\xff"), "x");
    BOOST_TEST(why(blocking::list(in, path("/workspace/d"), soon())) == "ask");
    for (const std::string name : {"-rf", "a\nb", " lead", "trail ", "*?[x]", "..."}) {
        BOOST_TEST(why(blocking::write(in, path("/workspace/e/" + name), name, soon())) == "done");
        BOOST_TEST(blocking::read(in, path("/workspace/e/" + name), 99, soon()).value() == name);
    }
    BOOST_TEST(blocking::list(in, path("/workspace/e"), soon()).value().size() == 6U);
}

BOOST_DATA_TEST_CASE(directories_are_not_made_after_the_time_limit, data::make(both_walks), how) {
    const auto in = open(how);
    const auto late = std::chrono::steady_clock::now();
    BOOST_TEST(why(blocking::mkdir(in, path("/workspace/a/b/c"), late)) == "timeout");
    BOOST_TEST(why(blocking::write(in, path("/workspace/a/b/c"), "x", late)) == "timeout");
    BOOST_TEST(fs::is_empty(work()));
}

BOOST_DATA_TEST_CASE(a_write_whose_directory_is_removed_meanwhile_makes_it_again, data::make(both_walks),
                     how) {
    const auto in = open(how);
    std::atomic<bool> stop{false};
    std::atomic<int> removed{0};
    std::jthread remover([&] {
        while (!stop) {
            removed += why(blocking::remove(in, path("/workspace/d"), soon())) == "done" ? 1 : 0;
        }
    });
    std::set<std::string> written;
    std::set<std::string> made;
    for (int round = 0; round < 1000 || (removed < 1000 && round < 1'000'000); ++round) {
        written.insert(why(blocking::write(in, path("/workspace/d/e/f"), "x", soon())));
        made.insert(why(blocking::mkdir(in, path("/workspace/d/e/g"), soon())));
    }
    stop = true;
    BOOST_TEST(written == std::set<std::string>{"done"}, boost::test_tools::per_element());
    BOOST_TEST(made == std::set<std::string>{"done"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_workspace_that_is_gone_meanwhile_takes_nothing) {
    const auto in = open(walk_kind::kernel);
    fs::remove_all(work());
    BOOST_TEST(why(blocking::write(in, path("/workspace/d/f"), "x", soon())) == "FileNotFoundError");
    BOOST_TEST(why(blocking::write(in, path("/workspace/f"), "x", soon())) == "FileNotFoundError");
    BOOST_TEST(why(blocking::mkdir(in, path("/workspace/d"), soon())) == "FileNotFoundError");
}

BOOST_AUTO_TEST_CASE(a_directory_whose_paths_are_too_long_together_is_left_to_the_sandbox) {
    const auto in = open(walk_kind::kernel);
    const std::size_t row = std::string_view("/workspace/").size() + 3'764 + 1 + 2 * 6;
    const int most = static_cast<int>(blocking::most_listed_bytes / row);
    const auto deep = path("/workspace/" + deep_directory(most));
    BOOST_TEST(blocking::list(in, deep, soon()).value().size() == static_cast<std::size_t>(most));
    put(work(deep.relative) + "/200000", "");
    BOOST_TEST(why(blocking::list(in, deep, soon())) == "ask");
}

BOOST_DATA_TEST_CASE(what_the_service_may_not_do_is_left_to_the_sandbox, data::make(both_walks), how) {
    if (::geteuid() != 0) {
        return; // root lowers its rights here; others have none to give up
    }
    const auto in = open(how);
    fs::create_directory(work("closed"));
    put(work("closed/f"), "x");
    put(work("secret"), "x");
    BOOST_REQUIRE(::chmod(work("closed").c_str(), 0700) == 0);
    BOOST_REQUIRE(::chmod(work("secret").c_str(), 0600) == 0);
    const as_nobody lowered;
    BOOST_TEST(why(blocking::read(in, path("/workspace/secret"), 10, soon())) == "ask");
    BOOST_TEST(why(blocking::read(in, path("/workspace/closed/f"), 10, soon())) == "ask");
    BOOST_TEST(why(blocking::list(in, path("/workspace/closed"), soon())) == "ask");
    BOOST_TEST(why(blocking::write(in, path("/workspace/new"), "x", soon())) == "ask");
    BOOST_TEST(why(blocking::mkdir(in, path("/workspace/new"), soon())) == "ask");
    BOOST_TEST(why(blocking::remove(in, path("/workspace/secret"), soon())) == "ask");
    BOOST_TEST(why(blocking::remove(in, path("/workspace/closed"), soon())) == "ask");
}

BOOST_DATA_TEST_CASE(a_file_that_grows_past_the_limit_while_it_is_read, data::make(both_walks), how) {
    const auto in = open(how);
    put(work("f"), "1234");
    const auto found = in.find("f");
    put(work("f"), "123456");
    BOOST_TEST(blocking::read_content(*found, 5, soon()).error().value() == EFBIG);
    BOOST_TEST(blocking::read_content(*found, 6, soon()).value() == "123456");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace hostfs_tests
