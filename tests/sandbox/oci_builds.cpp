// A layer that becomes an image: what is changed in a sandbox is there for others, over the same base.

#include "oci_fixture.hpp"

#include "launcher/image_config.hpp"

#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>

using namespace sandboxd;
using namespace sandboxd::test;
namespace fs = std::filesystem;

namespace {

struct build_fixture : oci_fixture {
    [[nodiscard]] std::vector<std::string> stored() const {
        std::vector<std::string> names;
        for (const auto& one : fs::directory_iterator(options.state_dir + "/images")) {
            const auto name = one.path().filename().string();
            if (name.substr(0, 6) == "built-" || name.substr(0, 5) == ".new-") {
                names.push_back(name);
            }
        }
        return names;
    }

    /// What `line` changes over `image`, as the image `name`.
    std::string build(const std::string& image, const std::string& name, const std::string& line) {
        auto wanted = spec();
        wanted.image = image;
        wanted.keep = keeping::layer;
        const auto box = open(wanted);
        BOOST_TEST(exec(box, line) == "");
        const auto slot = box->handle();
        test::run(context, box->stop(false), std::chrono::seconds(60));
        launcher::image_config config;
        config.env = {{"FROM_IMAGE", name}};
        const auto kept =
            get(client->keep({slot, name, launcher::encode_image_config(config)}, std::chrono::seconds(30)));
        BOOST_REQUIRE_MESSAGE(kept.has_value(), (kept ? "" : kept.error().message));
        return kept->key;
    }

