#pragma once

#include "core/random.hpp"

#include <filesystem>
#include <fstream>
#include <string>

namespace sandboxd::agent::test {

/// Something that commands wait for instead of a while: a file that comes into being. It goes away with this.
class flag {
public:
    flag() = default;
    ~flag() {
        std::error_code ignored;
        std::filesystem::remove(path_, ignored);
    }
    flag(const flag&) = delete;
    flag& operator=(const flag&) = delete;

    /// For a shell: waits until raise().
    [[nodiscard]] std::string wait() const { return "while [ ! -e " + path_ + " ]; do sleep 0.02; done"; }
    void raise() const { std::ofstream file(path_); }

private:
    std::string path_ =
        (std::filesystem::temp_directory_path() / ("agent-flag-" + core::random_hex(8))).string();
};

} // namespace sandboxd::agent::test
