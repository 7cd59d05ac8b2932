// Files of this host, for cp.

#include "cli/local_files.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>

using namespace sandboxd::cli;
namespace fs = std::filesystem;

namespace {

/// Of the files whose mode was changed, before that.
std::vector<mode_t> earlier_modes;

} // namespace

// In the place of the C library's, to see a file as it was until then.
extern "C" int fchmod(int fd, mode_t mode) noexcept {
    struct stat before{};
    if (::fstat(fd, &before) == 0) {
        earlier_modes.push_back(before.st_mode & 07777);
    }
    static const auto real = reinterpret_cast<int (*)(int, mode_t)>(::dlsym(RTLD_NEXT, "fchmod"));
    return real(fd, mode);
}

BOOST_AUTO_TEST_CASE(a_private_file_is_private_while_it_is_replaced) {
    std::string name = (fs::temp_directory_path() / "sandboxd-cli-XXXXXX").string();
    BOOST_TEST_REQUIRE(::mkdtemp(name.data()) != nullptr);
    const fs::path folder = name;
    for (const mode_t mode : {0600U, 0640U, 0444U, 0755U}) {
        const auto file = folder / "key";
        std::ofstream(file) << "old";
        BOOST_TEST(::chmod(file.c_str(), mode) == 0);
        earlier_modes.clear();
        BOOST_TEST(!local::write(file.string(), "new").has_error());
        BOOST_TEST_REQUIRE(earlier_modes.size() == 1U);
        BOOST_TEST((earlier_modes.front() & ~mode) == 0U, std::oct << earlier_modes.front());
        struct stat after{};
        BOOST_TEST(::stat(file.c_str(), &after) == 0);
        BOOST_TEST((after.st_mode & 07777) == mode);
        std::string content;
        std::getline(std::ifstream(file), content);
        BOOST_TEST(content == "new");
        fs::remove(file);
    }
    fs::remove_all(folder);
}
