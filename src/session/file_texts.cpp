#include "session/file_texts.hpp"

#include <spdlog/fmt/fmt.h>

namespace sandboxd::session {

namespace {
constexpr std::string_view slice_hint =
    "Use execute() to read a slice of it, for example with sed -n '1,200p' and its path.";

std::string not_found(std::string_view path) {
    return fmt::format("File '{}' not found", path);
}

/// Missing is told from what is there and is no file or can't be opened.
std::string not_readable(std::string_view path, const error& why) {
    return why.code == errc::not_found ? not_found(path)
                                       : fmt::format("{}: {}", not_found(path), why.message);
}

bool is_about_the_file(errc code) {
    return code == errc::not_found || code == errc::invalid || code == errc::denied;
}
} // namespace

std::string joined_path(std::string_view work_dir, std::string_view path) {
    if (path.starts_with('/')) {
        return std::string(path);
    }
    std::string out(work_dir);
    while (out.size() > 1 && out.back() == '/') {
        out.pop_back();
    }
    while (!path.empty()) {
        const auto end = path.find('/');
        const auto part = path.substr(0, end);
        path.remove_prefix(end == std::string_view::npos ? path.size() : end + 1);
        if (!part.empty() && part != ".") {
            out.append(out.ends_with('/') ? "" : "/").append(part);
        }
    }
    return out;
}

bool is_error_text(std::string_view content) {
    return content.starts_with("Error:") || content.starts_with("[Error");
}

std::string read_failure(std::string_view path, const error& why) {
    if (is_about_the_file(why.code)) {
        return "Error: " + not_readable(path, why);
    }
    return fmt::format("[Error reading file: {}]", why.message);
}

std::string over_limit_text(std::optional<std::uint64_t> size, std::int64_t most) {
    if (size) {
        return fmt::format("[Error: File is {} bytes, over the {}-byte read limit. {}]", *size, most,
                           slice_hint);
    }
    return fmt::format("[Error: File exceeds the {}-byte read limit. {}]", most, slice_hint);
}

std::string write_failure(const error& why) {
    const std::string_view cause = why.message;
    if (cause.starts_with(parents_failed)) {
        return fmt::format("Failed to create directory: {}", cause.substr(parents_failed.size()));
    }
    return fmt::format("Failed to write file: {}", cause);
}

std::string grep_failure(std::string_view path, const error& why) {
    const bool about_the_path = why.code == errc::not_found || why.code == errc::denied;
    return about_the_path ? fmt::format("Error: {}: {}", path, why.message) : "Error: " + why.message;
}

std::optional<error> path_fault(std::string_view path) {
    if (path.empty()) {
        return error{errc::invalid, "The path is empty"};
    }
    if (path.find('\0') != std::string_view::npos) {
        return error{errc::invalid, "The path holds a NUL"};
    }
    return std::nullopt;
}

edit_complaint edit_failure(std::string_view path, const error& why) {
    std::string text = is_about_the_file(why.code) ? not_readable(path, why)
                                                   : fmt::format("Failed to edit file: {}", why.message);
    return {text, text};
}

edit_complaint text_absent(std::string_view old_text) {
    return {fmt::format("String '{}' not found in file", old_text), "String not found in file"};
}

edit_complaint text_ambiguous(std::string_view old_text, std::uint64_t occurrences) {
    return {
        fmt::format("String '{}' found {} times. Pass replace_all=True to replace each, or more context to "
                    "single one out.",
                    old_text, occurrences),
        fmt::format("String found {} times", occurrences)};
}

} // namespace sandboxd::session
