#pragma once

namespace sandboxd::agent {

/// Puts this process and all that it will start behind the sandbox's system-call filter (filter_calls.hpp),
/// for good, and gives up new privileges, which the kernel asks for. To be called while there is one thread.
/// 0, or the errno of what failed: then nothing may be started.
[[nodiscard]] int load_filter();

} // namespace sandboxd::agent
