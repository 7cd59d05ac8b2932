#include "sandbox/file_calls.hpp"

#include "protocol/fields.hpp"

#include <cerrno>
#include <cstring>

namespace sandboxd::sandboxes {

using protocol::failure_kind;
using protocol::tag;

namespace {

constexpr std::size_t most_text = 256;

bool has_nul(std::string_view text) {
    return text.find('\0') != std::string_view::npos;
}

errc code_of(const end_record& record) {
    switch (record.failure) {
    case failure_kind::not_found:
        return errc::not_found;
    case failure_kind::invalid:
        return errc::invalid;
    case failure_kind::unsupported:
        return errc::unsupported;
    case failure_kind::no_process:
        return errc::unavailable;
    default:
        break;
    }
    switch (record.os_errno) {
    case EACCES:
    case EPERM:
    case EROFS:
        return errc::denied;
    case ENOTDIR: // the path is at fault: no file can be there
    case ELOOP:
    case ENAMETOOLONG:
        return errc::invalid;
    case ETIMEDOUT:
        return errc::timeout;
    default:
        return errc::io;
    }
}

/// The system's words; an agent's number may be any.
std::string words_of(std::uint32_t number) {
    const char* const text = number < 4096 ? ::strerrordesc_np(static_cast<int>(number)) : nullptr;
    return text != nullptr ? text : "Unknown error " + std::to_string(number);
}

} // namespace

result<std::string> encode_file_start(const file_spec& spec) {
    if (has_nul(spec.path) || has_nul(spec.pattern.value_or("")) || has_nul(spec.second_path.value_or(""))) {
        return error{errc::invalid, "The path or pattern holds a NUL character", false};
    }
    std::string frame;
    protocol::frame_writer out(frame, protocol::frame_type::start, 0);
    out.bytes(tag::run_id, {spec.id.data(), spec.id.size()});
    out.u16(tag::operation, static_cast<std::uint16_t>(spec.operation));
    out.bytes(tag::path, spec.path);
    if (spec.pattern) {
        out.bytes(tag::pattern, *spec.pattern);
    }
    if (spec.second_path) {
        out.bytes(tag::second_path, *spec.second_path);
    }
    if (spec.length) {
        out.u64(tag::length, *spec.length);
    }
    if (spec.offset) {
        out.u64(tag::offset, *spec.offset);
    }
    if (spec.limit_bytes) {
        out.u64(tag::limit_bytes, *spec.limit_bytes);
    }
    out.u32(tag::option_flags, spec.options);
    if (spec.user) {
        out.u32(tag::user_id, spec.user->uid).u32(tag::group_id, spec.user->gid);
    }
    out.u64(tag::timeout_ms, static_cast<std::uint64_t>(spec.timeout.count()));
    if (spec.streams()) {
        out.empty(tag::open_stdin);
    } else if (!spec.input.empty()) {
        out.bytes(tag::content, spec.input);
    }
    if (out.size() > protocol::longest_order) {
        return error{errc::invalid, "The path or pattern is too long", false};
    }
    out.finish();
    return frame;
}

std::optional<error> file_error(const end_record& record) {
    using protocol::end_cause;
    switch (record.cause) {
    case end_cause::exited:
        if (record.exit_code == 0) {
            return std::nullopt;
        }
        break;
    case end_cause::never_started:
        break;
    case end_cause::timed_out:
        return error{errc::timeout, "The file system did not answer in time"};
    default:
        return error{errc::io, "The process at work on it was ended"};
    }
    auto text = record.text.empty() ? words_of(record.os_errno) : record.text.substr(0, most_text);
    return error{code_of(record), std::move(text), record.cause != end_cause::never_started};
}

std::optional<std::vector<file_entry>> read_listing(std::string_view bytes, std::size_t most,
                                                    std::string_view prefix, bool flat) {
    std::vector<file_entry> out;
    protocol::listing_record record;
    while (!bytes.empty()) {
        if (out.size() == most || !protocol::take_record(bytes, record) || record.name.empty() ||
            has_nul(record.name)) {
            return std::nullopt;
        }
        const auto slash = record.name.rfind('/');
        if (slash != std::string_view::npos && (flat || slash + 1 == record.name.size())) {
            return std::nullopt;
        }
        file_entry entry;
        entry.name = slash == std::string_view::npos ? record.name : record.name.substr(slash + 1);
        entry.path.reserve(prefix.size() + record.name.size());
        entry.path.append(prefix).append(record.name);
        entry.is_dir = record.is_directory;
        entry.size = record.size;
        out.push_back(std::move(entry));
    }
    return out;
}

std::optional<std::vector<grep_match>> read_matches(std::string_view bytes, std::size_t most,
                                                    std::size_t most_bytes) {
    std::vector<grep_match> out;
    std::size_t shown = 0;
    protocol::match_record record;
    while (!bytes.empty()) {
        const bool good = out.size() < most && protocol::take_record(bytes, record) &&
                          record.line_number != 0 && (!out.empty() || !record.path.empty()) &&
                          !has_nul(record.path);
        if (!good) {
            return std::nullopt;
        }
        grep_match match;
        const auto path = record.path.empty() ? std::string_view(out.back().path) : record.path;
        shown += path.size() + record.line.size();
        if (shown > most_bytes) {
            return std::nullopt;
        }
        match.path = path;
        match.line_number = record.line_number;
        match.line = record.line;
        out.push_back(std::move(match));
    }
    return out;
}

} // namespace sandboxd::sandboxes
