execute_process(COMMAND git -C "${SOURCE}" describe --always --dirty --abbrev=12 OUTPUT_VARIABLE commit
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
    set(commit "unknown")
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT [[#include "sandboxd/version.hpp"

namespace sandboxd {
const char* version() noexcept { return "@VERSION@"; }
const char* commit() noexcept { return "@commit@"; }
} // namespace sandboxd
]] @ONLY)
