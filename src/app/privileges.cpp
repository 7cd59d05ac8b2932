#include "app/privileges.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sandboxd::app {

namespace {

constexpr std::uint32_t bit(unsigned capability) {
    return 1U << capability;
}

result<void> keep_capabilities() {
    static_assert(CAP_CHOWN < 32 && CAP_DAC_OVERRIDE < 32 && CAP_FOWNER < 32);
    constexpr std::uint32_t kept = bit(CAP_CHOWN) | bit(CAP_DAC_OVERRIDE) | bit(CAP_FOWNER);
    __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, 2> sets{};
    sets[0].effective = kept;
    sets[0].permitted = kept;
    if (::syscall(SYS_capset, &head, sets.data()) != 0) {
        return os_error("SANDBOXD_USER: cannot reduce the capabilities", errno);
    }
    return {};
}

} // namespace

result<account> find_account(const std::string& name) {
    uid_t number = 0;
    const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), number);
    const bool numeric = failed == std::errc{} && end == name.data() + name.size();
    const passwd* found = numeric ? ::getpwuid(number) : ::getpwnam(name.c_str());
    if (found == nullptr) {
        return error{errc::invalid, "SANDBOXD_USER: there is no account '" + name +
                                        "' on this host. Create it, or unset the variable."};
    }
    return account{found->pw_uid, found->pw_gid, found->pw_name};
}

result<void> become(const account& to) {
    if (::prctl(PR_SET_KEEPCAPS, 1) != 0) {
        return os_error("SANDBOXD_USER: cannot keep capabilities", errno);
    }
    if (::initgroups(to.name.c_str(), to.gid) != 0) {
        return os_error("SANDBOXD_USER: cannot take the groups of " + to.name, errno);
    }
    if (::setresgid(to.gid, to.gid, to.gid) != 0 || ::setresuid(to.uid, to.uid, to.uid) != 0) {
        return os_error("SANDBOXD_USER: cannot become " + to.name, errno);
    }
    return keep_capabilities();
}

} // namespace sandboxd::app
