#pragma once

#include "sandboxd/config.hpp"
#include "sandboxd/error.hpp"

#include <string>
#include <string_view>

namespace sandboxd::config {

/// A runtime's entry as text, to be kept with a session so that a later heal builds what was opened, whatever
/// the allowlist says by then (contract 2.1). The definition of a built-in is written out: it may change with
/// a release.
[[nodiscard]] std::string entry_text(const runtime_entry& entry);

/// Reads it back; errc::invalid when it is none.
[[nodiscard]] result<runtime_entry> parse_entry(std::string_view text);

} // namespace sandboxd::config
