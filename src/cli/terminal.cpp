#include "cli/terminal.hpp"

#include "core/utf8.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <unistd.h>

namespace sandboxd::cli {

namespace {

/// The code point of a valid sequence.
std::uint32_t code_point(std::string_view sequence) {
    const auto byte = [&](std::size_t i) {
        return static_cast<std::uint32_t>(static_cast<unsigned char>(sequence[i]));
    };
    switch (sequence.size()) {
    case 1:
        return byte(0);
    case 2:
        return (byte(0) & 0x1FU) << 6U | (byte(1) & 0x3FU);
    case 3:
        return (byte(0) & 0x0FU) << 12U | (byte(1) & 0x3FU) << 6U | (byte(2) & 0x3FU);
    default:
        return (byte(0) & 0x07U) << 18U | (byte(1) & 0x3FU) << 12U | (byte(2) & 0x3FU) << 6U |
               (byte(3) & 0x3FU);
    }
}

bool is_harmful(std::uint32_t code) {
    const bool control = code < 0x20 || (code >= 0x7F && code < 0xA0);
    const bool direction = (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069) ||
                           code == 0x200E || code == 0x200F || code == 0x061C;
    const bool line = code == 0x2028 || code == 0x2029;
    return control || direction || line;
}

bool write_all(std::FILE* to, std::string_view text) {
    return std::fwrite(text.data(), 1, text.size(), to) == text.size() && std::fflush(to) == 0;
}

} // namespace

std::string safe_text(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const auto next = core::next_sequence(text);
        const auto sequence = text.substr(0, next.length);
        text.remove_prefix(next.length);
        if (!next.valid) {
            for (const char one : sequence) {
                out += fmt::format("\\x{:02x}", static_cast<unsigned char>(one));
            }
            continue;
        }
        const auto code = code_point(sequence);
        if (!is_harmful(code)) {
            out += sequence;
        } else if (code == '\n') {
            out += "\\n";
        } else if (code == '\t') {
            out += "\\t";
        } else {
            out += code < 0x100 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
        }
    }
    return out;
}

std::string shown(std::string_view text) {
    return ::isatty(STDOUT_FILENO) == 1 ? safe_text(text) : std::string(text);
}

bool print(std::string_view text) {
    return write_all(stdout, text);
}

bool print_error_stream(std::string_view text) {
    return write_all(stderr, text);
}

void complain_safely(std::string_view message) {
    (void)write_all(stderr, "sandboxd: " + safe_text(message) + "\n");
}

std::string size_text(std::uint64_t bytes) {
    constexpr double step = 1024;
    if (bytes < 1024) {
        return std::to_string(bytes);
    }
    double value = static_cast<double>(bytes) / step;
    const char* unit = "KiB";
    for (const char* larger : {"MiB", "GiB", "TiB"}) {
        if (value < step) {
            break;
        }
        value /= step;
        unit = larger;
    }
    return fmt::format("{:.1f} {}", value, unit);
}

void copy_progress::show(std::uint64_t moved, std::optional<std::uint64_t> of) {
    constexpr std::uint64_t big = 1U << 20U;
    constexpr std::int64_t pause_ms = 100;
    if (of.value_or(moved) < big || ::isatty(STDERR_FILENO) != 1) {
        return;
    }
    const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
                         std::chrono::steady_clock::now().time_since_epoch())
                         .count();
    if (shown_ && now - last_ms_ < pause_ms && moved != of) {
        return;
    }
    last_ms_ = now;
    shown_ = true;
    (void)write_all(stderr, fmt::format("\r{}: {}{}\x1b[K", safe_text(name_), size_text(moved),
                                        of ? " of " + size_text(*of) : ""));
}

void copy_progress::finish() {
    if (shown_) {
        (void)write_all(stderr, "\n");
        shown_ = false;
    }
}

} // namespace sandboxd::cli
