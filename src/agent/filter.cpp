#include "agent/filter.hpp"

#include "agent/filter_program.hpp"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sandboxd::agent {

namespace {

#if defined(__x86_64__)
constexpr auto code = filter_for_amd64.code();
#elif defined(__aarch64__)
constexpr auto code = filter_for_arm64.code();
#else
#error "the system-call filter knows amd64 and arm64"
#endif

} // namespace

int load_filter() {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return errno;
    }
    // The kernel copies the program and doesn't write to it.
    const sock_fprog program{static_cast<unsigned short>(code.size()), const_cast<sock_filter*>(code.data())};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0U, &program) == 0 ? 0 : errno;
}

} // namespace sandboxd::agent
