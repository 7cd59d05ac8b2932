#pragma once

// A regular expression as a tree, between its text and its program.

#include "agent/regex.hpp"

#include <memory>

namespace sandboxd::agent {

struct regex_node {
    enum class kind : std::uint8_t { byte, any, set, assertion, group, reference, list, either, repeat };
    static constexpr unsigned no_end = UINT32_MAX;

    kind what{};
    char byte = 0;
    regex_step::place where{}; ///< assertion
    unsigned number = 0;       ///< group, reference
    unsigned least = 0;        ///< repeat
    unsigned most = 0;         ///< repeat: no_end without a bound
    character_set set;
    std::vector<std::unique_ptr<regex_node>> parts;
};

struct parsed_regex {
    std::unique_ptr<regex_node> root;
    const char* fault = nullptr; ///< a sentence; then there is no root
    bool has_references = false;
};
[[nodiscard]] parsed_regex parse_regex(std::string_view pattern);

} // namespace sandboxd::agent
