#include "sandbox/memory/file_tree.hpp"

#include "core/utf8.hpp"

#include <algorithm>
#include <fnmatch.h>
#include <regex>
#include <utility>
#include <vector>

namespace sandboxd::sandboxes::memory {

namespace {

const error no_such_file{errc::not_found, "No such file or directory"};

std::string parent_of(const std::string& path) {
    const auto slash = path.rfind('/');
    return slash == 0 ? "/" : path.substr(0, slash);
}

std::string_view base_name(std::string_view path) {
    return path.substr(path.rfind('/') + 1);
}

/// What stands before the name of everything below a directory.
std::string below(const std::string& directory) {
    return directory == "/" ? directory : directory + "/";
}

/// "sub/x" below "." is shown as "sub/x" by glob and as "./sub/x" by grep and ls.
std::string shown(std::string_view root, std::string_view rest) {
    while (root.size() > 1 && root.ends_with('/')) {
        root.remove_suffix(1);
    }
    return std::string(root) + (root.ends_with('/') ? "" : "/") + std::string(rest);
}

std::uint64_t count(std::string_view bytes, std::string_view what) {
    if (what.empty()) {
        return core::count_characters(bytes) + 1;
    }
    std::uint64_t found = 0;
    for (auto at = bytes.find(what); at != std::string_view::npos; at = bytes.find(what, at + what.size())) {
        ++found;
    }
    return found;
}

std::string replaced(std::string_view bytes, std::string_view what, std::string_view with) {
    std::string out;
    if (what.empty()) {
        out = with;
        while (!bytes.empty()) {
            const auto length = core::next_sequence(bytes).length;
            out.append(bytes.substr(0, length)).append(with);
            bytes.remove_prefix(length);
        }
        return out;
    }
    for (;;) {
        const auto at = bytes.find(what);
        out.append(bytes.substr(0, at));
        if (at == std::string_view::npos) {
            return out;
        }
        out.append(with);
        bytes.remove_prefix(at + what.size());
    }
}

bool every_line_ends_with_crlf(std::string_view bytes) {
    const auto plain = static_cast<std::uint64_t>(std::ranges::count(bytes, '\n'));
    return plain > 0 && plain == count(bytes, "\r\n");
}

/// Line ends as CR LF.
std::string with_crlf(std::string_view text) {
    return replaced(replaced(text, "\r\n", "\n"), "\n", "\r\n");
}

bool has_hidden_part(std::string_view path) {
    return path.starts_with('.') || path.find("/.") != std::string_view::npos;
}

} // namespace

file_tree::file_tree(std::string_view work_dir) : work_dir_(work_dir.empty() ? "/workspace" : work_dir) {
    nodes_["/"].is_dir = true;
    nodes_["/tmp"].is_dir = true;
    (void)make_parents(below(work_dir_) + "x");
}

std::string file_tree::absolute(std::string_view path) const {
    const std::string whole = path.starts_with('/') ? std::string(path) : work_dir_ + "/" + std::string(path);
    std::vector<std::string> parts;
    for (std::size_t at = 0; at < whole.size();) {
        const auto end = std::min(whole.find('/', at), whole.size());
        const auto part = whole.substr(at, end - at);
        if (part == ".." && !parts.empty()) {
            parts.pop_back();
        } else if (!part.empty() && part != "." && part != "..") {
            parts.push_back(part);
        }
        at = end + 1;
    }
    std::string out;
    for (const auto& part : parts) {
        out += "/" + part;
    }
    return out.empty() ? "/" : out;
}

error file_tree::missing(const std::string& path) const {
    for (auto up = path; up != "/";) {
        up = parent_of(up);
        const auto at = nodes_.find(up);
        if (at != nodes_.end()) {
            return at->second.is_dir ? no_such_file : error{errc::invalid, "Not a directory"};
        }
    }
    return no_such_file;
}

result<const file_tree::node*> file_tree::regular(const std::string& path) const {
    const auto at = nodes_.find(path);
    if (at == nodes_.end()) {
        return missing(path);
    }
    if (at->second.is_dir) {
        return error{errc::invalid, "Is a directory"};
    }
    return &at->second;
}

result<void> file_tree::make_parents(const std::string& path) {
    std::vector<std::string> wanted;
    for (auto up = parent_of(path);; up = parent_of(up)) {
        const auto at = nodes_.find(up);
        if (at != nodes_.end() && !at->second.is_dir) {
            return error{errc::invalid, std::string(parents_failed) + "Not a directory"};
        }
        if (at != nodes_.end()) {
            break;
        }
        wanted.push_back(up);
    }
    for (const auto& one : wanted) {
        nodes_[one].is_dir = true;
    }
    return {};
}

result<file_content> file_tree::read(std::string_view path, std::uint64_t max_bytes) const {
    const std::lock_guard lock(mutex_);
    const auto file = regular(absolute(path));
    if (!file) {
        return file.error();
    }
    file_content out;
    out.over_limit = (*file)->bytes.size() > max_bytes;
    if (out.over_limit) {
        out.size = (*file)->bytes.size();
    } else {
        out.bytes = (*file)->bytes;
    }
    return out;
}

result<void> file_tree::write(std::string_view path, std::string content) {
    const std::lock_guard lock(mutex_);
    const auto where = absolute(path);
    const auto at = nodes_.find(where);
    if (path.ends_with('/') || (at != nodes_.end() && at->second.is_dir)) {
        return error{errc::invalid, "Is a directory"};
    }
    if (auto made = make_parents(where); !made) {
        return made;
    }
    nodes_[where].bytes = std::move(content);
    return {};
}

result<edit_result> file_tree::edit(const edit_request& request) {
    const std::lock_guard lock(mutex_);
    const auto where = absolute(request.path);
    if (const auto file = regular(where); !file) {
        return file.error();
    }
    std::string& bytes = nodes_[where].bytes;
    edit_result out;
    if (bytes.empty()) {
        out.empty = true;
        return out;
    }
    if (bytes.size() > request.max_bytes) {
        out.over_limit = true;
        out.size = bytes.size();
        return out;
    }
    if (!request.any_bytes && !core::is_utf8(bytes)) {
        out.binary = true;
        return out;
    }
    std::string old_text = request.old_text;
    std::string new_text = request.new_text;
    out.occurrences = count(bytes, old_text);
    if (out.occurrences == 0 && every_line_ends_with_crlf(bytes)) {
        old_text = with_crlf(old_text);
        new_text = with_crlf(new_text);
        out.occurrences = count(bytes, old_text);
    }
    if (out.occurrences == 1 || (out.occurrences > 1 && request.replace_all)) {
        bytes = replaced(bytes, old_text, new_text);
    }
    return out;
}

bool file_tree::exists(std::string_view path) const {
    const std::lock_guard lock(mutex_);
    return regular(absolute(path)).has_value();
}

result<file_listing> file_tree::ls(std::string_view path) const {
    const std::lock_guard lock(mutex_);
    const auto where = absolute(path);
    const auto at = nodes_.find(where);
    if (at == nodes_.end()) {
        return missing(where);
    }
    if (!at->second.is_dir) {
        return error{errc::invalid, "Not a directory"};
    }
    file_listing out;
    const auto prefix = below(where);
    for (auto one = nodes_.upper_bound(prefix); one != nodes_.end() && one->first.starts_with(prefix);
         ++one) {
        const auto name = one->first.substr(prefix.size());
        if (name.find('/') == std::string::npos) {
            out.entries.push_back({name, shown(path, name), one->second.is_dir, one->second.bytes.size()});
        }
    }
    std::ranges::sort(out.entries, {},
                      [](const file_entry& one) { return std::pair(!one.is_dir, one.name); });
    return out;
}

result<file_listing> file_tree::glob(const glob_request& request) const {
    const std::lock_guard lock(mutex_);
    const auto root = absolute(request.path);
    const auto prefix = below(root);
    auto pattern = std::string_view(request.pattern);
    if (pattern.starts_with("**/")) {
        pattern.remove_prefix(3);
    }
    const std::string ending = "*/" + std::string(pattern);
    file_listing out;
    for (auto one = nodes_.upper_bound(prefix); one != nodes_.end() && one->first.starts_with(prefix);
         ++one) {
        const auto rest = one->first.substr(prefix.size());
        if (!one->second.is_dir && ::fnmatch(ending.c_str(), ("/" + rest).c_str(), 0) == 0) {
            const auto path = request.path == "." ? rest : shown(request.path, rest);
            out.entries.push_back({std::string(base_name(rest)), path, false, std::nullopt});
        }
    }
    std::ranges::sort(out.entries, {}, &file_entry::path);
    return out;
}

result<grep_result> file_tree::grep(const grep_request& request) const {
    std::regex expression;
    try {
        expression.assign(request.pattern, std::regex::basic);
    } catch (const std::regex_error&) {
        return error{errc::invalid, "The pattern is no regular expression"};
    }
    const std::lock_guard lock(mutex_);
    const auto root = absolute(request.path);
    const auto at = nodes_.find(root);
    if (at == nodes_.end()) {
        return missing(root);
    }
    const auto prefix = at->second.is_dir ? below(root) : root;
    grep_result out;
    for (auto one = nodes_.lower_bound(prefix); one != nodes_.end() && one->first.starts_with(prefix);
         ++one) {
        const auto rest = one->first.substr(prefix.size());
        const bool wanted = !request.glob || ::fnmatch(request.glob->c_str(),
                                                       std::string(base_name(one->first)).c_str(), 0) == 0;
        if (one->second.is_dir || !wanted || (request.ignore_hidden && has_hidden_part(rest))) {
            continue;
        }
        std::uint64_t number = 0;
        std::string_view left = one->second.bytes;
        while (!left.empty()) {
            const auto end = left.find('\n');
            const std::string line(left.substr(0, end));
            left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
            ++number;
            if (std::regex_search(line, expression)) {
                out.matches.push_back(
                    {rest.empty() ? request.path : shown(request.path, rest), number, line});
            }
        }
    }
    return out;
}

} // namespace sandboxd::sandboxes::memory
