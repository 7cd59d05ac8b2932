#pragma once

#include "client/session_link.hpp"

namespace sandboxd::cli::local {

// Files of this host, for cp. Blocking: the command line has nothing else to do meanwhile.

enum class kind { missing, file, directory, other };

[[nodiscard]] kind kind_of(const std::string& path);
[[nodiscard]] bool is_executable(const std::string& path);

/// A regular file, or standard input for "-"; at most 1 GiB.
[[nodiscard]] client::outcome<std::string> read(const std::string& path);
/// To a file beside it that takes its place when it is whole, or to standard output for "-".
[[nodiscard]] client::outcome<void> write(const std::string& path, const std::string& data);
[[nodiscard]] client::outcome<void> make_directory(const std::string& path);
/// Sorted names.
[[nodiscard]] client::outcome<std::vector<std::string>> names_in(const std::string& path);

/// "a/b" for "a" and "b".
[[nodiscard]] std::string joined(const std::string& folder, const std::string& name);
/// The last part: "b" for "a/b/".
[[nodiscard]] std::string base_name(const std::string& path);

} // namespace sandboxd::cli::local
