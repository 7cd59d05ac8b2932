#pragma once

// POSIX basic regular expressions with the extensions that GNU grep has (\+ \? \| \w \W \s \S \b \B \< \>
// and back-references), searched for in lines in time that is bounded whatever the pattern.

#include "agent/glob_pattern.hpp"

#include <array>
#include <optional>

namespace sandboxd::agent {

/// One step of a program. `split` goes on at both, the first one preferred.
struct regex_step {
    enum class kind : std::uint8_t { bytes, split, jump, assertion, save, reference, match };
    enum class place : std::uint8_t { line_start, line_end, word_edge, word_inside, word_start, word_end };

    kind what{};
    unsigned char low = 0; ///< bytes: from here...
    unsigned char high = 0;
    place where{};          ///< assertion
    std::uint32_t next = 0; ///< split, jump; save: which end of which group; reference: which group
    std::uint32_t other = 0;
};

/// A pattern as a program for lines of bytes, or of UTF-8.
struct regex_program {
    std::vector<regex_step> steps;
    bool has_references = false;
};

/// What compile() makes of a pattern; `fault` is a sentence when it is none, or too large.
struct regex_parts {
    regex_program bytes;
    regex_program characters;  ///< empty when it would be the same
    std::string literal;       ///< stands in every match, may be empty
    bool only_literal = false; ///< the pattern is nothing else
    const char* fault = nullptr;
};
[[nodiscard]] regex_parts compile_regex(std::string_view pattern);

/// Finds whether a program matches somewhere in a line. Its states are made as they are needed and thrown
/// away when they are too many.
class regex_search {
public:
    explicit regex_search(const regex_program& program);

    /// Nothing when a back-reference would take too many steps.
    [[nodiscard]] std::optional<bool> matches(std::string_view line);

private:
    static constexpr std::int32_t unknown = -1;
    static constexpr std::int32_t found = -2;
    static constexpr std::size_t end_of_line = 256;

    /// What was read before: it decides about assertions.
    enum class before : std::uint8_t { start, word, other };
    struct state {
        std::vector<std::uint32_t> steps; ///< to be followed, sorted
        before seen{};
    };

    [[nodiscard]] std::int32_t advance(std::int32_t from, std::size_t symbol);
    [[nodiscard]] std::int32_t intern(std::vector<std::uint32_t> steps, before seen);
    [[nodiscard]] bool close(const state& from, std::size_t symbol, std::vector<std::uint32_t>& out);
    void make_classes();
    void forget();

    [[nodiscard]] std::optional<bool> backtrack(std::string_view line) const;

    const regex_program& program_;
    std::array<std::uint16_t, 257> class_of_{};
    std::vector<std::size_t> sample_; ///< a symbol of each class
    std::vector<state> states_;
    std::vector<std::int32_t> moves_; ///< states times classes
    std::vector<std::uint32_t> mark_; ///< of each step: the round it was seen in
    std::uint32_t round_ = 0;
    std::vector<std::uint32_t> stack_;
    std::size_t held_ = 0;
};

} // namespace sandboxd::agent
