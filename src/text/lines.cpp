#include "text/lines.hpp"

#include <array>

namespace sandboxd::text {

namespace {

// What a byte may be the start of.
enum : unsigned char { ordinary, single_end, carriage_return, nel_lead, separator_lead };

constexpr auto classes = [] {
    std::array<unsigned char, 256> all{};
    for (const std::size_t c : {0x0AU, 0x0BU, 0x0CU, 0x1CU, 0x1DU, 0x1EU}) {
        all[c] = single_end;
    }
    all[0x0D] = carriage_return;
    all[0xC2] = nel_lead;       // U+0085 is C2 85
    all[0xE2] = separator_lead; // U+2028 and U+2029 are E2 80 A8 and E2 80 A9
    return all;
}();

/// Bytes of the end of a line that starts here; 0 when none does.
std::size_t end_length(std::string_view at) noexcept {
    switch (classes[static_cast<unsigned char>(at[0])]) {
    case single_end:
        return 1;
    case carriage_return:
        return at.size() > 1 && at[1] == '\n' ? 2 : 1;
    case nel_lead:
        return at.size() > 1 && at[1] == '\x85' ? 2 : 0;
    case separator_lead:
        return at.size() > 2 && at[1] == '\x80' && (at[2] == '\xA8' || at[2] == '\xA9') ? 3 : 0;
    default:
        return 0;
    }
}

} // namespace

bool line_reader::next(std::string_view& line) noexcept {
    if (left_.empty()) {
        return false;
    }
    for (std::size_t at = 0; at < left_.size(); ++at) {
        if (classes[static_cast<unsigned char>(left_[at])] == ordinary) {
            continue;
        }
        if (const std::size_t length = end_length(left_.substr(at)); length > 0) {
            line = left_.substr(0, at);
            left_.remove_prefix(at + length);
            return true;
        }
    }
    line = left_;
    left_ = {};
    return true;
}

std::string slice_lines(std::string_view text, std::int64_t offset, std::int64_t limit) {
    line_reader lines(text);
    std::string_view line;
    std::string out;
    std::int64_t number = 0;
    std::int64_t taken = 0;
    for (; lines.next(line); ++number) {
        if (number < offset || taken == limit) {
            continue; // those behind are counted
        }
        if (taken++ > 0) {
            out += '\n';
        }
        out += line;
    }
    if (offset >= number) {
        return "[End of file]";
    }
    if (const std::int64_t remaining = number - offset - taken; remaining > 0) {
        out += "\n\n[... " + std::to_string(remaining) +
               " more lines. Use offset=" + std::to_string(offset + taken) + " to read more.]";
    }
    return out;
}

} // namespace sandboxd::text
