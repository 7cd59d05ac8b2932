#pragma once

#include "sandboxd/error.hpp"

#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>

#include <string>
#include <string_view>

namespace sandboxd::hostfs {

/// How a `files/*` operation can fail (contract N4.5, N5.9, N16.27).
enum class refusal {
    not_found,       ///< 404 FileNotFoundError
    is_directory,    ///< 400 IsADirectoryError
    not_a_directory, ///< 400 NotADirectoryError
    exists,          ///< 400 FileExistsError
    bad_value,       ///< 400 ValueError
    ask_sandbox,     ///< 409: the client repeats it by shell
    timeout,         ///< 504
};

struct native_failure {
    refusal why = refusal::ask_sandbox;
    std::string message;  ///< for a person; no host path
    bool strange = false; ///< nothing a sandbox's files explain (disk full, say): worth a line in the log
};

/// "FileNotFoundError", ...: the exception the client raises. Empty for ask_sandbox and timeout.
[[nodiscard]] std::string_view exception_of(refusal why) noexcept;

template <class T>
using native_result = boost::system::result<T, native_failure>;

[[noreturn]] void throw_exception_from_error(const native_failure& e, const boost::source_location& where);

/// Contract N5.9 for an error of the operating system at `path`.
[[nodiscard]] native_failure native_failure_of(boost::system::error_code failed, std::string_view path);

/// Contract 7.2, 7.4, N7.3, N16.11, N16.27, N19.11 for the same at an archive's `path`. ENOENT and ENOTDIR
/// are not_found, `missing` saying what is not there ("a directory").
[[nodiscard]] error archive_error_of(boost::system::error_code failed, std::string_view path,
                                     std::string_view missing);

} // namespace sandboxd::hostfs
