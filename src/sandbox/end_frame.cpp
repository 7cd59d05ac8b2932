#include "sandbox/end_frame.hpp"

#include "protocol/fields.hpp"

#include <algorithm>

namespace sandboxd::sandboxes {

using protocol::end_cause;
using protocol::failure_kind;
using protocol::tag;

namespace {

constexpr std::size_t longest_text = 1024;
constexpr std::uint64_t longest_run_us = 1000ULL * 1000 * 86400 * 3650;

bool take_number(std::optional<int>& out, const protocol::field& field, std::uint32_t low,
                 std::uint32_t high) {
    const auto value = field.u32();
    if (!value || *value < low || *value > high) {
        return false;
    }
    out = static_cast<int>(*value);
    return true;
}

bool take_count(std::uint64_t& out, const protocol::field& field) {
    const auto value = field.u64();
    out = value.value_or(0);
    return value.has_value();
}

bool take_cause(end_record& record, const protocol::field& field) {
    const auto value = field.u8();
    if (!value || *value < 1 || *value > static_cast<std::uint8_t>(end_cause::lost)) {
        return false;
    }
    record.cause = static_cast<end_cause>(*value);
    return true;
}

bool take_failure(end_record& record, const protocol::field& field) {
    const auto value = field.u16();
    if (!value || *value > static_cast<std::uint16_t>(failure_kind::os)) {
        return false;
    }
    record.failure = static_cast<failure_kind>(*value);
    return true;
}

bool take_duration(end_record& record, const protocol::field& field) {
    std::uint64_t us = 0;
    if (!take_count(us, field)) {
        return false;
    }
    record.duration = std::chrono::microseconds(std::min(us, longest_run_us));
    return true;
}

/// False when the field is known and its value is not acceptable.
bool take(read_end& out, const protocol::field& field, bool& has_cause) {
    auto& record = out.record;
    switch (field.id) {
    case tag::cause:
        has_cause = true;
        return take_cause(record, field);
    case tag::exit_code:
        return take_number(record.exit_code, field, 0, 255);
    case tag::exit_signal:
        return take_number(record.signal, field, 1, 64);
    case tag::out_total:
        return take_count(out.out_total, field);
    case tag::err_total:
        return take_count(out.err_total, field);
    case tag::dropped:
        return take_count(record.dropped, field);
    case tag::duration_us:
        return take_duration(record, field);
    case tag::failure:
        return take_failure(record, field);
    case tag::text:
        record.text.assign(field.value.substr(0, longest_text));
        return true;
    case tag::os_errno:
        record.os_errno = field.u32().value_or(0);
        return field.u32().has_value();
    case tag::option_flags:
        record.marks = field.u32().value_or(0);
        return field.u32().has_value();
    case tag::length:
        return take_count(record.length, field);
    default:
        return true;
    }
}

bool consistent(const end_record& record) {
    if (record.exit_code && record.signal) {
        return false;
    }
    switch (record.cause) {
    case end_cause::exited:
        return record.exit_code || record.signal;
    case end_cause::never_started:
        return record.failure != failure_kind::none && !record.signal;
    default:
        return true;
    }
}

} // namespace

std::optional<read_end> parse_end(std::string_view payload) {
    read_end out;
    bool has_cause = false;
    protocol::field_reader reader(payload);
    protocol::field field;
    while (reader.next(field)) {
        if (!take(out, field, has_cause)) {
            return std::nullopt;
        }
    }
    if (reader.malformed() || !has_cause || !consistent(out.record)) {
        return std::nullopt;
    }
    return out;
}

} // namespace sandboxd::sandboxes
