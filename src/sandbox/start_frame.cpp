#include "sandbox/start_frame.hpp"

#include "core/random.hpp"
#include "protocol/fields.hpp"

#include <algorithm>

namespace sandboxd::sandboxes {

namespace {

bool has_nul(std::string_view text) {
    return text.find('\0') != std::string_view::npos;
}

/// What the kernel or the protocol would cut short without a word.
std::optional<error> fault_of(const command_spec& spec) {
    if (!spec.script && spec.argv.empty()) {
        return error{errc::invalid, "there is no command to run"};
    }
    bool nul = (spec.script && has_nul(*spec.script)) || has_nul(spec.directory);
    for (const auto& one : spec.argv) {
        nul = nul || has_nul(one);
    }
    for (const auto& [name, value] : spec.env) {
        nul = nul || has_nul(name) || has_nul(value);
    }
    if (nul) {
        return error{errc::invalid, "the command or its environment holds a NUL character"};
    }
    return std::nullopt;
}

std::size_t size_hint(const command_spec& spec) {
    constexpr std::size_t head = 6;
    std::size_t size =
        protocol::header_size + 128 + (spec.script ? spec.script->size() : 0) + spec.directory.size();
    for (const auto& one : spec.argv) {
        size += head + one.size();
    }
    for (const auto& [name, value] : spec.env) {
        size += head + name.size() + 1 + value.size();
    }
    return size;
}

void write_program(protocol::frame_writer& out, const command_spec& spec) {
    if (spec.script) {
        out.bytes(protocol::tag::script, *spec.script);
    } else {
        for (const auto& one : spec.argv) {
            out.bytes(protocol::tag::argument, one);
        }
    }
    std::string variable;
    for (const auto& [name, value] : spec.env) {
        variable.assign(name).append("=").append(value);
        out.bytes(protocol::tag::variable, variable);
    }
    if (!spec.directory.empty()) {
        out.bytes(protocol::tag::directory, spec.directory);
    }
}

void write_settings(protocol::frame_writer& out, const command_spec& spec) {
    out.u8(protocol::tag::mode, static_cast<std::uint8_t>(spec.mode));
    if (spec.open_stdin) {
        out.empty(protocol::tag::open_stdin);
    }
    if (spec.mode == protocol::start_mode::terminal) {
        out.u16(protocol::tag::rows, spec.rows).u16(protocol::tag::columns, spec.columns);
    }
    if (spec.user) {
        out.u32(protocol::tag::user_id, spec.user->uid).u32(protocol::tag::group_id, spec.user->gid);
    }
    if (spec.timeout.count() > 0) {
        out.u64(protocol::tag::timeout_ms, static_cast<std::uint64_t>(spec.timeout.count()));
    }
    if (spec.keep_bytes) {
        out.u64(protocol::tag::keep_bytes, *spec.keep_bytes);
    }
    if (spec.limit_bytes) {
        out.u64(protocol::tag::limit_bytes, *spec.limit_bytes);
    }
}

} // namespace

result<run_id_bytes> parse_run_id(std::string_view hex) {
    std::array<unsigned char, protocol::run_id_size> bytes{};
    if (!core::from_hex(hex, bytes)) {
        return error{errc::invalid, "a run id is 32 hexadecimal digits"};
    }
    run_id_bytes out{};
    std::transform(bytes.begin(), bytes.end(), out.begin(),
                   [](unsigned char c) { return static_cast<char>(c); });
    return out;
}

result<std::string> encode_start(const command_spec& spec) {
    if (auto fault = fault_of(spec)) {
        return std::move(*fault);
    }
    const auto size = size_hint(spec);
    if (size > protocol::max_start) {
        return error{errc::invalid, "the command and its environment are longer than 16 MiB"};
    }
    std::string frame;
    frame.reserve(size);
    {
        protocol::frame_writer out(frame, protocol::frame_type::start, 0);
        out.bytes(protocol::tag::run_id, {spec.id.data(), spec.id.size()});
        write_settings(out, spec);
        write_program(out, spec);
    }
    return frame;
}

void set_stream(std::string& start_frame, std::uint32_t number) {
    const auto head = protocol::encode_header({0, protocol::frame_type::start, 0, number});
    std::copy(head.begin() + 8, head.end(), start_frame.begin() + 8);
}

} // namespace sandboxd::sandboxes
