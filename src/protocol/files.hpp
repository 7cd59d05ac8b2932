#pragma once

// File operations. Each is a stream like a command's: `start` with the tag `operation`, `data` in and out
// against credits, one `end`; a cut and resumed channel loses nothing and runs nothing twice. A `start` holds
//
//     operation, run_id    a fresh id, as for a command; the agent does not keep it after the end
//     path                 relative ones begin at the agent's own working directory
//     timeout_ms           the operation ends by itself then: with what it has (list, glob, grep) or failed
//     user_id, group_id    as a command's
//     content              input of at most inline_content bytes; a longer one comes as data on `in`, to the
//                          end_of_data, after a start with open_stdin and without content
//     length, limit_bytes, pattern, second_path, option_flags    see each
//
// and is at most longest_order bytes long. The operations:
//
//     read    length: most bytes. out: the file's bytes. A larger file: over_limit, with size_known and its
//             size where that was known before anything was sent; what has come on out counts for nothing.
//     write   input: the new content. Missing parent directories are made; parents is set when they can't be.
//     stat    regular is set for a regular file, links followed, then length is its size.
//     list    length: most entries, limit_bytes: most bytes. out: listing records, directories first, then by
//             the bytes of the name.
//     edit    input: the old text, then the new; offset: length of the old one; length: most bytes of the
//             file. option_flags: replace_all, any_bytes. The end's length is the number of occurrences, or
//             with size_known the size. Nothing is written with empty, binary or over_limit set, nor with 0
//             occurrences, nor with more than one without replace_all.
//     glob    path: the root, pattern; length and limit_bytes as above. out: listing records of regular
//             files, without size, their path below the root as the name, sorted by its bytes.
//     grep    path: the root, or a file; pattern: a basic regular expression; second_path: limits files by
//             name, where it is there; option_flags: ignore_hidden; length and limit_bytes as above. out:
//             match records.
//
// truncated says that list, glob or grep stopped at a bound, or had to leave something out.
//
// The end of an operation has the cause `exited` and the exit code 0 or 1; with 0, option_flags holds the
// file_marks and length the number that goes with them; with 1 there are failure (not_found, invalid,
// unsupported or os), os_errno where the system gave one, and text where that does not say it. Any other
// cause means that nothing can be said about it: it was stopped, or its process was killed. What never
// started (failure no_process) was surely not begun.

#include "protocol/fields.hpp"

namespace sandboxd::protocol {

inline constexpr std::size_t inline_content = 32 * 1024;
inline constexpr std::size_t longest_order = 60 * 1024;

/// option_flags of a `start`.
enum file_option : std::uint32_t {
    any_bytes = 1,     ///< edit: the file need not be text
    replace_all = 2,   ///< edit
    ignore_hidden = 4, ///< grep: names with a leading dot below the root are passed over
};

/// option_flags of an `end`.
enum file_mark : std::uint32_t {
    over_limit = 1,
    size_known = 2,
    truncated = 4,
    empty_file = 8,
    binary_file = 16,
    regular = 32,
    parents = 64, ///< with a failure
};

/// u8 flags | u64 size | u32 length of the name | name.
struct listing_record {
    bool is_directory = false;
    std::optional<std::uint64_t> size;
    std::string_view name;
};
inline constexpr std::size_t listing_head = 13;

/// u64 line number | u32 length of the path, 0: as in the record before | u32 length of the line | path |
/// line.
struct match_record {
    std::uint64_t line_number = 0;
    std::string_view path;
    std::string_view line;
};
inline constexpr std::size_t match_head = 16;

void append_record(std::string& out, const listing_record& record);
void append_record(std::string& out, const match_record& record);

/// Takes a record off the front of `bytes`; its views point there. False when there is no whole one.
[[nodiscard]] bool take_record(std::string_view& bytes, listing_record& record);
[[nodiscard]] bool take_record(std::string_view& bytes, match_record& record);

} // namespace sandboxd::protocol
