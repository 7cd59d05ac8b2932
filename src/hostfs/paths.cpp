#include "hostfs/paths.hpp"

#include <optional>

namespace sandboxd::hostfs {

namespace {

/// Takes the next component off `rest`; empty at the end.
std::string_view take_component(std::string_view& rest) noexcept {
    const auto begin = rest.find_first_not_of('/');
    if (begin == std::string_view::npos) {
        rest = {};
        return {};
    }
    rest.remove_prefix(begin);
    const auto part = rest.substr(0, rest.find('/'));
    rest.remove_prefix(part.size());
    return part;
}

/// Exactly two slashes at the start are a root of their own (POSIX leaves its meaning open); three are one.
bool has_other_root(std::string_view path) noexcept {
    return path.starts_with("//") && !path.starts_with("///");
}

/// The same, "." passed over: it names nothing.
std::string_view take_name(std::string_view& rest) noexcept {
    auto part = take_component(rest);
    while (part == ".") {
        part = take_component(rest);
    }
    return part;
}

/// What is left of `path` when the components of `top` have been taken off its front; nothing when it is
/// neither `top` nor below it.
std::optional<std::string_view> below(std::string_view path, std::string_view top) noexcept {
    for (auto wanted = take_name(top); !wanted.empty(); wanted = take_name(top)) {
        if (take_name(path) != wanted) {
            return std::nullopt;
        }
    }
    return path;
}

void append(std::string& path, std::string_view component) {
    if (!path.empty()) {
        path += '/';
    }
    path += component;
}

bool names(std::string_view path, std::string_view component) noexcept {
    for (auto part = take_component(path); !part.empty(); part = take_component(path)) {
        if (part == component) {
            return true;
        }
    }
    return false;
}

native_failure refused(refusal why, std::string_view what, std::string_view given) {
    return {why, std::string(what) + ": '" + std::string(given) + "'"};
}

} // namespace

native_result<native_path> parse_native(std::string_view given, std::string_view work_dir) {
    if (given.size() > longest_path) {
        return native_failure{refusal::ask_sandbox, "The path is too long for the service"};
    }
    if (given.find('\0') != std::string_view::npos) {
        return native_failure{refusal::bad_value, "A path can't hold a NUL character"};
    }
    if (!given.starts_with('/')) {
        return refused(refusal::bad_value, "The path must be absolute", given);
    }
    const auto rest = below(given, work_dir);
    if (has_other_root(given) || !rest) {
        return refused(refusal::ask_sandbox, "The path is outside the work directory", given);
    }
    if (names(given, ".") || names(*rest, "..")) {
        return refused(refusal::ask_sandbox, "The path has a dot component", given);
    }
    native_path out{std::string(given), {}, {}};
    auto left = *rest;
    for (auto part = take_component(left); !part.empty(); part = take_component(left)) {
        append(out.relative, part);
    }
    for (auto part = take_component(given); !part.empty(); part = take_component(given)) {
        out.normalized += '/';
        out.normalized += part;
    }
    if (out.normalized.empty()) {
        out.normalized = "/";
    }
    return out;
}

result<std::string> parse_archive(std::string_view given, std::string_view work_dir) {
    if (given.size() > longest_path) {
        return error{errc::invalid, "The path is too long"};
    }
    if (given.find('\0') != std::string_view::npos) {
        return error{errc::invalid, "A path can't hold a NUL character"};
    }
    auto rest = given;
    if (given.starts_with('/') && !has_other_root(given)) {
        rest = below(given, work_dir).value_or(given);
    }
    std::string relative;
    for (auto part = take_name(rest); !part.empty(); part = take_name(rest)) {
        if (part == "..") {
            return error{errc::invalid, "The path is outside the workspace: '" + std::string(given) + "'"};
        }
        append(relative, part);
    }
    return relative;
}

bool is_plain_name(std::string_view id) noexcept {
    return !id.empty() && id.front() != '.' && id.find('/') == std::string_view::npos &&
           id.find('\0') == std::string_view::npos;
}

split_path split(std::string_view relative) noexcept {
    const auto slash = relative.rfind('/');
    if (slash == std::string_view::npos) {
        return {{}, relative};
    }
    return {relative.substr(0, slash), relative.substr(slash + 1)};
}

} // namespace sandboxd::hostfs
