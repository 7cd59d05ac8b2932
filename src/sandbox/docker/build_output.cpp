#include "sandbox/docker/build_output.hpp"

#include <charconv>
#include <optional>
#include <string_view>

namespace sandboxd::sandboxes::docker_backend {

namespace {

constexpr std::size_t most_lines = 25;
constexpr std::size_t most_bytes = 3000;
constexpr std::size_t longest_line = 300;

std::optional<std::uint32_t> take_number(std::string_view& text) {
    std::uint32_t value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed != std::errc()) {
        return std::nullopt;
    }
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return value;
}

bool take(std::string_view& text, std::string_view word) {
    if (!text.starts_with(word)) {
        return false;
    }
    text.remove_prefix(word.size());
    return true;
}

/// "2/5": the step that begins.
std::optional<images::progress> take_step(std::string_view& text) {
    const auto done = take_number(text);
    if (!done || !take(text, "/")) {
        return std::nullopt;
    }
    const auto of = take_number(text);
    if (!of) {
        return std::nullopt;
    }
    return images::progress{"", *done, *of};
}

std::optional<images::progress> step_in(std::string_view line) {
    auto classic = line;
    if (take(classic, "Step ")) {
        auto step = take_step(classic);
        if (step && take(classic, " : ")) {
            step->text = classic;
            return step;
        }
        return std::nullopt;
    }
    auto kit = line;
    if (take(kit, "#") && take_number(kit) && take(kit, " [")) {
        // What stands before the count, in "[stage-0 2/4]" or "[linux/amd64 2/4]", depends on the frontend.
        const auto end = kit.find("] ");
        const auto blank = kit.substr(0, end).rfind(' ');
        kit.remove_prefix(end == std::string_view::npos || blank == std::string_view::npos ? 0 : blank + 1);
        auto step = take_step(kit);
        if (step && take(kit, "] ")) {
            step->text = kit;
            return step;
        }
    }
    return std::nullopt;
}

/// "words" of BuildKit's "#9 0.370 words", which a step has written; any other line as it is.
std::string_view written_in(std::string_view line) {
    auto left = line;
    if (take(left, "#") && take_number(left) && take(left, " ") && take_number(left) && take(left, ".") &&
        take_number(left)) {
        take(left, " ");
        return left;
    }
    return line;
}

} // namespace

void build_output::add(const std::string& line) {
    images::progress news;
    {
        const std::lock_guard lock(mutex_);
        if (const auto step = step_in(line)) {
            latest_ = *step;
            of_kit_ = line.starts_with('#');
            lines_.clear();
        } else if (of_kit_ && line == "------") {
            repeats_ = !repeats_;
        } else if (!repeats_ && !line.starts_with(" ---> ")) {
            std::string words(of_kit_ ? written_in(line) : line);
            lines_.push_back(words.size() > longest_line ? words.substr(0, longest_line) + "..." : words);
            if (lines_.size() > most_lines) {
                lines_.pop_front();
            }
        }
        news = latest_;
    }
    if (tell_) {
        tell_(news);
    }
}

std::string build_output::last_lines() const {
    const std::lock_guard lock(mutex_);
    std::string out = latest_.text;
    std::size_t left = most_bytes;
    auto first = lines_.end();
    while (first != lines_.begin() && (first - 1)->size() < left) {
        --first;
        left -= first->size();
    }
    for (; first != lines_.end(); ++first) {
        out += (out.empty() ? "" : "\n") + *first;
    }
    return out;
}

} // namespace sandboxd::sandboxes::docker_backend
