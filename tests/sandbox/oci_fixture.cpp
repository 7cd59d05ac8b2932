#include "oci_fixture.hpp"

#include "core/deadline.hpp"
#include "core/random.hpp"
#include "launcher/blocking/child.hpp"
#include "launcher/cgroups.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace sandboxd::test {

namespace asio = boost::asio;
namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

/// Accepts on descriptor 3; runs the line that comes with the connection as its streams.
constexpr const char* stand_in =
    "open(my $l, '+<&=', 3) or die; open(STDOUT, '>/dev/null'); open(STDERR, '>&STDOUT'); $SIG{CHLD} = "
    "'IGNORE'; $SIG{TERM} = sub { exit 0 };"
    "while (1) { accept(my $c, $l) or next; if (fork() == 0) { close $l; $SIG{CHLD} = "
    "'DEFAULT'; $SIG{TERM} = 'DEFAULT'; my $line = <$c>; open(STDOUT, '>&', $c); "
    "open(STDERR, '>&', $c); exec('/bin/sh', '-c', $line); } close $c; }";

class plain_sandbox final : public sandbox {
public:
    explicit plain_sandbox(std::shared_ptr<sandboxes::sandbox_host> host) : host_(std::move(host)) {}

    std::string_view type() const noexcept override { return host_->type(); }
    bool alive() const noexcept override { return host_->alive(); }
    void on_death(std::function<void()> callback) override { host_->on_death(std::move(callback)); }
    std::string handle() const override { return host_->handle(); }
    task<result<usage_sample>> usage() override { return host_->usage(); }
    task<void> stop(bool purge) override { co_await host_->terminate(0ms, purge); }

    task<result<exec_result>> exec(exec_request request) override {
        auto stream = co_await host_->connect(co_await asio::this_coro::executor);
        if (!stream) {
            co_return stream.error();
        }
        const auto before = host_->oom_kills();
        const auto line = request.command + "\n";
        auto& channel = **stream;
        co_await asio::async_write(channel, asio::buffer(line), asio::as_tuple(asio::use_awaitable));
        exec_result answer;
        std::array<char, 16384> buffer{};
        while (true) {
            const auto [failed, count] =
                co_await channel.async_read_some(asio::buffer(buffer), asio::as_tuple(asio::use_awaitable));
            answer.output.append(buffer.data(), count);
            if (failed) {
                break;
            }
        }
        answer.status.oom_killed = before && host_->oom_kills() > before;
        co_return answer;
    }

private:
    std::shared_ptr<sandboxes::sandbox_host> host_;
};

task<result<std::shared_ptr<sandbox>>> make_plain(std::shared_ptr<sandboxes::sandbox_host> host,
                                                  bool /*adopted*/) {
    std::shared_ptr<sandbox> made = std::make_shared<plain_sandbox>(std::move(host));
    co_return made;
}

task<result<std::shared_ptr<sandbox>>> build(sandbox_builder& builder, sandbox_spec spec) {
    auto slot = co_await builder.prepare(spec);
    if (!slot) {
        co_return slot.error();
    }
    co_return co_await builder.build(std::move(spec), std::move(*slot));
}

/// The first child of this process called like the launcher.
pid_t find_launcher() {
    std::istringstream children(read_text("/proc/self/task/" + std::to_string(::getpid()) + "/children"));
    pid_t last = -1;
    for (pid_t pid = 0; children >> pid;) {
        if (read_text("/proc/" + std::to_string(pid) + "/comm") == "sandboxd-launch\n") {
            last = pid;
        }
    }
    return last;
}

} // namespace

boost::test_tools::assertion_result can_run_sandboxes(boost::unit_test::test_unit_id) {
    boost::test_tools::assertion_result answer(::geteuid() == 0);
    answer.message() << "real sandboxes need root";
    return answer;
}

oci_fixture::oci_fixture() {
    std::string name = (fs::temp_directory_path() / "sbx-XXXXXX").string();
    BOOST_REQUIRE(::mkdtemp(name.data()) != nullptr);
    directory = name;
    fs::create_directory(directory + "/state");
    options.state_dir = directory + "/state";
    options.service_uuid = core::random_uuid();
    options.agent_path = "/usr/bin/perl";
    options.agent_arguments = {"-e", stand_in, "--"}; // what follows is for the agent, not for Perl
}

oci_fixture::~oci_fixture() {
    if (client) {
        remove_all();
        stop_service();
    }
    for (const auto& one : remains()) {
        BOOST_ERROR("left behind: " + one);
    }
    fs::remove_all(directory);
}

void oci_fixture::start_service() {
    auto socket = launcher::start(options);
    BOOST_REQUIRE_MESSAGE(socket.has_value(), (socket ? "" : socket.error().message));
    client = launcher::create_client(context.get_executor(), std::move(*socket));
    for (int tries = 0; tries < 30'000 && launcher_pid < 0; ++tries) { // it takes its name first of all
        launcher_pid = find_launcher();
        std::this_thread::sleep_for(1ms);
    }
    make_builder(client);
}

