#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sandboxd::cli {

/// The text with control characters (also those beyond ASCII, and what turns the direction of writing) as
/// escapes such as "\x1b" or "\u202e": a name can't move the cursor or colour the screen.
[[nodiscard]] std::string safe_text(std::string_view text);

/// The same where standard output is a terminal; elsewhere as it is.
[[nodiscard]] std::string shown(std::string_view text);

/// Everything to standard output; false when it can't be written (a closed pipe, a full disk).
[[nodiscard]] bool print(std::string_view text);
[[nodiscard]] bool print_error_stream(std::string_view text);

/// "sandboxd: <message>" to standard error, control characters as escapes.
void complain_safely(std::string_view message);

/// "512", "1.5 KiB", "20.0 MiB"
[[nodiscard]] std::string size_text(std::uint64_t bytes);

/// How far a copy is, on one line of standard error; nothing where that is no terminal, and for what is
/// small.
class copy_progress {
public:
    explicit copy_progress(std::string name) : name_(std::move(name)) {}
    ~copy_progress() { finish(); }
    copy_progress(const copy_progress&) = delete;
    copy_progress& operator=(const copy_progress&) = delete;

    void show(std::uint64_t moved, std::optional<std::uint64_t> of);
    void finish();

private:
    std::string name_;
    std::int64_t last_ms_ = 0;
    bool shown_ = false;
};

} // namespace sandboxd::cli
