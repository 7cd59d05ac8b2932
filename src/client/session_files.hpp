#pragma once

#include "client/session_link.hpp"

namespace sandboxd::client {

// The file operations of a session: by the service where it does them, else by commands (contract N13.5).
// Each is at most two ways of one operation; the faults are those of sandboxd_workspace.hpp.

[[nodiscard]] task<outcome<std::string>> read_file(link_ptr link, std::string path);
[[nodiscard]] task<outcome<void>> write_file(link_ptr link, std::string path, std::string data);
[[nodiscard]] task<outcome<file_info>> stat_path(link_ptr link, std::string path);
[[nodiscard]] task<outcome<std::vector<file_info>>> list_directory(link_ptr link, std::string path);
[[nodiscard]] task<outcome<void>> make_directory(link_ptr link, std::string path);
[[nodiscard]] task<outcome<void>> remove_path(link_ptr link, std::string path);
[[nodiscard]] task<outcome<bool>> path_exists(link_ptr link, std::string path);
[[nodiscard]] task<outcome<std::string>> resolve_path(link_ptr link, std::string path);

} // namespace sandboxd::client
