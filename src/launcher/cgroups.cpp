#include "launcher/cgroups.hpp"

#include "launcher/blocking/files.hpp"
#include "launcher/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fcntl.h>
#include <unistd.h>

namespace sandboxd::launcher {

namespace {

constexpr std::size_t max_kernel_file = 64 * 1024;

/// mountinfo writes blanks, tabs, line ends and backslashes as \ooo.
std::string unescape(std::string_view text) {
    std::string plain;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] == '\\' && at + 3 < text.size()) {
            const auto digit = [&](std::size_t i) { return text[at + i] - '0'; };
            plain += static_cast<char>(digit(1) * 64 + digit(2) * 8 + digit(3));
            at += 3;
        } else {
            plain += text[at];
        }
    }
    return plain;
}

std::optional<std::uint64_t> number(std::string_view text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) {
        text.remove_suffix(1);
    }
    std::uint64_t value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed != std::errc() || end != text.data() + text.size() || text.empty()) {
        return std::nullopt;
    }
    return value;
}

std::optional<std::string> text_of(const std::string& directory, const char* name) {
    if (directory.empty()) {
        return std::nullopt;
    }
    auto text = blocking::read_file(directory + "/" + name, max_kernel_file);
    return text ? std::optional(std::move(*text)) : std::nullopt;
}

std::optional<std::uint64_t> number_of(const std::string& directory, const char* name) {
    const auto text = text_of(directory, name);
    return text ? number(*text) : std::nullopt;
}

std::uint64_t host_memory() {
    const auto pages = ::sysconf(_SC_PHYS_PAGES);
    const auto size = ::sysconf(_SC_PAGESIZE);
    return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size);
}

} // namespace

std::string cgroup_layout::directory(std::string_view controller, std::string_view path) const {
    if (is_unified()) {
        return unified + std::string(path);
    }
    const auto found = controllers.find(controller);
    return found == controllers.end() ? std::string() : found->second + std::string(path);
}

