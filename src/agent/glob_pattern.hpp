#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sandboxd::agent {

/// Some characters, as a bracket expression of a pattern names them.
class character_set {
public:
    void add(std::uint32_t from, std::uint32_t to);
    /// A class of ASCII characters by name ("alpha"); false when there is no such class.
    [[nodiscard]] bool add_class(std::string_view name);
    void negate() { negated_ = !negated_; }

    [[nodiscard]] bool contains(std::uint32_t code) const;
    /// The ranges without the negation, sorted and apart.
    [[nodiscard]] std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges() const;
    [[nodiscard]] bool negated() const { return negated_; }

private:
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges_;
    bool negated_ = false;
};

/// A pattern in the sense of fnmatch() without flags: `*` and `?` stand for slashes and leading dots too, a
/// backslash quotes, braces are braces. A character is a UTF-8 one where the bytes are, else a byte. Matching
/// costs at most the product of the two lengths.
class glob_pattern {
public:
    explicit glob_pattern(std::string_view pattern);

    [[nodiscard]] bool matches(std::string_view text) const;

private:
    enum class kind : std::uint8_t { byte, any, star, set };
    struct token {
        kind what{};
        char byte = 0;
        std::uint32_t set = 0;
    };

    [[nodiscard]] bool read_set(std::string_view pattern, std::size_t& at);
    [[nodiscard]] std::size_t step(const token& one, std::string_view rest) const;

    std::vector<token> tokens_;
    std::vector<character_set> sets_;
    std::string tail_; ///< what every match ends in
};

} // namespace sandboxd::agent
