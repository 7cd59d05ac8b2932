#include "docker/endpoint.hpp"

#include "core/fd.hpp"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>

namespace sandboxd::docker {

namespace {

constexpr std::size_t largest_file = 1U << 20U;

result<std::optional<std::string>> read_file(const std::string& path) {
    // Not blocking: a FIFO in its place must not hold the caller.
    const core::unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file) {
        if (errno == ENOENT || errno == ENOTDIR) {
            return std::optional<std::string>();
        }
        return os_error("cannot open " + path, errno);
    }
    std::string text;
    std::array<char, 16384> part{};
    while (true) {
        const ssize_t got = ::read(file.get(), part.data(), part.size());
        if (got < 0) {
            return os_error("cannot read " + path, errno);
        }
        if (got == 0) {
            return std::optional<std::string>(std::move(text));
        }
        text.append(part.data(), static_cast<std::size_t>(got));
        if (text.size() > largest_file) {
            return error{errc::invalid, path + " is larger than 1 MiB"};
        }
    }
}

} // namespace

environment process_environment() {
    return [](std::string_view name) -> std::optional<std::string> {
        const char* value = std::getenv(std::string(name).c_str());
        return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
    };
}

file_reader disk_files() {
    return [](const std::string& path) { return read_file(path); };
}

} // namespace sandboxd::docker
