#pragma once

#include "core/fd.hpp"
#include "sandboxd/error.hpp"

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <sys/types.h>

namespace sandboxd::store {

/// The service's own directory (design.md "Decided" 1): its lock, UUID, token key, database and the backend
/// it chose. Everything here blocks; it is used at start, before the first request.
class state_directory {
public:
    /// Creates what is missing (the directory with mode 0700, its parents with 0755) and takes the lock. The
    /// lock is shared with processes forked later (the launcher), never with programs they execute; so after
    /// a crash it is free only when the launcher has left too. Waits up to `patience` for that. errc::io,
    /// errc::unavailable (in use: names the directory and the process), errc::invalid (a file in it is
    /// damaged or readable by others).
    [[nodiscard]] static result<std::unique_ptr<state_directory>>
    open(std::string path, std::chrono::milliseconds patience = std::chrono::seconds(15));

    /// The backend that was chosen in that directory, without opening it: a service may be using it. Nothing
    /// when there is none, or it can't be read.
    [[nodiscard]] static std::optional<std::string> remembered_backend(const std::string& path);

    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] const std::string& uuid() const noexcept { return uuid_; }
    [[nodiscard]] const std::array<unsigned char, 32>& token_key() const noexcept { return key_; }
    /// The descriptor that holds the lock; a process that inherits it keeps the directory in use.
    [[nodiscard]] int lock() const noexcept { return lock_.get(); }
    [[nodiscard]] std::string database_path() const { return path_ + "/state.db"; }

    /// The backend that was chosen here before, if any.
    [[nodiscard]] const std::optional<std::string>& backend() const noexcept { return backend_; }
    [[nodiscard]] result<void> remember_backend(const std::string& name);

    /// Hands the directory and the service's own files in it to the account the service drops to. The bundles
    /// of sandboxes are not touched.
    [[nodiscard]] result<void> give_to(uid_t uid, gid_t gid);

private:
    explicit state_directory(std::string path) : path_(std::move(path)) {}
    [[nodiscard]] result<void> take_lock(std::chrono::milliseconds patience);
    [[nodiscard]] result<void> read_identity();

    std::string path_;
    core::unique_fd lock_;
    std::string uuid_;
    std::array<unsigned char, 32> key_{};
    std::optional<std::string> backend_;
};

} // namespace sandboxd::store
