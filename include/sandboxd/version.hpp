#pragma once

namespace sandboxd {

/// The release, such as "0.1.0".
const char* version() noexcept;

/// The commit the program was built from, "-dirty" appended when the tree had changes; "unknown" outside a
/// checkout.
const char* commit() noexcept;

} // namespace sandboxd
