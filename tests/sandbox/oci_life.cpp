// Life and death of real sandboxes: stop, death, adoption, crashes; nothing is left behind (the fixture
// checks).

#include "oci_fixture.hpp"

#include "core/event.hpp"
#include "core/gate.hpp"
#include "core/spawn.hpp"
#include "launcher/cgroups.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace sandboxd;
using namespace sandboxd::test;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

task<bool> wait_for(std::shared_ptr<core::shared_event> one) {
    co_return co_await one->wait_for(20s);
}

launcher::start_sandbox request_for(const std::string& slot, const std::string& image) {
    launcher::start_sandbox request;
    request.slot = slot;
    request.hostname = "box";
    request.image = image;
    request.work_dir = "/workspace";
    return request;
}

task<void> start_and_drop(std::shared_ptr<launcher::client> client, launcher::start_sandbox request) {
    static_cast<void>(co_await client->start(std::move(request), 30s));
}

task<void> import_and_drop(std::shared_ptr<launcher::client> client, std::string reference) {
    launcher::import_image request;
    request.reference = std::move(reference);
    static_cast<void>(co_await client->import(std::move(request), {}, launcher::import_deadline));
}

task<void> open_into(std::shared_ptr<sandbox_builder> builder, sandbox_spec spec,
                     std::vector<std::shared_ptr<sandbox>>& boxes) {
    const auto slot = co_await builder->prepare(spec);
    if (slot) {
        auto made = co_await builder->build(std::move(spec), *slot);
        if (made) {
            boxes.push_back(std::move(*made));
        }
    }
}

/// Hands everything on and counts the imports.
class counting_client final : public launcher::client {
public:
    explicit counting_client(std::shared_ptr<launcher::client> real) : real_(std::move(real)) {}
    std::shared_ptr<core::shared_event> lost() const override { return real_->lost(); }

    task<result<launcher::live_sandbox>> start(launcher::start_sandbox request,
                                               std::chrono::milliseconds deadline) override {
        return real_->start(std::move(request), deadline);
    }
    task<result<launcher::live_sandbox>> attach(std::string slot) override {
        return real_->attach(std::move(slot));
    }
    task<result<void>> remove(std::string slot) override { return real_->remove(std::move(slot)); }
    task<result<void>> stop(std::string slot) override { return real_->stop(std::move(slot)); }
    task<result<std::vector<std::string>>> list() override { return real_->list(); }
    task<result<launcher::image_info>> import(launcher::import_image request, launcher::progress_line tell,
                                              std::chrono::milliseconds deadline) override {
        ++imports;
        return real_->import(std::move(request), std::move(tell), deadline);
    }
    task<result<launcher::image_info>> keep(launcher::keep_image request,
                                            std::chrono::milliseconds deadline) override {
        return real_->keep(std::move(request), deadline);
    }
    task<result<std::vector<std::string>>> images() override { return real_->images(); }
    task<result<void>> forget(std::vector<std::string> references) override {
        return real_->forget(std::move(references));
    }
    task<result<launcher::host_features>> probe() override { return real_->probe(); }
    task<void> close() override { return real_->close(); }

