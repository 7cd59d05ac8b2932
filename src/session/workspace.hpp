#pragma once

#include "sandboxd/error.hpp"

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// The directories of sessions below the workspace root. Everything here blocks: it runs on the worker pool.
namespace sandboxd::session::blocking {

/// `<root>/<id>/workspace`, absolute.
[[nodiscard]] std::string workspace_path(const std::string& root, const std::string& id);

/// The root that workspace_path() made `path` from; "" when it can't have.
[[nodiscard]] std::string workspace_root(const std::string& path, const std::string& id);

/// True when the workspace directory of the id is there (N9.3); a link is none.
[[nodiscard]] bool workspace_exists(const std::string& root, const std::string& id);

/// Makes `<root>/<id>` (0700) and `workspace` in it (0755) where they are missing, gives `workspace` to `uid`
/// when one is set (contract 4.6.4) and sets the time of `<root>/<id>` to now (2.13 c). Follows no link below
/// the root. errc::start_failed with a text for the 502.
[[nodiscard]] result<std::string> make_workspace(const std::string& root, const std::string& id,
                                                 std::optional<std::uint32_t> uid);

/// A session's claim to its directory, which its purge ends: what still waits for a worker then does not
/// bring the directory back. Thread-safe; held for a few system calls.
class workspace_claim {
public:
    /// make_workspace(); errc::gone once the claim has ended.
    [[nodiscard]] result<std::string> make(const std::string& root, const std::string& id,
                                           std::optional<std::uint32_t> uid);
    void end();

private:
    std::mutex mutex_;
    bool over_ = false;
};

/// Removes `<root>/<id>` and all below it, following no link. What can't be removed stays (contract 2.12);
/// true when nothing is left. Gives up after ten minutes.
bool remove_workspace(const std::string& root, const std::string& id);

/// Removes `<root>/<id>` where it holds nothing but an empty `workspace`.
void remove_empty_workspace(const std::string& root, const std::string& id);

/// The directories directly below the root whose names are session ids, with their own times (Unix seconds).
/// Empty when the root is missing.
[[nodiscard]] std::vector<std::pair<std::string, double>> list_workspaces(const std::string& root);

/// Removes an unused workspace unless `in_use` says, once it is out of reach, that a session has come for it.
/// True when it is gone.
bool sweep_workspace(const std::string& root, const std::string& id, const std::function<bool()>& in_use);

/// Removes what an earlier sweep was kept from finishing.
void sweep_leftovers(const std::string& root);

} // namespace sandboxd::session::blocking
