#pragma once

#include <boost/json/object.hpp>

namespace sandboxd::launcher {

/// The `linux.seccomp` section of a bundle: what Docker's default profile allows a container that has the
/// default capabilities and nothing more, on amd64 and arm64. Anything else answers EPERM; `clone3` answers
/// ENOSYS, so that C libraries fall back to `clone`, whose flags a filter can see.
[[nodiscard]] boost::json::object seccomp_profile();

} // namespace sandboxd::launcher