    int imports = 0;

private:
    std::shared_ptr<launcher::client> real_;
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(oci_life, oci_fixture, *boost::unit_test::precondition(can_run_sandboxes))

BOOST_AUTO_TEST_CASE(the_host_keeps_no_mount_and_no_descriptor) {
    start_service();
    close(open(spec())); // whatever is made once is made
    const auto mounts = count_mounts();
    const auto descriptors = count_descriptors();
    {
        const auto box = open(spec());
        BOOST_TEST(count_mounts() == mounts);
        close(box);
    }
    for (int round = 0; round < 5; ++round) {
        close(open(spec()));
    }
    context.restart();
    context.poll();
    BOOST_TEST(count_mounts() == mounts);
    BOOST_TEST(count_descriptors() == descriptors);
    BOOST_TEST(owned().empty());
}

BOOST_AUTO_TEST_CASE(a_death_is_noticed_and_told_once) {
    start_service();
    const auto box = open(spec());
    auto died = std::make_shared<core::shared_event>();
    int told = 0;
    box->on_death([&told, died] {
        ++told;
        died->set();
    });
    BOOST_TEST(box->alive());
    BOOST_TEST(::kill(pid_of(*this, box), SIGKILL) == 0);
    BOOST_TEST(get(wait_for(died)));
    BOOST_TEST(!box->alive());
    BOOST_TEST(told == 1);
    exec_request late;
    late.command = "true";
    BOOST_TEST((get(box->exec(late)).error().code == errc::gone));
    bool at_once = false;
    box->on_death([&at_once] { at_once = true; });
    BOOST_TEST(at_once);
    close(box);
    close(box); // idempotent
    BOOST_TEST(owned().empty());
}

BOOST_AUTO_TEST_CASE(a_restarted_service_finds_its_sandboxes) {
    start_service();
    auto box = open(spec());
    BOOST_TEST(exec(box, "echo kept > /etc/kept; (sleep 1000 > /dev/null 2>&1 &)") == "");
    const auto kept = box->handle();
    auto dead = open(spec());
    const auto lost = dead->handle();
    ::kill(pid_of(*this, dead), SIGKILL);
    box.reset();
    dead.reset();
    stop_service();
    start_service();
    const auto slots = owned();
    BOOST_TEST(slots.size() == 2U);
    const auto adopted = get(builder->adopt({kept, "oci", kept}));
    BOOST_REQUIRE(adopted.has_value());
    BOOST_TEST(exec(*adopted, "cat /etc/kept; pgrep -c sleep") == "kept\n1\n");
    const auto gone = get(builder->adopt({lost, "oci", lost}));
    BOOST_REQUIRE(!gone.has_value());
    BOOST_TEST((gone.error().code == errc::gone));
    const auto never = get(builder->adopt({"never", "oci", "never"}));
    BOOST_TEST((never.error().code == errc::gone));
    BOOST_TEST(get(builder->remove({"never", "oci", "never"})).has_value());
    close(*adopted);
}

BOOST_AUTO_TEST_CASE(an_agent_that_does_not_serve_is_no_sandbox) {
    options.agent_arguments = {"-e", "print STDERR \"first\\nno luck\\n\"; exit 3", "--"};
    start_service();
    for (const char* runtime : {"runc", "crun"}) {
        auto wanted = spec();
        wanted.oci_runtime = runtime;
        const auto failed = try_open(wanted);
        BOOST_REQUIRE(!failed.has_value());
        BOOST_TEST((failed.error().code == errc::start_failed));
        BOOST_TEST(failed.error().message == "the agent: no luck");
    }
    BOOST_TEST(owned().empty());
}

BOOST_AUTO_TEST_CASE(an_agent_that_hangs_is_ended_at_the_deadline) {
    options.agent_arguments = {"-e", "sleep 1000", "--"};
    start_deadline = 3s;
    start_service();
    const auto failed = try_open(spec());
    BOOST_REQUIRE(!failed.has_value());
    BOOST_TEST((failed.error().code == errc::start_failed));
    BOOST_TEST(failed.error().message.find("in time") != std::string::npos, failed.error().message);
    BOOST_TEST(owned().empty()); // the fixture sees that no process is left
}

BOOST_AUTO_TEST_CASE(a_failed_start_leaves_nothing_but_words) {
    start_service();
    auto wanted = spec();
    wanted.image = "dir:" + directory + "/none";
    auto failed = try_open(wanted);
    BOOST_REQUIRE(!failed.has_value());
    BOOST_TEST((failed.error().code == errc::start_failed));
    BOOST_TEST(failed.error().message.find("No such file") != std::string::npos, failed.error().message);
    fs::create_directory(directory + "/odd");
    std::ofstream(directory + "/odd/proc") << "no directory";
    wanted.image = "dir:" + directory + "/odd"; // the runtime itself fails
    failed = try_open(wanted);
    BOOST_REQUIRE(!failed.has_value());
    BOOST_TEST(failed.error().message.find("runc failed:") == 0U, failed.error().message);
    BOOST_TEST(owned().empty());
    BOOST_TEST(remains().size() ==
               launcher::read_cgroup_layout().directories("/").size()); // the parents only
}

BOOST_AUTO_TEST_CASE(a_hosts_that_can_not_says_why) {
    options.runtime = "no-such-runtime";
    auto socket = launcher::start(options);
    BOOST_REQUIRE(socket.has_value());
    client = launcher::create_client(context.get_executor(), std::move(*socket));
    sandboxes::oci::builder_options wanted;
    wanted.launcher = client;
    wanted.executor = context.get_executor();
    const auto made = get(sandboxes::oci::create_builder(std::move(wanted)));
    BOOST_REQUIRE(!made.has_value());
    BOOST_TEST(made.error().message.find("'no-such-runtime' is not installed") != std::string::npos);
    stop_service();
}

BOOST_AUTO_TEST_CASE(a_missing_runtime_is_named_with_its_package) {
    const auto programs = directory + "/bin";
    fs::create_directory(programs);
    fs::create_symlink("/usr/sbin/runc", programs + "/runc");
    const std::string path = std::getenv("PATH");
    ::setenv("PATH", programs.c_str(), 1);
    start_service();
    ::setenv("PATH", path.c_str(), 1);
    for (const std::string name : {"crun", "runsc"}) {
        auto wanted = spec();
        wanted.oci_runtime = name;
        const auto failed = try_open(wanted);
        BOOST_REQUIRE(!failed.has_value());
        BOOST_TEST((failed.error().code == errc::start_failed));
        BOOST_TEST(failed.error().message ==
                   "the program '" + name + "' is not installed (on Debian: apt-get install " + name + ")");
    }
    for (const auto& note : builder->notes()) {
        BOOST_TEST(note.find("runsc") == std::string::npos, note);
    }
    BOOST_TEST(owned().empty());
    close(open(spec()));
}

BOOST_AUTO_TEST_CASE(crun_has_the_same_walls_and_limits) {
    start_service();
    auto wanted = spec();
    wanted.oci_runtime = "crun";
    wanted.limits.pids = 12;
    const auto box = open(wanted);
    BOOST_TEST(exec(box, "cat /proc/self/uid_map | tr -s ' '").find(" 0 ") == 0U);
    BOOST_TEST(exec(box, "cat /dev/kmsg /dev/mem 2>&1 | grep -c 'No such file'") == "2\n");
    const auto usage = get(box->usage());
    BOOST_REQUIRE(usage.has_value());
    BOOST_TEST(*usage->memory_limit_bytes == 256U << 20);
    const auto layout = launcher::read_cgroup_layout();
    const auto cgroup = layout.directory("pids", launcher::cgroup_path(options.service_uuid, box->handle()));
    BOOST_TEST(read_text(cgroup + "/pids.max") == "12\n"); // exactly, once it runs
    close(box);
}

BOOST_AUTO_TEST_CASE(the_workspace_counts_ids_from_zero) {
    start_service();
    auto wanted = spec();
    wanted.workspace_dir = directory + "/root/id one/workspace";
    const auto box = open(wanted);
    BOOST_TEST(exec(box, "echo hello > file; stat -c '%u:%g %a' . file") == "0:0 755\n0:0 644\n");
    struct stat status{};
    BOOST_REQUIRE(::stat((*wanted.workspace_dir + "/file").c_str(), &status) == 0);
    BOOST_TEST(status.st_uid == 0U);
    BOOST_REQUIRE(::stat((directory + "/root/id one").c_str(), &status) == 0);
    BOOST_TEST((status.st_mode & 07777) == 0700U);
    BOOST_TEST(
        exec(box, "grep -c 'nosuid,nodev.* /workspace\\|/workspace rw,nosuid,nodev' /proc/self/mountinfo") ==
        "1\n");
    close(box);
    BOOST_TEST(read_text(*wanted.workspace_dir + "/file") == "hello\n");
    wanted.uid = 1000; // contract 4.6.4: that directory only, owner only
    const auto other = open(wanted);
    BOOST_TEST(exec(other, "stat -c '%u:%g' . file") == "1000:0\n0:0\n");
    BOOST_REQUIRE(::stat(wanted.workspace_dir->c_str(), &status) == 0);
    BOOST_TEST(status.st_uid == 1000U);
    close(other);
}

BOOST_AUTO_TEST_CASE(a_long_state_directory_is_no_trouble) {
    options.state_dir = directory + "/" + std::string(120, 'l') + "/a,b:c d\\e\"f";
    fs::create_directories(options.state_dir);
    start_service();
    const auto box = open(spec());
    BOOST_TEST(exec(box, "echo yes") == "yes\n");
    close(box);
}

BOOST_AUTO_TEST_CASE(the_end_of_the_service_in_the_middle_of_a_start) {
    std::mt19937 random(7);
    for (int round = 0; round < 4; ++round) {
        start_service();
        const auto image = get(client->import({"host", true, ""}, {}, launcher::import_deadline));
        BOOST_REQUIRE(image.has_value());
        core::gate running;
        for (int i = 0; i < 3; ++i) {
            auto request = request_for("r" + std::to_string(round) + "-" + std::to_string(i), image->key);
            core::spawn(context.get_executor(), "start", running, start_and_drop(client, std::move(request)));
        }
        context.restart();
        context.run_for(std::chrono::milliseconds(random() % 120));
        running.close();
        stop_service(); // the launcher finishes what it has begun
        test::run(context, running.drained());
    }
    start_service();
    remove_all();
    BOOST_TEST(owned().empty());
}

BOOST_AUTO_TEST_CASE(a_launcher_that_is_killed_leaves_only_what_can_be_removed) {
    std::mt19937 random(11);
    for (int round = 0; round < 6; ++round) {
        start_service();
        const auto image = get(client->import({"host", true, ""}, {}, launcher::import_deadline));
        BOOST_REQUIRE(image.has_value());
        core::gate running;
        for (int i = 0; i < 2; ++i) {
            auto request = request_for("k" + std::to_string(round) + "-" + std::to_string(i), image->key);
            core::spawn(context.get_executor(), "start", running, start_and_drop(client, std::move(request)));
        }
        context.restart();
        context.run_for(std::chrono::milliseconds(random() % 150));
        // The launcher and, as in a machine-wide kill, its workers.
        std::string workers = read_text("/proc/" + std::to_string(launcher_pid) + "/task/" +
                                        std::to_string(launcher_pid) + "/children");
        ::kill(launcher_pid, SIGKILL);
        std::istringstream list(workers);
        for (pid_t pid = 0; list >> pid;) {
            if (read_text("/proc/" + std::to_string(pid) + "/comm") == "sandboxd-work\n") {
                ::kill(pid, SIGKILL);
            }
        }
        running.close();
        test::run(context, running.drained());
        stop_service();
    }
    start_service();
    remove_all();
    BOOST_TEST(owned().empty());
}

BOOST_AUTO_TEST_CASE(an_import_does_not_keep_the_launcher_when_the_service_has_ended) {
    // In place of skopeo something that takes for ever.
    const auto programs = directory + "/bin";
    fs::create_directory(programs);
    std::ofstream(programs + "/skopeo") << "#!/bin/sh\ntouch " << directory << "/begun\nexec sleep 600\n";
    fs::permissions(programs + "/skopeo", fs::perms::owner_all);
    std::ofstream(directory + "/saved.tar") << "an archive";
    const std::string path = std::getenv("PATH");
    ::setenv("PATH", (programs + ":" + path).c_str(), 1);
    start_service();
    ::setenv("PATH", path.c_str(), 1);
    core::gate running;
    core::spawn(context.get_executor(), "import", running,
                import_and_drop(client, "docker-archive:" + directory + "/saved.tar"));
    while (!fs::exists(directory + "/begun")) {
        context.restart();
        context.run_for(std::chrono::milliseconds(10));
    }
    running.close();
    const auto began = std::chrono::steady_clock::now();
    stop_service();
    BOOST_TEST((std::chrono::steady_clock::now() - began < std::chrono::seconds(60)));
    test::run(context, running.drained());
    start_service();
    BOOST_TEST(owned().empty());
}

BOOST_AUTO_TEST_CASE(opens_at_once_copy_the_host_once) {
    start_service();
    const auto counting = std::make_shared<counting_client>(client);
    make_builder(counting);
    core::gate running;
    std::vector<std::shared_ptr<sandbox>> boxes;
    for (int i = 0; i < 4; ++i) {
        core::spawn(context.get_executor(), "open", running, open_into(builder, spec(), boxes));
    }
    running.close();
    test::run(context, running.drained(), 60s);
    BOOST_REQUIRE(boxes.size() == 4U);
    BOOST_TEST(counting->imports == 1);
    for (const auto& box : boxes) {
        BOOST_TEST(exec(box, "echo yes") == "yes\n");
        close(box);
    }
}

BOOST_AUTO_TEST_SUITE_END()
