#pragma once

#include "launcher/blocking/child.hpp"

#include <cstdint>
#include <string>

namespace sandboxd::launcher::blocking {

/// Gives a tree whose files belong to the `ids_per_sandbox` ids from `base` up to those from 0: a layer
/// becomes an image, which sandboxes of any range share. Modes stay (a change of owner drops set-user-id
/// bits, so they are set again); capabilities of files go, which no sandbox would heed (no new privileges).
/// Nobody else may write in the tree meanwhile. Follows no link. errc::start_failed for a tree too deep to be
/// walked.
[[nodiscard]] result<void> unshift_tree(const std::string& path, std::uint32_t base, deadline until);

} // namespace sandboxd::launcher::blocking
