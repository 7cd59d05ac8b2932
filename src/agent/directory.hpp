#pragma once

#include "agent/descriptor.hpp"

#include <dirent.h>

#include <memory>
#include <string_view>

namespace sandboxd::agent {

struct directory_entry {
    std::string_view name; ///< ends in a NUL; valid until the next entry is taken
    unsigned char type = DT_UNKNOWN;
};

/// The entries of one directory in the order the kernel has them, without "." and "..". Memory does not
/// depend on how many there are.
class directory_reader {
public:
    /// 0 or an errno; ENOTDIR (ELOOP for a link that is not to be followed) without opening what is no
    /// directory.
    [[nodiscard]] int open(int at, const char* path, bool follow);
    /// Reads from a descriptor that somebody else owns, from its beginning.
    void use(int fd);

    /// False at the end, or when it can't be read on: then error() tells why.
    [[nodiscard]] bool next(directory_entry& out);
    [[nodiscard]] int error() const { return error_; }
    [[nodiscard]] int fd() const { return fd_; }
    [[nodiscard]] descriptor take() { return std::move(own_); }

private:
    static constexpr std::size_t capacity = 32 * 1024;

    descriptor own_;
    int fd_ = -1;
    std::unique_ptr<char[]> buffer_;
    std::size_t size_ = 0;
    std::size_t at_ = 0;
    int error_ = 0;
};

} // namespace sandboxd::agent
