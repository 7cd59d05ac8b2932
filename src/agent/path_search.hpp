#pragma once

#include <string_view>

namespace sandboxd::agent {

/// Where programs are looked for when the environment has no PATH.
inline constexpr std::string_view default_path =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Tries to run a file; returns only on failure, with errno.
using try_exec = int (*)(const char* file, void* context);

/// Runs `program` as execvp would: as it is when it holds a slash, else along `path` (an empty entry is the
/// working directory). Returns the errno that says best why not: EACCES when something was there but could
/// not be run, ENOENT when nothing was. Allocates nothing: it runs between vfork and exec.
[[nodiscard]] int exec_along_path(const char* program, std::string_view path, try_exec attempt,
                                  void* context);

} // namespace sandboxd::agent
