#pragma once

#include "hostfs/blocking/files.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sandboxd::hostfs::blocking {
inline std::ostream& operator<<(std::ostream& out, walk_kind how) {
    return out << (how == walk_kind::kernel ? "openat2" : "component by component");
}
} // namespace sandboxd::hostfs::blocking

namespace hostfs_tests {

namespace fs = std::filesystem;
using namespace sandboxd;
using namespace sandboxd::hostfs;
using blocking::walk_kind;

inline constexpr walk_kind both_walks[] = {walk_kind::kernel, walk_kind::components};

/// A workspace root with the workspace of session "s", and a directory "host" beside it that nothing may
/// reach.
struct workspace_fixture {
    workspace_fixture() {
        // In memory where that can be had: a busy disk's journal would make these tests wait.
        const fs::path fast = "/dev/shm";
        const fs::path where = ::access(fast.c_str(), W_OK) == 0 ? fast : fs::temp_directory_path();
        std::string name = (where / "sandboxd-hostfs-XXXXXX").string();
        BOOST_REQUIRE(::mkdtemp(name.data()) != nullptr);
        root = name;
        BOOST_REQUIRE(::chmod(root.c_str(), 0755) == 0);
        fs::create_directories(work());
        fs::create_directories(host());
        put(host() + "/secret", "host");
    }
    ~workspace_fixture() { fs::remove_all(root); }
    workspace_fixture(const workspace_fixture&) = delete;
    workspace_fixture& operator=(const workspace_fixture&) = delete;

    [[nodiscard]] std::string work(const std::string& below = "") const {
        return root + "/s/workspace" + (below.empty() ? "" : "/" + below);
    }
    [[nodiscard]] std::string host() const { return root + "/host"; }

    static void put(const std::string& path, const std::string& bytes) {
        std::ofstream(path, std::ios::binary) << bytes;
    }
    static std::string get(const std::string& path) {
        std::ostringstream out;
        out << std::ifstream(path, std::ios::binary).rdbuf();
        return out.str();
    }
    [[nodiscard]] static mode_t mode_of(const std::string& path) {
        struct stat about{};
        BOOST_REQUIRE(::lstat(path.c_str(), &about) == 0);
        return about.st_mode & 07777;
    }

    [[nodiscard]] blocking::workspace open(walk_kind how) const {
        return blocking::workspace::open(root, "s", how).value();
    }
    [[nodiscard]] static native_path path(std::string_view given) {
        return parse_native(given, "/workspace").value();
    }
    [[nodiscard]] static blocking::time_limit soon() {
        return std::chrono::steady_clock::now() + std::chrono::minutes(10);
    }

    /// A directory whose path below the workspace has 3 764 bytes, with so many files of six bytes' names.
    [[nodiscard]] std::string deep_directory(int files) const {
        std::string below(250, 'd');
        while (below.size() < 3'600) {
            below += "/" + std::string(250, 'd');
        }
        fs::create_directories(work(below));
        const core::unique_fd there(::open(work(below).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
        for (int i = 0; i < files; ++i) {
            const std::string name = std::to_string(100'000 + i);
            const core::unique_fd made(
                ::openat(there.get(), name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
            BOOST_REQUIRE(static_cast<bool>(made));
        }
        return below;
    }

    std::string root;
};

/// This thread without root's way around permissions, while it lives.
class as_nobody {
public:
    as_nobody() { ::setfsuid(65534); }
    ~as_nobody() { ::setfsuid(0); }
    as_nobody(const as_nobody&) = delete;
    as_nobody& operator=(const as_nobody&) = delete;
};

template <class T>
std::string why(const native_result<T>& answer) {
    if (answer) {
        return "done";
    }
    switch (answer.error().why) {
    case refusal::ask_sandbox:
        return answer.error().strange ? "strange" : "ask";
    case refusal::timeout:
        return "timeout";
    default:
        return std::string(exception_of(answer.error().why));
    }
}

} // namespace hostfs_tests
