#include "launcher/runtimes/runtime.hpp"

#include <array>

namespace sandboxd::launcher {

std::span<const oci_runtime* const> all_runtimes() noexcept {
    static const std::array<const oci_runtime*, 3> all{&runc_runtime(), &crun_runtime(), &runsc_runtime()};
    return all;
}

const oci_runtime* find_runtime(std::string_view name) noexcept {
    for (const auto* one : all_runtimes()) {
        if (one->name() == name) {
            return one;
        }
    }
    return nullptr;
}

std::string runtime_names() {
    std::string names;
    for (const auto* one : all_runtimes()) {
        names += names.empty() ? "" : ", ";
        names += one->name();
    }
    return names;
}

std::string_view last_line(std::string_view log) noexcept {
    while (!log.empty() && (log.back() == '\n' || log.back() == '\r')) {
        log.remove_suffix(1);
    }
    return log.substr(log.rfind('\n') + 1);
}

} // namespace sandboxd::launcher
