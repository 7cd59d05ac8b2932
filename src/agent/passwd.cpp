#include "agent/passwd.hpp"

#include "agent/descriptor.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <charconv>

namespace sandboxd::agent {

namespace {

constexpr std::size_t most_groups = 1024;
constexpr std::size_t most_bytes = 1024 * 1024;

/// Takes the text up to `separator` off the front.
std::string_view cut(std::string_view& text, char separator) {
    const auto end = text.find(separator);
    const auto out = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    return out;
}

std::optional<std::uint32_t> number(std::string_view text) {
    std::uint32_t out = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (error != std::errc{} || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return out;
}

} // namespace

std::optional<passwd_entry> find_user(std::string_view passwd, uid_t user) {
    while (!passwd.empty()) {
        auto line = cut(passwd, '\n');
        passwd_entry entry;
        entry.name = cut(line, ':');
        cut(line, ':');
        const auto uid = number(cut(line, ':'));
        const auto gid = number(cut(line, ':'));
        cut(line, ':');
        entry.home = cut(line, ':');
        if (uid && gid && *uid == user) {
            entry.group = *gid;
            return entry;
        }
    }
    return std::nullopt;
}

std::vector<gid_t> groups_of(std::string_view group, std::string_view name) {
    std::vector<gid_t> out;
    while (!group.empty() && out.size() < most_groups) {
        auto line = cut(group, '\n');
        cut(line, ':');
        cut(line, ':');
        const auto gid = number(cut(line, ':'));
        while (gid && !line.empty()) {
            if (cut(line, ',') == name) {
                out.push_back(*gid);
                break;
            }
        }
    }
    return out;
}

std::string read_small_file(const char* path) {
    std::string out;
    const descriptor file(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    struct stat status{};
    if (!file.valid() || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
        return out;
    }
    char buffer[4096];
    ssize_t count = 0;
    while (out.size() < most_bytes && (count = read(file.get(), buffer, sizeof buffer)) > 0) {
        out.append(buffer, static_cast<std::size_t>(count));
    }
    return out;
}

} // namespace sandboxd::agent
