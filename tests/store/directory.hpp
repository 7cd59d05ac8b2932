#pragma once

#include "core/random.hpp"

#include <filesystem>
#include <string>
#include <system_error>

/// A directory of its own for a test.
struct directory {
    std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("sandboxd-test-" + sandboxd::core::random_hex(8));
    directory() { std::filesystem::create_directory(path); }
    ~directory() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
    [[nodiscard]] std::string file(const char* name) const { return (path / name).string(); }
};
