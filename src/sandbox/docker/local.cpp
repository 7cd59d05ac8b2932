#include "sandbox/docker/local.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

namespace sandboxd::sandboxes::docker_backend {

namespace {

std::string read_small(const std::string& path) {
    const core::unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    std::array<char, 8192> text{};
    std::string all;
    while (file && all.size() < text.size()) {
        const auto count = ::read(file.get(), text.data(), text.size());
        if (count <= 0) {
            break;
        }
        all.append(text.data(), static_cast<std::size_t>(count));
    }
    return all;
}

bool lists(std::string_view controllers, std::string_view wanted) {
    while (!controllers.empty()) {
        const auto end = controllers.find(',');
        if (controllers.substr(0, end) == wanted) {
            return true;
        }
        controllers.remove_prefix(end == std::string_view::npos ? controllers.size() : end + 1);
    }
    return false;
}

} // namespace

std::optional<std::string> memory_cgroup(std::string_view text) {
    std::optional<std::string> unified;
    while (!text.empty()) {
        const auto end = text.find('\n');
        const auto line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        const auto first = line.find(':');
        const auto second = first == std::string_view::npos ? first : line.find(':', first + 1);
        if (second == std::string_view::npos) {
            continue;
        }
        const auto controllers = line.substr(first + 1, second - first - 1);
        std::string path(line.substr(second + 1));
        if (lists(controllers, "memory")) {
            return path;
        }
        if (controllers.empty()) {
            unified = std::move(path);
        }
    }
    return unified;
}

std::optional<local_process> find_process(pid_t pid, std::string_view container) {
    if (pid <= 0 || container.empty()) {
        return std::nullopt;
    }
    local_process found;
    found.pid = pid;
    found.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!found.pidfd) {
        return std::nullopt;
    }
    auto cgroup = memory_cgroup(read_small("/proc/" + std::to_string(pid) + "/cgroup"));
    if (!cgroup || cgroup->find(container) == std::string::npos) {
        return std::nullopt;
    }
    found.cgroup = std::move(*cgroup);
    return found;
}

} // namespace sandboxd::sandboxes::docker_backend
