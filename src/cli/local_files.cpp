#include "cli/local_files.hpp"

#include "cli/terminal.hpp"
#include "client/failure.hpp"
#include "core/fd.hpp"
#include "core/random.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>

namespace sandboxd::cli::local {

namespace {

constexpr std::size_t largest = std::size_t{1} << 30U;

client::failure because(const std::string& path, int number) {
    return client::failed(client::fault::invalid, path + ": " + std::strerror(number));
}

client::outcome<std::string> read_all(int from, const std::string& path) {
    std::string data;
    std::array<char, 65536> part{};
    while (true) {
        const ssize_t got = ::read(from, part.data(), part.size());
        if (got < 0 && errno != EINTR) {
            return because(path, errno);
        }
        if (got == 0) {
            return data;
        }
        data.append(part.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        if (data.size() > largest) {
            return client::failed(client::fault::invalid, path + " is larger than 1 GiB: copy it in parts");
        }
    }
}

bool write_whole(int to, std::string_view data) {
    while (!data.empty()) {
        const ssize_t put = ::write(to, data.data(), data.size());
        if (put < 0 && errno != EINTR) {
            return false;
        }
        data.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(put, 0)));
    }
    return true;
}

} // namespace

kind kind_of(const std::string& path) {
    struct stat found{};
    if (::stat(path.c_str(), &found) != 0) {
        return kind::missing;
    }
    return S_ISREG(found.st_mode) ? kind::file : S_ISDIR(found.st_mode) ? kind::directory : kind::other;
}

bool is_executable(const std::string& path) {
    struct stat found{};
    return ::stat(path.c_str(), &found) == 0 && (found.st_mode & S_IXUSR) != 0;
}

client::outcome<std::string> read(const std::string& path) {
    if (path == "-") {
        return read_all(STDIN_FILENO, "standard input");
    }
    const core::unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file) {
        return because(path, errno);
    }
    return read_all(file.get(), path);
}

client::outcome<void> write(const std::string& path, const std::string& data) {
    if (path == "-") {
        return print(data) ? client::outcome<void>()
                           : client::outcome<void>(because("standard output", errno));
    }
    // A device or a pipe is written to; a file is replaced when its new content is whole.
    if (kind_of(path) == kind::other) {
        const core::unique_fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
        return file && write_whole(file.get(), data) ? client::outcome<void>() : because(path, errno);
    }
    std::error_code failed;
    auto target = std::filesystem::weakly_canonical(path, failed).string(); // through a link to what it means
    target = failed ? path : target;
    const std::string beside = target + "." + core::random_hex(4) + ".tmp";
    struct stat old{};
    const bool replaces = ::stat(target.c_str(), &old) == 0;
    // At no time open to more than what it replaces was.
    constexpr mode_t usual = 0666;
    const mode_t first = replaces ? old.st_mode & usual : usual;
    core::unique_fd file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, first));
    if (!file) {
        return because(path, errno);
    }
    constexpr mode_t permissions = 07777;
    const bool whole = write_whole(file.get(), data) &&
                       (!replaces || ::fchmod(file.get(), old.st_mode & permissions) == 0) &&
                       ::rename(beside.c_str(), target.c_str()) == 0;
    if (!whole) {
        const int number = errno;
        ::unlink(beside.c_str());
        return because(path, number);
    }
    return {};
}

client::outcome<void> make_directory(const std::string& path) {
    std::error_code failed;
    std::filesystem::create_directories(path, failed);
    if (failed) {
        return because(path, failed.value());
    }
    return {};
}

client::outcome<std::vector<std::string>> names_in(const std::string& path) {
    std::error_code failed;
    std::vector<std::string> names;
    for (auto at = std::filesystem::directory_iterator(path, failed);
         !failed && at != std::filesystem::directory_iterator(); at.increment(failed)) {
        names.push_back(at->path().filename().string());
    }
    if (failed) {
        return because(path, failed.value());
    }
    std::sort(names.begin(), names.end());
    return names;
}

std::string joined(const std::string& folder, const std::string& name) {
    return folder.empty() || folder.ends_with('/') ? folder + name : folder + "/" + name;
}

std::string base_name(const std::string& path) {
    const auto end = path.find_last_not_of('/');
    if (end == std::string::npos) {
        return "";
    }
    const auto slash = path.find_last_of('/', end);
    const auto begin = slash == std::string::npos ? 0 : slash + 1;
    const auto name = path.substr(begin, end - begin + 1);
    return name == "." || name == ".." ? "" : name;
}

} // namespace sandboxd::cli::local
