#pragma once

#include <filesystem>
#include <stdexcept>
#include <stdlib.h> // NOLINT: mkdtemp
#include <string>
#include <system_error>

namespace sandboxd::test {

/// A directory of its own for a test, gone with it.
class scratch {
public:
    scratch() {
        if (::mkdtemp(path.data()) == nullptr) {
            throw std::runtime_error("no directory can be made: " + path);
        }
    }
    ~scratch() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
    scratch(const scratch&) = delete;
    scratch& operator=(const scratch&) = delete;

    [[nodiscard]] std::string file(const std::string& name) const { return path + "/" + name; }

    std::string path = (std::filesystem::temp_directory_path() / "sandboxd-test-XXXXXX").string();
};

} // namespace sandboxd::test
