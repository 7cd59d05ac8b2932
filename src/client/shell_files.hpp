#pragma once

#include "client/session_link.hpp"

namespace sandboxd::client::by_shell {

// The file operations as commands in the sandbox, for what the service does not do itself. They need `sh`
// with its builtins and `base64 cat cp dd mkdir mv readlink rm wc`; sizes in listings also `stat` and
// `xargs`. Paths of any bytes work.

[[nodiscard]] task<outcome<std::string>> read(link_ptr link, std::string path);
/// In pieces to a file beside it, which then takes its place or its content.
[[nodiscard]] task<outcome<void>> write(link_ptr link, std::string path, std::string data);
[[nodiscard]] task<outcome<file_info>> stat(link_ptr link, std::string path);
[[nodiscard]] task<outcome<std::vector<file_info>>> list(link_ptr link, std::string path);
[[nodiscard]] task<outcome<void>> make_dir(link_ptr link, std::string path);
[[nodiscard]] task<outcome<void>> remove(link_ptr link, std::string path);
[[nodiscard]] task<outcome<std::string>> realpath(link_ptr link, std::string path);

} // namespace sandboxd::client::by_shell
