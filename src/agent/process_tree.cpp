#include "agent/process_tree.hpp"

#include "agent/descriptor.hpp"

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>

namespace sandboxd::agent {

namespace {

constexpr std::size_t longest_environment = 2 * 1024 * 1024;

/// The number at field `index` (0 is the first) of fields parted by single spaces.
template <class T>
bool number_at(std::string_view fields, std::size_t index, T& out) {
    for (; index > 0; --index) {
        const auto space = fields.find(' ');
        if (space == std::string_view::npos) {
            return false;
        }
        fields.remove_prefix(space + 1);
    }
    return std::from_chars(fields.data(), fields.data() + fields.size(), out).ec == std::errc{};
}

/// The environment that a process was started with holds `mark` as a whole.
bool has_variable(pid_t pid, const std::string& mark) {
    char path[32];
    std::snprintf(path, sizeof path, "/proc/%d/environ", static_cast<int>(pid));
    const descriptor file(open(path, O_RDONLY | O_CLOEXEC));
    std::string text(1, '\0');
    char piece[4096];
    for (ssize_t count = 0; file.valid() && text.size() < longest_environment &&
                            (count = read(file.get(), piece, sizeof piece)) > 0;) {
        text.append(piece, static_cast<std::size_t>(count));
    }
    return text.find('\0' + mark + '\0') != std::string::npos;
}

bool by_parent(const process& a, const process& b) {
    return a.parent < b.parent;
}

} // namespace

std::optional<process> parse_stat(std::string_view line) {
    process out;
    const auto name_end = line.rfind(')');
    if (!number_at(line, 0, out.pid) || name_end == std::string_view::npos || line.size() < name_end + 4) {
        return std::nullopt;
    }
    const auto fields = line.substr(name_end + 2);
    out.state = fields[0];
    if (!number_at(fields, 1, out.parent) || !number_at(fields, 3, out.session) ||
        !number_at(fields, 19, out.started)) {
        return std::nullopt;
    }
    return out;
}

std::vector<process> list_processes() {
    std::vector<process> out;
    DIR* const directory = opendir("/proc");
    if (directory == nullptr) {
        return out;
    }
    while (const dirent* const entry = readdir(directory)) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9') {
            continue;
        }
        char path[64];
        std::snprintf(path, sizeof path, "%.32s/stat", entry->d_name);
        const descriptor file(openat(dirfd(directory), path, O_RDONLY | O_CLOEXEC));
        char text[512];
        const auto length = file.valid() ? read(file.get(), text, sizeof text) : 0;
        if (length <= 0) {
            continue;
        }
        if (const auto found = parse_stat({text, static_cast<std::size_t>(length)})) {
            out.push_back(*found);
        }
    }
    closedir(directory);
    return out;
}

std::vector<process> descendants(std::vector<process> all, pid_t root, const std::vector<pid_t>& except) {
    std::sort(all.begin(), all.end(), by_parent);
    std::vector<process> out;
    std::size_t next = 0;
    for (auto parent = root;; parent = out[next++].pid) {
        const auto [first, last] =
            std::equal_range(all.begin(), all.end(), process{.parent = parent}, by_parent);
        for (auto child = first; child != last; ++child) {
            // A process is listed once, so that no cycle can come of pids used again during the walk.
            if (child->pid != root && !std::binary_search(except.begin(), except.end(), child->pid)) {
                out.push_back(*child);
            }
            child->pid = root;
        }
        if (next == out.size()) {
            return out;
        }
    }
}

bool tree_signaller::was_told(const process& one) const {
    return std::any_of(told_.begin(), told_.end(), [&](const process& told) {
        return told.pid == one.pid && told.started == one.started;
    });
}

void tree_signaller::add_strays(const std::vector<process>& all, pid_t root,
                                std::vector<process>& found) const {
    const auto is_stray = [&](const process& one) {
        return one.parent == signs_.keeper && one.pid != root &&
               (one.session == signs_.session || was_told(one) || has_variable(one.pid, signs_.mark));
    };
    for (const auto& one : all) {
        if (is_stray(one)) {
            found.push_back(one);
            const auto below = descendants(all, one.pid);
            found.insert(found.end(), below.begin(), below.end());
        }
    }
}

std::size_t tree_signaller::round(pid_t root, int signal, const spared& spare) {
    const auto all = list_processes();
    auto found = descendants(all, root, spare.with_descendants ? spare.pids : std::vector<pid_t>());
    if (signs_.keeper != 0) {
        add_strays(all, root, found);
    }
    std::size_t living = 0;
    for (const auto& one : found) {
        const bool ended = one.state == 'Z' || one.state == 'X';
        if (ended || std::binary_search(spare.pids.begin(), spare.pids.end(), one.pid)) {
            continue;
        }
        ++living;
        const bool told = was_told(one);
        if (told && signal != SIGKILL) {
            continue;
        }
        if (!told && (signal != SIGKILL || signs_.keeper != 0)) {
            told_.push_back(one);
        }
        kill(one.pid, signal);
        if (signal != SIGKILL) {
            kill(one.pid, SIGCONT); // a stopped process could not end
        }
    }
    return living;
}

} // namespace sandboxd::agent
