#include "protocol/files.hpp"

namespace sandboxd::protocol {

namespace {

constexpr std::uint8_t directory_flag = 1;
constexpr std::uint8_t size_flag = 2;

std::string_view take(std::string_view& bytes, std::size_t count) {
    const auto out = bytes.substr(0, count);
    bytes.remove_prefix(count);
    return out;
}

} // namespace

void append_record(std::string& out, const listing_record& record) {
    const auto flags = (record.is_directory ? directory_flag : 0) | (record.size ? size_flag : 0);
    out.push_back(static_cast<char>(flags));
    append_u64(out, record.size.value_or(0));
    append_u32(out, static_cast<std::uint32_t>(record.name.size()));
    out.append(record.name);
}

void append_record(std::string& out, const match_record& record) {
    append_u64(out, record.line_number);
    append_u32(out, static_cast<std::uint32_t>(record.path.size()));
    append_u32(out, static_cast<std::uint32_t>(record.line.size()));
    out.append(record.path);
    out.append(record.line);
}

bool take_record(std::string_view& bytes, listing_record& record) {
    if (bytes.size() < listing_head) {
        return false;
    }
    const auto length = *exact_u32(bytes.substr(9, 4));
    if (bytes.size() - listing_head < length) {
        return false;
    }
    const auto flags = static_cast<std::uint8_t>(take(bytes, 1)[0]);
    const auto size = *exact_u64(take(bytes, 8));
    take(bytes, 4);
    record.is_directory = (flags & directory_flag) != 0;
    record.size = (flags & size_flag) != 0 ? std::optional(size) : std::nullopt;
    record.name = take(bytes, length);
    return true;
}

bool take_record(std::string_view& bytes, match_record& record) {
    if (bytes.size() < match_head) {
        return false;
    }
    const std::size_t path = *exact_u32(bytes.substr(8, 4));
    const std::size_t line = *exact_u32(bytes.substr(12, 4));
    if (bytes.size() - match_head < path + line) {
        return false;
    }
    record.line_number = *exact_u64(take(bytes, 8));
    take(bytes, 8);
    record.path = take(bytes, path);
    record.line = take(bytes, line);
    return true;
}

} // namespace sandboxd::protocol