    /// A slot with the layer of a sandbox that has run `line` and is stopped, as that of a sleeping session.
    slot_record keep_layer(const sandbox_spec& wanted, const std::string& line) {
        const auto slot = get(builder->prepare(wanted));
        BOOST_REQUIRE(slot.has_value());
        const auto box = get(builder->build(wanted, *slot));
        BOOST_REQUIRE_MESSAGE(box.has_value(), (box ? "" : box.error().message));
        BOOST_TEST(exec(*box, line) == "");
        test::run(context, (*box)->stop(false), std::chrono::seconds(60));
        return *slot;
    }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(oci_builds, build_fixture, *boost::unit_test::precondition(can_run_sandboxes))

BOOST_AUTO_TEST_CASE(a_layer_becomes_an_image_that_sandboxes_share) {
    make_root(directory + "/tree");
    start_service();
    const auto base = "dir:" + directory + "/tree";
    const auto key = build(base, "first:1",
                           "echo one > /made; perl -e 'chown 7, 8, \"/made\"; chmod 04750, \"/made\"; "
                           "unlink \"/etc/group\"'");
    build("first:1", "second:1", "echo two > /more; perl -e 'unlink \"/made\"'");
    BOOST_TEST(stored().size() == 2U);
    BOOST_TEST(owned().empty()); // the slots are gone
    struct stat status{};
    const auto made = options.state_dir + "/images/" + key + "/rootfs/made";
    BOOST_REQUIRE(::lstat(made.c_str(), &status) == 0);
    BOOST_TEST(status.st_uid == 7U);
    BOOST_TEST(status.st_gid == 8U);
    BOOST_TEST((status.st_mode & 07777) == 04750U);
    auto wanted = spec();
    wanted.image = "first:1";
    const auto one = open(wanted);
    const auto two = open(wanted);
    BOOST_TEST(exec(one, "cat /made; echo mine > /made; test -e /etc/group || echo gone") == "one\ngone\n");
    BOOST_TEST(exec(two, "cat /made; echo $FROM_IMAGE; cat /etc/hostname") == "one\nfirst:1\ntest-session\n");
    wanted.image = "second:1";
    const auto three = open(wanted);
    BOOST_TEST(exec(three, "cat /more; test -e /etc/group -o -e /made || echo gone") == "two\ngone\n");
    BOOST_TEST(fs::exists(directory + "/tree/etc/group"));
    // What is not named any more stays while something stands on it.
    BOOST_REQUIRE(get(client->forget({"first:1"})));
    BOOST_TEST(stored().size() == 2U);
    BOOST_REQUIRE(get(client->forget({"second:1"})));
    BOOST_TEST(stored().size() == 2U);
    close(three);
    BOOST_REQUIRE(get(client->forget({})));
    BOOST_TEST(stored() == std::vector<std::string>{key}, boost::test_tools::per_element());
    close(one);
    close(two);
    BOOST_REQUIRE(get(client->forget({})));
    BOOST_TEST(stored().empty());
}

BOOST_AUTO_TEST_CASE(a_kept_layer_keeps_its_image_whatever_the_name_means_later) {
    make_root(directory + "/tree");
    start_service();
    const auto base = "dir:" + directory + "/tree";
    build(base, "it:1", "echo old > /made");
    auto wanted = spec();
    wanted.image = "it:1";
    wanted.keep = keeping::layer;
    const auto slot = keep_layer(wanted, "echo kept > /mine");
    build(base, "it:1", "echo new > /made");
    BOOST_REQUIRE(get(client->forget({})));
    wanted.keep = keeping::kept;
    const auto box = get(builder->build(wanted, slot));
    BOOST_REQUIRE_MESSAGE(box.has_value(), (box ? "" : box.error().message));
    BOOST_TEST(exec(*box, "cat /mine /made") == "kept\nold\n");
    close(*box);
    auto fresh = spec();
    fresh.image = "it:1";
    const auto other = open(fresh);
    BOOST_TEST(exec(other, "cat /made") == "new\n");
    close(other);
    BOOST_REQUIRE(get(client->forget({"it:1"})));
    BOOST_TEST(stored().empty());
}

BOOST_AUTO_TEST_CASE(a_kept_layer_needs_no_name_for_its_image) {
    make_root(directory + "/tree");
    start_service();
    build("dir:" + directory + "/tree", "localhost:1/it:1", "echo old > /made");
    auto wanted = spec();
    wanted.image = "localhost:1/it:1";
    wanted.keep = keeping::layer;
    const auto slot = keep_layer(wanted, "true");
    BOOST_REQUIRE(get(client->forget({"localhost:1/it:1"})));
    const auto box =
        get(builder->build(wanted, slot)); // as at a wake; the registry of that name is not there
    BOOST_REQUIRE_MESSAGE(box.has_value(), (box ? "" : box.error().message));
    BOOST_TEST(exec(*box, "cat /made") == "old\n");
    close(*box);
}

BOOST_AUTO_TEST_CASE(a_start_waits_while_images_are_taken_away) {
    start_service();
    close(open(spec())); // the host's image is made
    const core::unique_fd lock(
        ::open((options.state_dir + "/images/.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    BOOST_REQUIRE(::flock(lock.get(), LOCK_EX) == 0);
    const auto key = get(client->import({"host", true, ""}, {}, launcher::import_deadline));
    BOOST_REQUIRE(key.has_value());
    launcher::start_sandbox request;
    request.slot = "waits";
    request.hostname = "waits";
    request.image = key->key;
    request.work_dir = "/";
    const auto refused = get(client->start(request, std::chrono::seconds(1)));
    BOOST_REQUIRE(!refused.has_value());
    BOOST_TEST(refused.error().message == "images are being removed");
    BOOST_REQUIRE(::flock(lock.get(), LOCK_UN) == 0);
    const auto started = get(client->start(request, std::chrono::seconds(60)));
    BOOST_TEST(started.has_value(), (started ? "" : started.error().message));
    request.slot = "gone";
    request.image = "sha256-aa";
    const auto gone = get(client->start(request, std::chrono::seconds(60)));
    BOOST_REQUIRE(!gone.has_value());
    BOOST_TEST((gone.error().code == errc::not_found)); // who asks looks for it again
}

BOOST_AUTO_TEST_CASE(what_is_no_slot_or_no_configuration_makes_no_image) {
    start_service();
    BOOST_TEST(!get(client->keep({"none", "x:1", "{}"}, std::chrono::seconds(5))).has_value());
    BOOST_TEST(stored().empty());
}

BOOST_AUTO_TEST_SUITE_END()
