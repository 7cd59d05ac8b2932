#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace sandboxd::docker {

/// Cuts what a builder says into lines, without control characters. Held to a length that a hostile step
/// can't exceed.
class line_cutter {
public:
    explicit line_cutter(std::function<void(const std::string&)> line) : line_(std::move(line)) {}

    void add(std::string_view text) {
        for (const char c : text) {
            if (in_sequence_) { // ESC [ parameters letter
                in_sequence_ = c == '[' || c == ';' || (c >= '0' && c <= '9');
                continue;
            }
            in_sequence_ = c == '\x1b';
            if (c == '\n' || c == '\r' || rest_.size() >= longest) {
                end();
            }
            if (static_cast<unsigned char>(c) >= ' ' || c == '\t') {
                rest_ += c;
            }
        }
    }

    /// What stands after the last line end is a line too.
    void end() {
        if (!rest_.empty() && line_) {
            line_(rest_);
        }
        rest_.clear();
    }

private:
    static constexpr std::size_t longest = 1000;
    std::function<void(const std::string&)> line_;
    std::string rest_;
    bool in_sequence_ = false;
};

} // namespace sandboxd::docker
