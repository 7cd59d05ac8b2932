#pragma once

#include <string_view>

namespace sandboxd::text {

/// What a file's name says about its bytes (contract 3.3.3).
enum class file_kind {
    text,    ///< decoded whatever is in it
    pdf,     ///< its text is extracted
    unknown, ///< text when it looks like text
};

/// By the extension: lower case, after the last dot of the name, a leading or final dot not counting.
[[nodiscard]] file_kind kind_of(std::string_view path);

} // namespace sandboxd::text
