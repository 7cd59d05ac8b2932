#include "session/door_check.hpp"

#include "session/service.hpp"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace sandboxd::test {

namespace {

namespace fs = std::filesystem;
using session::host_door;

/// A sandbox whose /workspace is a directory of this host, or is not.
class file_sandbox final : public sandbox {
public:
    explicit file_sandbox(fs::path directory) : directory_(std::move(directory)) {}

    std::string_view type() const noexcept override { return "files"; }
    task<result<exec_result>> exec(exec_request) override { co_return error{errc::unsupported, ""}; }
    bool alive() const noexcept override { return true; }
    void on_death(std::function<void()>) override {}
    task<void> stop(bool) override { co_return; }
    std::string handle() const override { return {}; }
    task<void> stop_run(std::string) override { co_return; }

    task<result<file_content>> read(std::string path, std::uint64_t) override {
        std::ifstream file(inside(path), std::ios::binary);
        if (!file) {
            co_return error{errc::not_found, "No such file"};
        }
        read_mode = static_cast<unsigned>(fs::status(inside(path)).permissions());
        file_content out;
        out.bytes.assign(std::istreambuf_iterator<char>(file), {});
        co_return out;
    }
    task<result<void>> write(std::string path, std::string content) override {
        if (!writes) {
            co_return error{errc::denied, "Permission denied"};
        }
        ++written;
        std::ofstream(inside(path), std::ios::binary) << content;
        if (owner != 0 && ::chown(inside(path).c_str(), owner, owner) != 0) {
            co_return error{errc::io, "chown"};
        }
        co_return result<void>();
    }

    bool writes = true;
    int written = 0;
    unsigned read_mode = 0; ///< of the file that was read last
    uid_t owner = 0;        ///< who owns what it writes; 0: whoever runs this test

private:
    [[nodiscard]] fs::path inside(const std::string& path) const {
        return directory_ / fs::path(path).lexically_relative("/workspace");
    }
    fs::path directory_;
};

struct door_fixture {
    door_fixture() { fs::create_directories(workspace()); }

    [[nodiscard]] fs::path workspace() const { return root.path() / "s/workspace"; }

    host_door prove(const std::shared_ptr<file_sandbox>& box, bool may_write) {
        const session::door_question what{root.path(), "s", "/workspace", may_write};
        boost::asio::io_context context;
        const auto door =
            get(context, session::prove_door(workers, calls, box, what, std::chrono::seconds(10)));
        BOOST_TEST(fs::is_empty(workspace()));
        BOOST_TEST(fs::is_empty(elsewhere.path()));
        return door;
    }

    temporary_directory root;
    temporary_directory elsewhere;
    core::worker_pool workers{"test", 1};
    core::gate calls;
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(session_door_check, door_fixture)

BOOST_AUTO_TEST_CASE(the_same_directory_and_a_user_who_can_change_everything) {
    const auto box = std::make_shared<file_sandbox>(workspace());
    BOOST_TEST((prove(box, true) == host_door::writes));
    BOOST_TEST((prove(box, false) == host_door::reads));
}

BOOST_AUTO_TEST_CASE(another_user_reads_only) {
    const auto box = std::make_shared<file_sandbox>(workspace());
    box->writes = false;
    BOOST_TEST((prove(box, true) == host_door::reads));
    if (::geteuid() == 0) {
        box->writes = true;
        box->owner = 100'000; // as root of a shifted user namespace is seen from outside
        BOOST_TEST((prove(box, true) == host_door::reads));
    }
}

BOOST_AUTO_TEST_CASE(another_directory_is_no_door) {
    const auto box = std::make_shared<file_sandbox>(elsewhere.path());
    BOOST_TEST((prove(box, true) == host_door::shut));
    BOOST_TEST(box->written == 0); // nobody here could take it away again
}

BOOST_AUTO_TEST_CASE(a_file_of_the_hosts_is_seen_whatever_the_umask) {
    const auto box = std::make_shared<file_sandbox>(workspace());
    const auto before = ::umask(0077);
    const auto door = prove(box, true);
    ::umask(before);
    BOOST_TEST((door == host_door::writes));
    BOOST_TEST(box->read_mode == 0644U);
}

BOOST_AUTO_TEST_CASE(a_host_directory_that_is_gone_is_no_door) {
    const auto box = std::make_shared<file_sandbox>(workspace());
    const session::door_question what{root.path(), "t", "/workspace", true};
    boost::asio::io_context context;
    BOOST_TEST((get(context, session::prove_door(workers, calls, box, what, std::chrono::seconds(10))) ==
                host_door::shut));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace sandboxd::test
