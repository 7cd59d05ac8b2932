#include "agent/path_search.hpp"

#include <cerrno>
#include <climits>
#include <cstring>

namespace sandboxd::agent {

namespace {

bool look_further(int error) {
    return error == ENOENT || error == ENOTDIR || error == EACCES || error == ENAMETOOLONG ||
           error == ELOOP || error == ESTALE || error == ENODEV || error == ETIMEDOUT;
}

} // namespace

int exec_along_path(const char* program, std::string_view path, try_exec attempt, void* context) {
    const auto length = std::strlen(program);
    if (length == 0) {
        return ENOENT;
    }
    if (std::memchr(program, '/', length) != nullptr) {
        return attempt(program, context);
    }
    if (length > NAME_MAX) {
        return ENAMETOOLONG;
    }
    bool refused = false;
    char file[PATH_MAX + NAME_MAX + 2];
    for (bool last = false; !last;) {
        const auto colon = path.find(':');
        const auto folder = path.substr(0, colon);
        last = colon == std::string_view::npos;
        path.remove_prefix(last ? path.size() : colon + 1);
        if (folder.size() > PATH_MAX) {
            continue;
        }
        std::memcpy(file, folder.data(), folder.size());
        auto at = folder.size();
        if (at != 0) {
            file[at++] = '/';
        }
        std::memcpy(file + at, program, length + 1);
        const int error = attempt(file, context);
        if (!look_further(error)) {
            return error;
        }
        refused = refused || error == EACCES;
    }
    return refused ? EACCES : ENOENT;
}

} // namespace sandboxd::agent
