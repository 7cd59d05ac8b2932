#pragma once

#include "hostfs/blocking/walk.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace sandboxd::hostfs::blocking {

/// The names in an open directory, in the file system's order, without "." and "..": read a block at a time,
/// a small one first, so that looking at a few names of a huge directory costs no more than a few (contract
/// N7.1), also where that is done for each of its directories.
class directory_reader {
public:
    explicit directory_reader(int directory);

    struct entry {
        std::string_view name;  ///< valid until the next call
        unsigned char type = 0; ///< DT_...; DT_UNKNOWN where the file system doesn't say
        std::int64_t after = 0; ///< seek there to go on behind it
    };
    /// Nothing at the end.
    [[nodiscard]] os_result<std::optional<entry>> next();

private:
    static constexpr std::size_t first_block = 2 * 1024;
    static constexpr std::size_t largest_block = 32 * 1024;

    int directory_;
    std::size_t asked_ = 0;         ///< of the kernel, the last time
    std::unique_ptr<char[]> block_; // NOLINT: bytes as the kernel lays them out
    std::size_t size_ = 0;
    std::size_t at_ = 0;
};

} // namespace sandboxd::hostfs::blocking