std::vector<std::string> cgroup_layout::directories(std::string_view path) const {
    std::vector<std::string> all;
    for (const auto& [controller, mount] : controllers) {
        all.push_back(mount + std::string(path));
    }
    if (!unified.empty()) {
        all.push_back(unified + std::string(path));
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

cgroup_layout parse_cgroup_layout(std::string_view mountinfo) {
    cgroup_layout layout;
    for (const auto line : split(mountinfo, '\n')) {
        const auto dash = line.find(" - ");
        const auto front = split(line.substr(0, dash), ' ');
        if (dash == std::string_view::npos || front.size() < 6) {
            continue;
        }
        const auto back = split(line.substr(dash + 3), ' ');
        const auto mount = unescape(front[4]);
        if (back[0] == "cgroup2" && layout.unified.empty()) {
            layout.unified = mount;
        } else if (back[0] == "cgroup" && back.size() >= 3) {
            for (const auto option : split(back[2], ',')) {
                if (option != "rw" && option != "ro" && option.substr(0, 14) != "release_agent=" &&
                    option != "xattr" && option != "noprefix" && option != "clone_children") {
                    layout.controllers.emplace(option, mount);
                }
            }
        }
    }
    // "name=systemd" alone beside version 2 is a hybrid whose controllers are all in version 2.
    const auto named = [](const auto& one) { return one.first.substr(0, 5) == "name="; };
    if (!layout.unified.empty() && std::all_of(layout.controllers.begin(), layout.controllers.end(), named)) {
        layout.controllers.clear();
    }
    return layout;
}

cgroup_layout read_cgroup_layout() {
    const auto text = blocking::read_file("/proc/self/mountinfo", 4 * 1024 * 1024);
    return text ? parse_cgroup_layout(*text) : cgroup_layout{};
}

std::string own_cgroup_directory(const cgroup_layout& layout, std::string_view proc_cgroup) {
    std::string found;
    for (const auto line :
         split(proc_cgroup, '\n')) { // number:controllers:path, where a path may hold anything
        const auto first = line.find(':');
        const auto second = first == std::string_view::npos ? first : line.find(':', first + 1);
        if (second == std::string_view::npos) {
            continue;
        }
        const auto names = line.substr(first + 1, second - first - 1);
        const auto path = line.substr(second + 1);
        if (names.empty() && !layout.unified.empty()) {
            return layout.unified + std::string(path);
        }
        if (found.empty() && !names.empty() && !layout.is_unified()) {
            found = layout.directory(split(names, ',').front(), path);
        }
    }
    return found;
}

std::string cgroup_path(std::string_view service_uuid, std::string_view slot) {
    std::string path = "/sandboxd/" + std::string(service_uuid.substr(0, service_uuid.find('-')));
    if (!slot.empty()) {
        path += "/" + std::string(slot);
    }
    return path;
}

cgroup_reader::cgroup_reader(const cgroup_layout& layout, std::string_view path)
    : unified_(layout.is_unified()),
      memory_(layout.directory("memory", path)),
      pids_(layout.directory("pids", path)),
      cpu_(layout.directory("cpuacct", path)) {
    if (!memory_.empty()) {
        const auto file = memory_ + (unified_ ? "/memory.events" : "/memory.oom_control");
        oom_file_.reset(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    }
}

std::optional<std::uint64_t> cgroup_reader::oom_kills() const {
    std::array<char, 512> text; // six short lines at most
    const auto size = oom_file_ ? ::pread(oom_file_.get(), text.data(), text.size(), 0) : -1;
    if (size <= 0) {
        return std::nullopt;
    }
    return flat_keyed_value({text.data(), static_cast<std::size_t>(size)}, "oom_kill");
}

std::optional<std::uint64_t> cgroup_reader::cpu_nanoseconds() const {
    if (!unified_) {
        return number_of(cpu_, "cpuacct.usage");
    }
    const auto text = text_of(cpu_, "cpu.stat");
    const auto us = text ? flat_keyed_value(*text, "usage_usec") : std::nullopt;
    return us ? std::optional(*us * 1000) : std::nullopt;
}

std::optional<std::uint64_t> cgroup_reader::memory_limit() const {
    const auto text = text_of(memory_, unified_ ? "memory.max" : "memory.limit_in_bytes");
    if (!text) {
        return std::nullopt;
    }
    const auto limit = number(*text); // "max" is none
    return std::min(limit.value_or(host_memory()), host_memory());
}

std::optional<usage_sample> cgroup_reader::sample(std::chrono::steady_clock::time_point now) {
    usage_sample made;
    made.memory_bytes = number_of(memory_, unified_ ? "memory.current" : "memory.usage_in_bytes");
    made.memory_limit_bytes = memory_limit();
    made.pids = number_of(pids_, "pids.current");
    const auto cpu = cpu_nanoseconds();
    const std::lock_guard lock(mutex_);
    const auto passed = std::chrono::duration<double, std::nano>(now - last_at_).count();
    if (cpu && last_cpu_ && *cpu >= *last_cpu_ && passed > 0) {
        // The engine divides by the host's CPU time of all CPUs and multiplies by their number: wall time is
        // left.
        made.cpu_percent = static_cast<double>(*cpu - *last_cpu_) / passed * 100.0;
    }
    if (cpu) {
        last_cpu_ = cpu;
        last_at_ = now;
    }
    if (!made.memory_bytes && !made.pids && !cpu) {
        return std::nullopt;
    }
    return made;
}

std::optional<std::uint64_t> flat_keyed_value(std::string_view text, std::string_view key) {
    for (const auto line : split(text, '\n')) {
        if (line.size() > key.size() && line.substr(0, key.size()) == key && line[key.size()] == ' ') {
            return number(line.substr(key.size() + 1));
        }
    }
    return std::nullopt;
}

} // namespace sandboxd::launcher
