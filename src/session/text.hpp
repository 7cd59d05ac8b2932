#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sandboxd::session {

/// Arguments as one line of shell, each quoted where it has to be (contract 2.11, `run`): letters, digits and
/// `@%+=:,./-_` stand bare, everything else goes between single quotes. Of a line that is longer than
/// shorten() shows there is only the beginning, still longer than that: a word can be megabytes.
[[nodiscard]] std::string shell_join(const std::vector<std::string>& argv);

/// At most 200 characters (code points), the rest given as one `…` (contract 2.11).
[[nodiscard]] std::string shorten(std::string_view text);

} // namespace sandboxd::session
