#pragma once

// Paths of any length, and the checks that come before a file is opened. Functions return 0 or an errno.

#include "agent/descriptor.hpp"

#include <sys/stat.h>

#include <string>
#include <string_view>

namespace sandboxd::agent {

/// A path in a form that system calls take: `rest` is relative to at() and short enough.
struct located {
    descriptor directory; ///< not set: the working directory
    std::string rest;

    [[nodiscard]] int at() const;
};
/// Walks down as far as a path is too long for one system call; an empty one is ENOENT.
[[nodiscard]] int locate(std::string_view path, located& out);

/// The directory part of a path ("." when there is none) and the last component, which is empty behind a
/// slash.
struct split_path {
    std::string_view directory;
    std::string_view name;
};
[[nodiscard]] split_path split(std::string_view path);

/// Opens a directory only to start from it.
[[nodiscard]] int open_directory(std::string_view path, descriptor& out);
/// The same, and makes it and its parents (mode 0755) where they are missing.
[[nodiscard]] int make_directory(std::string_view path, descriptor& out);

/// Opens a regular file to be read, links followed. EISDIR for a directory; for whatever else is no file
/// (a FIFO, a socket, a device) -1: it is not opened, since that could block or have effects.
[[nodiscard]] int open_regular(const located& where, descriptor& out, struct stat& status);

/// Where a file is to be written: the end of a chain of links.
struct target {
    descriptor directory;
    std::string name;
    bool exists = false;
    struct stat status{}; ///< when it exists
};
/// Follows the links that `name` in `directory` is, to a name that is a regular file or free. EISDIR for a
/// directory, ELOOP after 40 links, -1 for anything that is neither file nor directory.
[[nodiscard]] int find_target(descriptor directory, std::string name, target& out);

/// What `mode` is, for -1: "It is a FIFO, not a file".
[[nodiscard]] std::string_view not_a_file(mode_t mode);

/// Reads until `size` bytes are there or the file ends; the bytes read, or -1.
[[nodiscard]] ssize_t read_fully(int fd, char* to, std::size_t size);
/// 0 or an errno.
[[nodiscard]] int write_fully(int fd, std::string_view bytes);

} // namespace sandboxd::agent
