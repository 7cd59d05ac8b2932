#pragma once

#include "cli/arguments.hpp"

namespace sandboxd::cli {

/// The settings of this process: its environment, the file named on the command line, and the flags. Errors
/// as config::load: one line that names what is wrong.
[[nodiscard]] result<config::loaded_settings> load_settings(const options& with);

/// Does everything but `serve` and `prepare`: prints to standard output or, for errors ("sandboxd: ..."), to
/// standard error. The exit status. `serve` and `prepare` are the caller's: they must not be handed in.
[[nodiscard]] int run(const command& what);

/// Prints "sandboxd: <message>" to standard error.
void complain(const std::string& message);

} // namespace sandboxd::cli
