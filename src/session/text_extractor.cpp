#include "session/text_extractor.hpp"

#include "text/extract.hpp"
#include "text/lines.hpp"

#include <utility>

namespace sandboxd::session {

namespace {

result<std::string> slice(result<std::string> text, std::int64_t offset, std::int64_t limit) {
    return text ? text::slice_lines(*text, offset, limit) : std::move(text);
}

} // namespace

task<std::optional<result<std::string>>> text_extractor::lines(std::string_view path, std::string_view bytes,
                                                               std::int64_t offset, std::int64_t limit,
                                                               std::chrono::steady_clock::time_point until) {
    using answer = std::optional<result<std::string>>;
    if (bytes.empty()) {
        co_return slice(std::string(), offset, limit);
    }
    if (text::is_quick(path, bytes.size())) {
        co_return slice(text::quick_extract(path, bytes), offset, limit);
    }
    auto work = [=, this]() -> answer {
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
        if (left.count() <= 0 || stopped_) { // it waited too long for its turn
            return std::nullopt;
        }
        return slice(text::blocking::extract(path, bytes, left), offset, limit);
    };
    auto shown = co_await workers_.run(std::move(work));
    if (std::chrono::steady_clock::now() >= until) {
        shown.reset();
    }
    co_return shown;
}

} // namespace sandboxd::session
