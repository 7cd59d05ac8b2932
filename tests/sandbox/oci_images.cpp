// Images on disk: a directory, an OCI layout, a docker archive, with what they say about user, directory,
// variables.

#include "oci_fixture.hpp"

#include "launcher/blocking/child.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>

using namespace sandboxd;
using namespace sandboxd::test;
namespace fs = std::filesystem;

namespace {

struct image_fixture : oci_fixture {
    void tool(std::vector<std::string> argv) const {
        launcher::blocking::child_program program;
        program.argv = std::move(argv);
        program.env = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"HOME", directory}};
        program.directory = directory;
        std::string said;
        const auto line = [&](std::string_view text) { said += std::string(text) + "\n"; };
        const auto end = launcher::blocking::run_child_lines(
            program, std::chrono::steady_clock::now() + std::chrono::seconds(60), line);
        BOOST_REQUIRE_MESSAGE((end && end->exit_code == 0), said);
    }

    /// A layout "a layout" with the tag `one`.
    void make_layout() const {
        make_root(directory + "/tree");
        tool({"umoci", "init", "--layout", "layout"});
        tool({"umoci", "new", "--image", "layout:one"});
        tool({"umoci", "insert", "--rootless", "--image", "layout:one", "tree", "/"});
        tool({"umoci", "config", "--image", "layout:one", "--config.env", "FROM_IMAGE=yes", "--config.env",
              "OVER=image", "--config.user", "web", "--config.workingdir", "/srv/web", "--config.entrypoint",
              "/never"});
    }

    void check(const std::string& image) {
        auto wanted = spec();
        wanted.image = image;
        wanted.work_dir.clear(); // the image's own
        wanted.env = {{"OVER", "spec"}};
        const auto box = open(wanted);
        BOOST_TEST(exec(box, "pwd; echo $FROM_IMAGE $OVER $HOME") == "/srv/web\nyes spec /srv/web\n");
        BOOST_TEST(
            exec(box, "cat /proc/1/cmdline | tr '\\0' '|'").find("|--entrypoint|/never|sleep|infinity|") !=
            std::string::npos);
        close(box);
    }
};

task<void> fetch_of(std::shared_ptr<launcher::client> from, std::string reference,
                    std::shared_ptr<bool> begun) {
    launcher::import_image wanted;
    wanted.reference = std::move(reference);
    launcher::progress_line tell = [begun](const std::string&) { *begun = true; };
    static_cast<void>(co_await from->import(std::move(wanted), std::move(tell), launcher::import_deadline));
}

/// Runs the context until `condition` holds.
void run_until(boost::asio::io_context& context, const std::function<bool()>& condition) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition()) {
        BOOST_REQUIRE((std::chrono::steady_clock::now() < limit));
        context.restart();
        context.run_for(std::chrono::milliseconds(20));
    }
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(oci_images, image_fixture, *boost::unit_test::precondition(can_run_sandboxes))

BOOST_AUTO_TEST_CASE(a_directory_is_shared_and_never_written) {
    make_root(directory + "/tree");
    start_service();
    auto wanted = spec();
    wanted.image = "dir:" + directory + "/tree";
    const auto one = open(wanted);
    const auto two = open(wanted);
    BOOST_TEST(exec(one, "echo mine > /etc/mine; echo x >> /etc/passwd; id -u; cat /etc/mine") ==
               "0\nmine\n");
    BOOST_TEST(exec(two, "cat /etc/mine").find("No such file") != std::string::npos);
    BOOST_TEST(!fs::exists(directory + "/tree/etc/mine"));
    BOOST_TEST(!fs::exists(directory + "/tree/dev"));
    BOOST_TEST(exec(two, "cat /etc/hostname; read line < /etc/hosts; echo $line") ==
               "test-session\n127.0.0.1 localhost\n");
    close(one);
    close(two);
}

BOOST_AUTO_TEST_CASE(a_directory_that_is_none_is_told_as_the_images) {
    start_service();
    auto wanted = spec();
    wanted.image = "dir:" + directory + "/nowhere";
    const auto missing = try_open(wanted);
    BOOST_REQUIRE(!missing);
    BOOST_TEST(missing.error().message ==
               "the image's directory " + directory + "/nowhere: No such file or directory");
    std::ofstream(directory + "/file") << "x";
    wanted.image = "dir:" + directory + "/file";
    const auto file = try_open(wanted);
    BOOST_REQUIRE(!file);
    BOOST_TEST(file.error().message == "the image's directory " + directory + "/file: Not a directory");
    // Who makes images ready before is told too.
    const auto ready = get(client->import({wanted.image, false, ""}, {}, launcher::import_deadline));
    BOOST_REQUIRE(!ready);
    BOOST_TEST((ready.error().code == errc::start_failed));
    BOOST_TEST(ready.error().message == file.error().message);
}

