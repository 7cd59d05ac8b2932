#include "images/progress_lines.hpp"

#include <utility>

namespace sandboxd::images {

namespace {

constexpr std::size_t longest_text = 300;

/// Not in the middle of a character.
std::string clipped(const std::string& text) {
    if (text.size() <= longest_text) {
        return text;
    }
    auto end = longest_text;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
        --end;
    }
    return text.substr(0, end) + "...";
}

std::string counted(const progress& at) {
    return "step " + std::to_string(at.done) + " of " + std::to_string(at.of);
}

} // namespace

progress_lines::progress_lines(std::string what, time_point now, std::chrono::milliseconds between_news,
                               std::chrono::milliseconds quiet)
    : what_(std::move(what)), between_news_(between_news), quiet_(quiet), began_(now), last_line_(now) {}

std::optional<std::string> progress_lines::note(const progress& news, time_point now) {
    const auto before = std::exchange(latest_, news);
    if (news.text.empty()) {
        latest_.text = before.text;
    }
    if (news.begins) {
        began_ = now;
        step_ = news.text;
    } else if (now - last_line_ < between_news_ || latest_.text.empty()) {
        return std::nullopt;
    }
    last_line_ = now;
    return what_ + ": " + (step_.empty() ? "" : counted(latest_) + ": ") + clipped(latest_.text);
}

std::optional<std::string> progress_lines::sign_of_life(time_point now) {
    if (now - last_line_ < quiet_) {
        return std::nullopt;
    }
    last_line_ = now;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - began_).count();
    return what_ + ": " + (step_.empty() ? "" : counted(latest_) + ", ") + "for " + std::to_string(seconds) +
           " s now" + (latest_.text.empty() ? "" : ": " + clipped(latest_.text));
}

} // namespace sandboxd::images
