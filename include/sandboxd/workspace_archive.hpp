#pragma once

#include "sandboxd/client.hpp"

namespace sandboxd::client {

struct workspace_archive_options {
    std::string token{}; ///< the service's: a closed session has none of its own
    std::chrono::milliseconds timeout{60'000};
};

/// A directory and what is below it: each directory's entries before its children's.
struct workspace_tree {
    std::vector<file_info> entries;
    bool truncated = false; ///< a bound, or something unreadable, left a part out
};

struct tree_bounds {
    std::uint64_t max_depth = 6;      ///< 1: the directory alone
    std::uint64_t max_entries = 2000; ///< of each workspace
};

/// What one of several workspaces answered.
struct archived_tree {
    std::string session_id;
    outcome<workspace_tree> tree;
};

/// The files that sessions left behind, read-only, without a sandbox (contract 7, "WorkspaceArchive"). The
/// service needs a workspace root. Paths are relative to the workspace, or as a live session's listing shows
/// them.
///
/// Failures are told, with the service's status and the text of its answer. Copies are the same archive.
class async_workspace_archive {
public:
    [[nodiscard]] static outcome<async_workspace_archive> create(const boost::asio::any_io_executor& executor,
                                                                 const connection_options& where,
                                                                 workspace_archive_options options);
    [[nodiscard]] static outcome<async_workspace_archive> create(std::shared_ptr<connections> shared,
                                                                 workspace_archive_options options);

    [[nodiscard]] task<outcome<std::vector<file_info>>> ls(std::string session_id,
                                                           std::string path = ".") const;
    [[nodiscard]] task<outcome<workspace_tree>> tree(std::string session_id, std::string path = ".",
                                                     tree_bounds bounds = {}) const;
    /// At most 100 workspaces in one request; an answer for each, in the order asked.
    [[nodiscard]] task<outcome<std::vector<archived_tree>>>
    trees(std::vector<std::string> session_ids, std::string path = ".", tree_bounds bounds = {}) const;
    /// Lines of a text file, from line `offset` on.
    [[nodiscard]] task<outcome<std::string>> read(std::string session_id, std::string path,
                                                  std::uint64_t offset = 0, std::uint64_t limit = 2000) const;
    [[nodiscard]] task<outcome<std::string>> read_bytes(std::string session_id, std::string path) const;

private:
    friend class workspace_archive;
    struct impl;
    explicit async_workspace_archive(std::shared_ptr<impl> self) : self_(std::move(self)) {}
    std::shared_ptr<impl> self_;
};

/// The same, blocking the calling thread.
class workspace_archive {
public:
    [[nodiscard]] static outcome<workspace_archive> create(const connection_options& where,
                                                           workspace_archive_options options);
    /// fault::invalid for connections that have no thread of their own.
    [[nodiscard]] static outcome<workspace_archive> create(std::shared_ptr<connections> shared,
                                                           workspace_archive_options options);

    [[nodiscard]] outcome<std::vector<file_info>> ls(std::string session_id, std::string path = ".") const;
    [[nodiscard]] outcome<workspace_tree> tree(std::string session_id, std::string path = ".",
                                               tree_bounds bounds = {}) const;
    [[nodiscard]] outcome<std::vector<archived_tree>>
    trees(std::vector<std::string> session_ids, std::string path = ".", tree_bounds bounds = {}) const;
    [[nodiscard]] outcome<std::string> read(std::string session_id, std::string path,
                                            std::uint64_t offset = 0, std::uint64_t limit = 2000) const;
    [[nodiscard]] outcome<std::string> read_bytes(std::string session_id, std::string path) const;

private:
    explicit workspace_archive(async_workspace_archive awaited) : awaited_(std::move(awaited)) {}
    template <class T>
    [[nodiscard]] T wait(task<T> work) const;
    async_workspace_archive awaited_;
};

} // namespace sandboxd::client
