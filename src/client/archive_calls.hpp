#pragma once

#include "client/answers.hpp"
#include "sandboxd/workspace_archive.hpp"

namespace sandboxd::client {

/// The archive's requests, on the client's strand.
struct archive_calls {
    std::shared_ptr<http_client> http;
    workspace_archive_options options;

    [[nodiscard]] const boost::asio::any_io_executor& strand() const noexcept { return http->strand(); }
};

using archive_ptr = std::shared_ptr<const archive_calls>;

[[nodiscard]] task<outcome<std::vector<file_info>>> archived_listing(archive_ptr of, std::string id,
                                                                     std::string path);
[[nodiscard]] task<outcome<workspace_tree>> archived_tree_of(archive_ptr of, std::string id, std::string path,
                                                             tree_bounds bounds);
[[nodiscard]] task<outcome<std::vector<archived_tree>>>
archived_trees_of(archive_ptr of, std::vector<std::string> ids, std::string path, tree_bounds bounds);
[[nodiscard]] task<outcome<std::string>> archived_text(archive_ptr of, std::string id, std::string path,
                                                       std::uint64_t offset, std::uint64_t limit);
[[nodiscard]] task<outcome<std::string>> archived_bytes(archive_ptr of, std::string id, std::string path);

} // namespace sandboxd::client
