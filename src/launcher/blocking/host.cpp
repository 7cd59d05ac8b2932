#include "launcher/blocking/host.hpp"

#include "launcher/blocking/files.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sandboxd::launcher::blocking {

bool has_resource_capability() {
    const auto text = read_file("/proc/self/status", 64 * 1024);
    const auto at = text ? text->find("CapEff:\t") : std::string::npos;
    if (at == std::string::npos) {
        return false;
    }
    std::uint64_t set = 0;
    const char* from = text->data() + at + 8;
    std::from_chars(from, text->data() + text->size(), set, 16);
    return (set >> CAP_SYS_RESOURCE & 1) != 0;
}

bool accounts_swap(const cgroup_layout& cgroups) {
    if (!cgroups.is_unified()) {
        return ::access(cgroups.directory("memory", "/memory.memsw.limit_in_bytes").c_str(), F_OK) == 0;
    }
    // The root of version 2 has no limits; the first level has them.
    const auto top = open_directory(cgroups.unified);
    const auto names = top ? list_directory(top->get()) : result<std::vector<std::string>>(error{});
    for (const auto& name : names ? *names : std::vector<std::string>()) {
        if (::access((cgroups.unified + "/" + name + "/memory.max").c_str(), F_OK) == 0) {
            return ::access((cgroups.unified + "/" + name + "/memory.swap.max").c_str(), F_OK) == 0;
        }
    }
    return true; // nobody has a memory limit yet: the usual case is that swap goes with it
}

bool filters_system_calls() {
    // Without a program it always fails; how tells whether the kernel would have read one.
    return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0U, nullptr) == 0 ||
           (errno != ENOSYS && errno != EINVAL);
}

bool has_controller(const cgroup_layout& cgroups, std::string_view controller) {
    if (!cgroups.is_unified()) {
        return cgroups.controllers.contains(controller);
    }
    auto text = read_file(cgroups.unified + "/cgroup.controllers", 4096);
    std::string words = text ? " " + *text : std::string();
    std::replace(words.begin(), words.end(), '\n', ' ');
    return words.find(" " + std::string(controller) + " ") != std::string::npos;
}

} // namespace sandboxd::launcher::blocking
