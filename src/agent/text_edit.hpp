#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sandboxd::agent {

/// What an edit of bytes comes to. `content` is the new file where the edit is to be applied.
struct text_edit {
    std::uint64_t occurrences = 0; ///< of the old text, not overlapping, from the front
    bool applied = false;
    bool too_large = false; ///< the new file would be larger than `most`
    std::string content;
};

/// Replaces `old_text` where it stands once, or everywhere with `all`; every other byte stays. Where the
/// exact bytes are nowhere and all line ends of the file are CRLF, both texts are taken with CRLF ("Decided"
/// 11). An empty old text stands before each character and at the end (contract 3.6).
[[nodiscard]] text_edit edit_text(std::string_view content, std::string_view old_text,
                                  std::string_view new_text, bool all, std::size_t most);

/// Contract 3.3.3 c, as far as bytes tell: at least one in a hundred characters (and two of them) is no
/// UTF-8, and there are control characters that no text in an older encoding has.
[[nodiscard]] bool looks_binary(std::string_view content);

} // namespace sandboxd::agent