BOOST_AUTO_TEST_CASE(accounts_that_would_hold_the_runtime_are_refused_at_once) {
    make_root(directory + "/tree");
    start_service();
    auto wanted = spec();
    wanted.image = "dir:" + directory + "/tree";
    const auto passwd = directory + "/tree/etc/passwd";
    const auto group = directory + "/tree/etc/group";
    const auto refusal = [&] {
        const auto began = std::chrono::steady_clock::now();
        const auto refused = try_open(wanted);
        BOOST_TEST((std::chrono::steady_clock::now() - began < std::chrono::seconds(20))); // not the deadline
        BOOST_REQUIRE(!refused);
        return refused.error().message;
    };
    fs::remove(passwd);
    BOOST_REQUIRE(::mkfifo(passwd.c_str(), 0666) == 0);
    BOOST_TEST(refusal() == "the image's /etc/passwd is no file");
    fs::remove(passwd);
    fs::create_symlink("/dev/tty", passwd); // not there before the runtime makes it
    BOOST_TEST(refusal() == "the image's /etc/passwd is no file");
    fs::remove(passwd);
    fs::remove(group);
    fs::create_directory(group);
    BOOST_TEST(refusal() == "the image's /etc/group is no file");
    fs::remove(group);
    const auto box = open(wanted); // none at all is fine
    BOOST_TEST(exec(box, "id -u") == "0\n");
    close(box);
}

BOOST_AUTO_TEST_CASE(an_oci_layout_is_unpacked_once_and_its_configuration_honoured) {
    make_layout();
    fs::create_directory(directory + "/a:b c");
    fs::rename(directory + "/layout", directory + "/a:b c/layout");
    start_service();
    check("oci:" + directory + "/a:b c/layout:one");
    check("oci:" + directory + "/a:b c/layout");
    std::size_t images = 0;
    for (const auto& one : fs::directory_iterator(options.state_dir + "/images")) {
        images += one.path().filename().string().substr(0, 7) == "sha256-" ? 1 : 0;
        BOOST_TEST(one.path().filename().string().substr(0, 5) != ".new-");
        BOOST_TEST((one.path().filename() == ".lock-names" || // one for all names, and stays
                    one.path().filename().string().substr(0, 6) != ".lock-"));
    }
    BOOST_TEST(images == 1U);
    auto wanted = spec();
    wanted.image = "oci:" + directory + "/a:b c/layout:two";
    const auto failed = try_open(wanted);
    BOOST_REQUIRE(!failed.has_value());
    BOOST_TEST(failed.error().message ==
               "the image '" + wanted.image + "': the layout has no image with the tag 'two'; it has: one");
}

BOOST_AUTO_TEST_CASE(a_docker_archive_is_converted_and_unpacked) {
    make_layout();
    tool({"skopeo", "copy", "--insecure-policy", "oci:layout:one", "docker-archive:saved.tar:name:tag"});
    fs::rename(directory + "/saved.tar", directory + "/saved: it.tar");
    start_service();
    check("docker-archive:" + directory + "/saved: it.tar");
    const auto key = get(client->import({"docker-archive:" + directory + "/saved: it.tar", true, ""}, {},
                                        launcher::import_deadline));
    BOOST_REQUIRE(key.has_value());
    BOOST_TEST(key->key.substr(0, 7) == "sha256-");
    std::ofstream(directory + "/junk.tar") << "junk";
    auto wanted = spec();
    wanted.image = "docker-archive:" + directory + "/junk.tar";
    const auto failed = try_open(wanted);
    BOOST_REQUIRE(!failed.has_value());
    BOOST_TEST(failed.error().message.starts_with("the image '" + wanted.image + "': skopeo failed: "),
               failed.error().message);
}

BOOST_AUTO_TEST_CASE(a_fetch_that_nobody_waits_for_any_more_ends_and_leaves_nothing) {
    namespace asio = boost::asio;
    asio::io_context other;
    // A registry that takes connections and never says a word.
    const asio::ip::tcp::acceptor silent(other, {asio::ip::make_address("127.0.0.1"), 0});
    const auto name = "127.0.0.1:" + std::to_string(silent.local_endpoint().port()) + "/box:1";
    start_service();
    const auto begun = std::make_shared<bool>(false);
    const auto ended = std::make_shared<bool>(false);
    asio::cancellation_signal stop;
    asio::co_spawn(context, fetch_of(client, name, begun),
                   asio::bind_cancellation_slot(stop.slot(), [ended](std::exception_ptr) { *ended = true; }));
    run_until(context, [&] { return *begun; });
    stop.emit(asio::cancellation_type::terminal);
    run_until(context, [&] { return *ended; });
    // The launcher goes on: no worker of that fetch, nothing of it on the disk, no uids kept for it.
    run_until(context, [&] {
        const auto images = fs::directory_iterator(options.state_dir + "/images");
        const auto claims = fs::directory_iterator(options.run_dir + "/uids");
        const auto ours = [&](const fs::directory_entry& one) {
            return read_text(one.path()).find(options.service_uuid) != std::string::npos;
        };
        return std::none_of(begin(images), end(images),
                            [](const fs::directory_entry& one) {
                                return one.path().filename().string().substr(0, 5) == ".new-";
                            }) &&
               std::none_of(begin(claims), end(claims), ours);
    });
    BOOST_TEST(get(client->images()).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
