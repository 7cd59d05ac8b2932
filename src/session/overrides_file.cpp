#include "session/overrides_file.hpp"

#include "core/fd.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace sandboxd::session::blocking {

namespace {

constexpr std::size_t longest = 1024 * 1024;

std::string state_of(const struct stat& facts) {
    return std::to_string(facts.st_ino) + "." + std::to_string(facts.st_size) + "." +
           std::to_string(facts.st_mtim.tv_sec) + "." + std::to_string(facts.st_mtim.tv_nsec);
}

result<std::string> read_whole(int fd) {
    std::string text;
    char piece[16 * 1024];
    for (;;) {
        const ssize_t got = ::read(fd, piece, sizeof piece);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return os_error("it can't be read", errno);
        }
        if (got == 0) {
            return text;
        }
        text.append(piece, static_cast<std::size_t>(got));
        if (text.size() > longest) {
            return error{errc::invalid, "it is larger than 1 MiB"};
        }
    }
}

} // namespace

std::optional<overrides_file> read_overrides(const std::string& path, const std::string& seen) {
    const core::unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!fd) {
        const int why = errno;
        auto state = "open." + std::to_string(why); // said once, not at every look
        if (why == ENOENT || state == seen) {
            return std::nullopt;
        }
        return overrides_file{std::move(state), os_error("it can't be opened", why)};
    }
    struct stat facts{};
    if (::fstat(fd.get(), &facts) != 0 || state_of(facts) == seen) {
        return std::nullopt;
    }
    if (!S_ISREG(facts.st_mode)) {
        return overrides_file{state_of(facts), error{errc::invalid, "it is not a file"}};
    }
    return overrides_file{state_of(facts), read_whole(fd.get())};
}

} // namespace sandboxd::session::blocking
