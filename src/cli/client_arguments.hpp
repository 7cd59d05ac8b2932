#pragma once

// The commands that are clients of a service: what each takes. One table serves the parser and the help
// texts.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sandboxd::cli {

/// One line for standard error; exit status 2.
struct usage_error {
    std::string text;
};

struct flag_info {
    std::string_view name;        ///< "--runtime"
    std::string_view placeholder; ///< "NAME"; "": it takes no value
    std::string_view text;
};

struct command_info {
    std::string_view name;
    std::string_view usage; ///< what follows the name
    std::string_view summary;
    std::string_view text; ///< more of it
    std::vector<flag_info> flags;
    std::string_view example;
    std::size_t least_words = 0;
    std::size_t most_words = 1;
    bool takes_program = false; ///< from the second word on, everything is the program's
};

/// Null for other words.
[[nodiscard]] const command_info* find_client_command(std::string_view name);
[[nodiscard]] std::vector<std::string_view> client_command_names();
/// Flags that every one of them takes.
[[nodiscard]] std::span<const flag_info> common_flags();

/// One of these commands as it was given.
struct client_call {
    const command_info* command = nullptr;
    std::map<std::string, std::vector<std::string>, std::less<>> given; ///< flag to its values, in order
    std::vector<std::string> words;
    bool help = false;

    [[nodiscard]] bool has(std::string_view flag) const { return given.contains(flag); }
    /// The last one counts.
    [[nodiscard]] std::optional<std::string> value(std::string_view flag) const;
};

/// The words after the command's name.
[[nodiscard]] std::variant<client_call, usage_error> parse_client(const command_info& command,
                                                                  std::span<const std::string_view> words);

/// `sandboxd COMMAND --help`.
[[nodiscard]] std::string client_help_text(const command_info& command);

/// SESSION:PATH, SESSION, or a path of this host ("./a:b" for one that looks like the first).
struct place {
    std::optional<std::string> session;
    std::string path;
    bool has_path = false; ///< with a session: a ":" was there
};
[[nodiscard]] place parse_place(std::string_view text);

} // namespace sandboxd::cli
