// New content for a file, while others change what it replaces.

#include "agent/file_replace.hpp"

#include <boost/test/unit_test.hpp>

#include <fcntl.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string>

namespace {

using namespace sandboxd::agent;
namespace fs = std::filesystem;

struct directory {
    directory() {
        std::string name = (fs::temp_directory_path() / "sandboxd-replace-XXXXXX").string();
        BOOST_REQUIRE(::mkdtemp(name.data()) != nullptr);
        path = name;
        put("old");
    }
    ~directory() { fs::remove_all(path); }
    directory(const directory&) = delete;
    directory& operator=(const directory&) = delete;

    void put(const std::string& content) const { std::ofstream(file()) << content; }
    [[nodiscard]] fs::path file() const { return path / "file"; }
    [[nodiscard]] target find() const {
        descriptor at(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        target out;
        BOOST_REQUIRE(find_target(std::move(at), "file", out) == 0);
        return out;
    }
    [[nodiscard]] std::string content() const {
        std::ifstream in(file());
        return {std::istreambuf_iterator<char>(in), {}};
    }
    [[nodiscard]] auto entries() const {
        return std::distance(fs::directory_iterator(path), fs::directory_iterator());
    }
    /// The temporary file's.
    [[nodiscard]] mode_t mode_of_other() const {
        for (const auto& one : fs::directory_iterator(path)) {
            if (one.path() != file()) {
                return static_cast<mode_t>(one.status().permissions());
            }
        }
        return 0;
    }

    fs::path path;
};

BOOST_FIXTURE_TEST_SUITE(replaced_files, directory)

BOOST_AUTO_TEST_CASE(a_directory_that_came_meanwhile_stays) {
    {
        replacement to;
        BOOST_TEST(to.begin(find()) == 0);
        BOOST_TEST(to.append("new") == 0);
        fs::remove(file());
        fs::create_directory(file());
        std::ofstream(file() / "inside") << "kept";
        BOOST_TEST(to.commit() == EISDIR);
    }
    BOOST_TEST(fs::exists(file() / "inside"));
    BOOST_TEST(entries() == 1);
}

BOOST_AUTO_TEST_CASE(a_file_that_went_meanwhile_is_there_again) {
    replacement to;
    BOOST_TEST(to.begin(find()) == 0);
    BOOST_TEST(to.append("new") == 0);
    fs::remove(file());
    BOOST_TEST(to.commit() == 0);
    BOOST_TEST(content() == "new");
    BOOST_TEST(entries() == 1);
}

BOOST_AUTO_TEST_CASE(new_content_is_seen_by_nobody_who_could_not_see_the_old) {
    if (::geteuid() == 0) { // what is made in the directory is of another group
        BOOST_REQUIRE(::chown(path.c_str(), static_cast<uid_t>(-1), 4242) == 0);
        BOOST_REQUIRE(::chmod(path.c_str(), 02755) == 0);
    }
    for (const mode_t mode : std::initializer_list<mode_t>{0644, 0600, 0755, 0640, 0664, 0604, 04755}) {
        BOOST_REQUIRE(::chmod(file().c_str(), mode) == 0);
        const mode_t first = mode == 0640 || mode == 0664 ? 0600 : mode & 0777;
        replacement to;
        BOOST_TEST(to.begin(find()) == 0);
        BOOST_TEST(mode_of_other() == first);
        BOOST_TEST(to.append("new") == 0);
        BOOST_TEST(to.commit() == 0);
        const auto now = find();
        BOOST_TEST((now.status.st_mode & 07777) == mode);
        BOOST_TEST(now.status.st_gid == ::getegid());
        BOOST_TEST(content() == "new");
        BOOST_TEST(entries() == 1);
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
