#pragma once

// The command language of in-memory sandboxes: a line of commands joined by `;`, newlines, `&&` and `||`,
// with words, 'quotes' and "quotes" as in a shell, and `>&2` at the end of a command. Commands:
//
//     echo WORD...         the words and a newline; -n without it
//     true, false, :
//     exit [N]             ends the script
//     sleep SECONDS        fractions allowed
//     cat                  copies stdin, which is at end-of-file
//     env                  the variables of the request, one NAME=value a line
//     head -c N /dev/zero  N zero bytes
//     kill -N $$           ends with signal N
//     sh -c SCRIPT
//
// Any other word ends with 127 and a sentence on stderr. No I/O and no clock in here.

#include <string>
#include <string_view>
#include <vector>

namespace sandboxd::sandboxes::memory {

struct step {
    enum class when : unsigned char { always, on_success, on_failure };
    when condition = when::always;
    std::vector<std::string> words; ///< never empty
    bool to_stderr = false;
};

/// Cuts a script into steps; an open quote ends at the end.
[[nodiscard]] std::vector<step> parse_script(std::string_view script);

} // namespace sandboxd::sandboxes::memory
