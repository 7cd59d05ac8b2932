#pragma once

#include "config/load.hpp"

#include <string>
#include <vector>

namespace sandboxd::config {

/// Settings on their way in.
struct draft {
    settings values;
    std::vector<source> sources;
    std::vector<std::string> labels; ///< how an error names each: the variable, or the file's key and place
};

/// Fills in what was not given and depends on the host or on other settings: token from its file, allowlist
/// and default runtime, state directory, threads; makes directories absolute.
[[nodiscard]] result<void> complete(draft& of, const environment& variables, const host_facts& host);

/// Two settings that do not go together, and what to say of it.
struct clash {
    std::string_view name; ///< of the one to blame
    std::string cause;     ///< a sentence that names both
};

/// Contract 5.2: eviction without kept files, ceilings the wrong way round, swap below memory.
[[nodiscard]] std::optional<clash> find_clash(const settings& values);

/// The combinations that are refused (contract 5.2; TLS files; body limits; swap below memory).
[[nodiscard]] result<void> check_together(const draft& of, const host_facts& host);

} // namespace sandboxd::config
