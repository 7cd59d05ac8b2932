#include "app/agent_path.hpp"

#include <filesystem>
#include <unistd.h>

namespace sandboxd::app {

result<std::string> find_agent() {
    namespace fs = std::filesystem;
    std::error_code failed;
    const fs::path self = fs::read_symlink("/proc/self/exe", failed);
    if (failed) {
        return error{errc::not_found, "cannot tell where this program is: " + failed.message()};
    }
    const fs::path beside = self.parent_path() / "sandboxd-agent";
    const fs::path installed = self.parent_path().parent_path() / "libexec" / "sandboxd" / "sandboxd-agent";
    for (const fs::path& place : {beside, installed}) {
        if (::access(place.c_str(), X_OK) == 0) {
            return place.string();
        }
    }
    return error{errc::not_found, "the program that runs inside sandboxes is missing: neither " +
                                      beside.string() + " nor " + installed.string() +
                                      " is there. scripts/build makes it."};
}

} // namespace sandboxd::app
