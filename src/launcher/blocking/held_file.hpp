#pragma once

#include "core/fd.hpp"
#include "sandboxd/error.hpp"

#include <chrono>
#include <string>
#include <string_view>

namespace sandboxd::launcher::blocking {

/// A file that is made before its content is known: whoever opens it waits until it is filled, or this goes.
///
/// The kernel has it wait, by a lease, for /proc/sys/fs/lease-break-time (45 s), then lets it in.
class held_file {
public:
    /// `path` must be new. `patience` is cut to half of what the kernel gives. errc::io, also where the file
    /// system gives no lease: then there is no file.
    [[nodiscard]] static result<held_file> create(const std::string& path, unsigned mode,
                                                  std::chrono::milliseconds patience);

    /// In time: nobody can have been let in yet.
    [[nodiscard]] bool holds() const { return std::chrono::steady_clock::now() < until_; }

    /// Writes it and lets the others in; once.
    [[nodiscard]] result<void> fill(std::string_view bytes);

private:
    held_file(core::unique_fd fd, std::string path, std::chrono::steady_clock::time_point until)
        : fd_(std::move(fd)), path_(std::move(path)), until_(until) {}

    core::unique_fd fd_;
    std::string path_;
    std::chrono::steady_clock::time_point until_;
};

} // namespace sandboxd::launcher::blocking
