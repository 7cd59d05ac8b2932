// The only part of this room that touches the host (load.hpp: host_facts).
#include "config/load.hpp"
#include "config/text.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>

namespace sandboxd::config {
namespace {

error unreadable(const std::string& path, const char* cause) {
    return error{errc::io, in_quotes(path) + " can't be read: " + cause};
}

struct descriptor {
    int fd;
    explicit descriptor(int number) : fd(number) {}
    descriptor(const descriptor&) = delete;
    descriptor& operator=(const descriptor&) = delete;
    ~descriptor() {
        if (fd >= 0) {
            ::close(fd);
        }
    }
};

result<std::string> read_start(const std::string& path, std::size_t max_bytes) {
    // Without blocking: the name may be a FIFO's. Files under /proc and secrets' mounts say size 0, so read
    // to the end.
    const descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.fd < 0) {
        return unreadable(path, std::strerror(errno));
    }
    struct stat status{};
    if (::fstat(file.fd, &status) != 0 || S_ISDIR(status.st_mode)) {
        return unreadable(path, "it is a directory");
    }
    std::string out;
    std::array<char, 4096> buffer{};
    while (out.size() < max_bytes) {
        const ssize_t count = ::read(file.fd, buffer.data(), std::min(buffer.size(), max_bytes - out.size()));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return unreadable(path, std::strerror(errno));
        }
        if (count == 0) {
            break;
        }
        out.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return out;
}

} // namespace

host_facts this_host() {
    host_facts out;
    out.is_root = ::geteuid() == 0;
    out.cores = std::max<std::int64_t>(1, std::thread::hardware_concurrency());
    std::error_code ignored;
    out.current_dir = std::filesystem::current_path(ignored).string();
    out.read_file = read_start;
    return out;
}

environment this_environment() {
    environment out;
    for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
        const std::string_view pair(*at);
        const auto equals = pair.find('=');
        if (equals != std::string_view::npos) {
            out.emplace(pair.substr(0, equals), pair.substr(equals + 1));
        }
    }
    return out;
}

result<file_text> open_file(const std::string& path, const host_facts& host) {
    constexpr std::size_t longest = 1U << 20U;
    auto text = host.read_file(path, longest + 1);
    if (!text) {
        return error{errc::invalid, "--config: " + text.error().message};
    }
    if (text->size() > longest) {
        return error{errc::invalid, "--config: " + in_quotes(path) + " is larger than 1 MiB"};
    }
    return file_text{path, std::move(*text)};
}

} // namespace sandboxd::config