void oci_fixture::make_builder(std::shared_ptr<launcher::client> over) {
    sandboxes::oci::builder_options wanted;
    wanted.service_uuid = options.service_uuid;
    wanted.executor = context.get_executor();
    wanted.launcher = std::move(over);
    wanted.factory = make_plain;
    wanted.start_deadline = start_deadline;
    auto made = get(sandboxes::oci::create_builder(std::move(wanted)));
    BOOST_REQUIRE_MESSAGE(made.has_value(), (made ? "" : made.error().message));
    builder = *made;
}

void oci_fixture::stop_service() {
    builder.reset();
    test::run(context, client->close());
    client.reset();
    ::waitpid(launcher_pid, nullptr, 0);
    launcher_pid = -1;
}

sandbox_spec oci_fixture::spec() const {
    sandbox_spec wanted;
    wanted.session_id = "test-session";
    wanted.image = "host";
    wanted.work_dir = "/workspace";
    wanted.limits.memory_bytes = 256 << 20;
    wanted.limits.pids = 64;
    wanted.limits.tmpfs_size = "16m";
    return wanted;
}

result<std::shared_ptr<sandbox>> oci_fixture::try_open(sandbox_spec wanted) {
    return get(build(*builder, std::move(wanted)));
}

std::shared_ptr<sandbox> oci_fixture::open(sandbox_spec wanted) {
    auto made = try_open(std::move(wanted));
    BOOST_REQUIRE_MESSAGE(made.has_value(), (made ? "" : made.error().message));
    return *made;
}

std::string oci_fixture::exec(const std::shared_ptr<sandbox>& in, const std::string& line) {
    exec_request request;
    request.command = line;
    auto answer = get(in->exec(std::move(request)));
    BOOST_REQUIRE_MESSAGE(answer.has_value(), (answer ? "" : answer.error().message));
    return answer->output;
}

void oci_fixture::close(const std::shared_ptr<sandbox>& one) {
    test::run(context, one->stop(true), 60s);
}

std::vector<slot_record> oci_fixture::owned() {
    auto slots = get(builder->owned());
    BOOST_REQUIRE(slots.has_value());
    return *slots;
}

void oci_fixture::remove_all() {
    for (const auto& slot : owned()) {
        const auto removed = get(builder->remove(slot));
        BOOST_TEST(removed.has_value(), (removed ? "" : removed.error().message));
    }
}

std::vector<std::string> oci_fixture::remains() const {
    std::vector<std::string> found;
    const auto layout = launcher::read_cgroup_layout();
    for (const auto& one : layout.directories(launcher::cgroup_path(options.service_uuid))) {
        if (fs::exists(one)) {
            found.push_back(one);
        }
    }
    for (const auto& claim : fs::directory_iterator(options.run_dir + "/uids")) {
        if (read_text(claim.path()).find(options.service_uuid) != std::string::npos) {
            found.push_back(claim.path());
        }
    }
    for (const char* part : {"/oci", "/runc"}) {
        for (const auto& one : fs::directory_iterator(options.state_dir + part)) {
            found.push_back(one.path());
        }
    }
    return found;
}

void make_root(const std::string& path) {
    for (const char* part : {"/bin", "/etc", "/usr/bin", "/lib64", "/proc", "/root"}) {
        fs::create_directories(path + part);
    }
    std::ofstream(path + "/etc/passwd")
        << "root:x:0:0:root:/root:/bin/sh\nweb:x:33:34:web:/srv/web:/bin/sh\n";
    std::ofstream(path + "/etc/group") << "root:x:0:\nweb:x:34:\n";
    for (const std::string program :
         {"/usr/bin/dash", "/usr/bin/perl", "/usr/bin/id", "/usr/bin/cat", "/usr/bin/tr"}) {
        fs::copy_file(program, path + program);
        launcher::blocking::child_program ldd;
        ldd.argv = {"ldd", program};
        ldd.env = {{"PATH", "/usr/bin:/bin"}};
        const auto copy = [&](std::string_view line) {
            const auto from = line.find('/');
            const auto to = line.find(" (", from);
            if (from != std::string_view::npos && to != std::string_view::npos) {
                const std::string library(line.substr(from, to - from));
                fs::create_directories(fs::path(path + library).parent_path());
                fs::copy_file(library, path + library, fs::copy_options::skip_existing);
            }
        };
        const auto done =
            launcher::blocking::run_child_lines(ldd, std::chrono::steady_clock::now() + 20s, copy);
        BOOST_REQUIRE(done.has_value());
    }
    fs::create_symlink("/usr/bin/dash", path + "/bin/sh");
}

std::size_t count_mounts(const oci_fixture& of) {
    std::ifstream mounts("/proc/self/mountinfo");
    std::size_t count = 0;
    for (std::string line; std::getline(mounts, line);) {
        count += line.find(of.directory) != std::string::npos ? 1 : 0;
    }
    return count;
}

std::size_t count_descriptors() {
    const auto all = fs::directory_iterator("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

std::string read_text(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

int pid_of(const oci_fixture& in, const std::shared_ptr<sandbox>& one) {
    const auto text = read_text(in.options.state_dir + "/oci/" + one->handle() + "/state.json");
    const auto at = text.find("\"pid\":");
    BOOST_REQUIRE(at != std::string::npos);
    return std::stoi(text.substr(at + 6));
}

} // namespace sandboxd::test
