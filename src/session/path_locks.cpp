#include "session/path_locks.hpp"

#include <utility>
#include <vector>

namespace sandboxd::session {

std::string lock_key(std::string_view work_dir, std::string_view path) {
    std::vector<std::string_view> parts;
    const auto walk = [&parts](std::string_view text) {
        while (!text.empty()) {
            const auto end = text.find('/');
            const auto part = text.substr(0, end);
            text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
            if (part == ".." && !parts.empty()) {
                parts.pop_back();
            } else if (!part.empty() && part != "." && part != "..") {
                parts.push_back(part);
            }
        }
    };
    if (!path.starts_with('/')) {
        walk(work_dir);
    }
    walk(path);
    std::string key;
    for (const auto part : parts) {
        key.append("/").append(part);
    }
    return key.empty() ? "/" : key;
}

path_locks::place::place(path_locks& owner, std::string key) : owner_(owner), key_(std::move(key)) {
    const std::lock_guard lock(owner_.mutex_);
    auto& line = owner_.lines_[key_];
    line.push_back(this);
    if (line.size() == 1) {
        wake_.set();
    }
}

path_locks::place::~place() {
    const std::lock_guard lock(owner_.mutex_);
    const auto at = owner_.lines_.find(key_);
    auto& line = at->second;
    const bool first = line.front() == this;
    std::erase(line, this);
    if (line.empty()) {
        owner_.lines_.erase(at);
    } else if (first) {
        line.front()->wake_.set(); // under the lock: its place can't go meanwhile
    }
}

bool path_locks::place::granted() const {
    const std::lock_guard lock(owner_.mutex_);
    return owner_.lines_.at(key_).front() == this;
}

std::size_t path_locks::busy() const {
    const std::lock_guard lock(mutex_);
    return lines_.size();
}

} // namespace sandboxd::session
