#pragma once

// What sessions left in their workspaces, open, asleep or long gone (contract 7, N7). Never starts anything,
// changes nothing, records no events. Owned by the registry; called on the caller's executor, a strand.

#include "core/offload.hpp"
#include "hostfs/blocking/archive.hpp"
#include "sandboxd/config.hpp"
#include "sandboxd/sandbox.hpp"
#include "session/text_extractor.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sandboxd::session {

using hostfs::blocking::archive_entry;
using hostfs::blocking::archive_listing;

struct archive_read {
    std::string path;
    std::int64_t offset = 0;   ///< lines
    std::int64_t limit = 2000; ///< lines
};

struct tree_command {
    std::string path;
    std::size_t max_depth = 6;
    std::size_t max_entries = 2000;
};

/// Every call needs a workspace root in the settings. Errors: not_found (no such workspace, nothing of the
/// kind wanted at the path), invalid (a path outside, a link, a limit), denied, timeout (25 s, N16.27), io.
class archive {
public:
    virtual ~archive() = default;

    [[nodiscard]] virtual task<result<archive_listing>> ls(std::string id, std::string path) = 0;
    /// The lines of a text file, as `read` shows them (contract 3.3).
    [[nodiscard]] virtual task<result<std::string>> read(std::string id, archive_read command) = 0;
    [[nodiscard]] virtual task<result<std::string>> read_bytes(std::string id, std::string path) = 0;
    [[nodiscard]] virtual task<result<archive_listing>> tree(std::string id, tree_command command) = 0;
    /// One result per id, in the order asked; walked side by side, all of them within one bound of rows
    /// (N16.28).
    [[nodiscard]] virtual task<std::vector<result<archive_listing>>> trees(std::vector<std::string> ids,
                                                                           tree_command command) = 0;
};

/// Pool and extractor outlive the archive. `policy` gives the settings in force.
[[nodiscard]] std::unique_ptr<archive>
create_archive(core::worker_pool& workers, text_extractor& texts,
               std::function<std::shared_ptr<const settings>()> policy);

} // namespace sandboxd::session
