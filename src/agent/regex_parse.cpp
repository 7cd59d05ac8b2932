// The grammar of basic expressions, with GNU's extensions.

#include "agent/regex_node.hpp"
#include "agent/utf8.hpp"

#include <algorithm>

namespace sandboxd::agent {

namespace {

constexpr std::size_t most_depth = 200;
constexpr unsigned most_repeats = 32'767;
constexpr unsigned most_groups = 9;

using node = regex_node;
using node_ptr = std::unique_ptr<regex_node>;
using place = regex_step::place;
constexpr unsigned no_end = regex_node::no_end;

node_ptr make(node::kind what) {
    auto out = std::make_unique<node>();
    out->what = what;
    return out;
}

class parser {
public:
    explicit parser(std::string_view pattern) : rest_(pattern) {}

    node_ptr parse() {
        auto out = alternatives(0);
        if (fault == nullptr && !rest_.empty()) {
            fault = "Unmatched ) or \\)";
        }
        return out;
    }

    const char* fault = nullptr;
    bool has_references = false;

private:
    node_ptr alternatives(std::size_t depth);
    node_ptr sequence(std::size_t depth);
    node_ptr atom(std::size_t depth, bool first);
    node_ptr escaped(std::size_t depth);
    node_ptr bracket();
    bool bracket_item(character_set& set);
    bool bracket_end(std::uint32_t& code);
    node_ptr postfix(node_ptr of);
    bool interval(unsigned& least, unsigned& most);
    bool number(unsigned& out);
    bool take(std::string_view text) {
        const bool there = rest_.starts_with(text);
        rest_.remove_prefix(there ? text.size() : 0);
        return there;
    }
    node_ptr fail(const char* why) {
        fault = fault == nullptr ? why : fault;
        return nullptr;
    }

    std::string_view rest_;
    unsigned groups_ = 0;
    unsigned closed_ = 0; ///< groups that a back-reference may name, as bits
};

node_ptr literal(char byte) {
    auto out = make(node::kind::byte);
    out->byte = byte;
    return out;
}

node_ptr assertion(place where) {
    auto out = make(node::kind::assertion);
    out->where = where;
    return out;
}

node_ptr parser::alternatives(std::size_t depth) {
    if (depth > most_depth) {
        return fail("Regular expression too big");
    }
    auto out = make(node::kind::either);
    do {
        auto one = sequence(depth);
        if (one == nullptr) {
            return nullptr;
        }
        out->parts.push_back(std::move(one));
    } while (take("\\|") || take("\n"));
    return out;
}

node_ptr parser::sequence(std::size_t depth) {
    auto out = make(node::kind::list);
    bool first = true;
    while (!rest_.empty() && !rest_.starts_with("\\|") && !rest_.starts_with('\n') &&
           !(rest_.starts_with("\\)") && depth > 0)) {
        auto one = atom(depth, first);
        const bool anchor =
            one != nullptr && first && one->what == node::kind::assertion && one->where == place::line_start;
        if (one != nullptr && !anchor) {
            one = postfix(std::move(one)); // a star behind an anchor is a star
        }
        if (one == nullptr) {
            return nullptr;
        }
        first = false;
        out->parts.push_back(std::move(one));
    }
    return out;
}

node_ptr parser::atom(std::size_t depth, bool first) {
    const char byte = rest_[0];
    if (byte == '\\') {
        return escaped(depth);
    }
    rest_.remove_prefix(1);
    const bool last =
        rest_.empty() || rest_.starts_with("\\|") || rest_.starts_with('\n') || rest_.starts_with("\\)");
    switch (byte) {
    case '[':
        return bracket();
    case '.':
        return make(node::kind::any);
    case '^':
        return first ? assertion(place::line_start) : literal(byte);
    case '$':
        return last ? assertion(place::line_end) : literal(byte);
    default:
        return literal(byte); // a star at the beginning too
    }
}

node_ptr word_set(std::string_view name, bool underscore, bool negated) {
    auto out = make(node::kind::set);
    static_cast<void>(out->set.add_class(name));
    if (underscore) {
        out->set.add('_', '_');
    }
    if (negated) {
        out->set.negate();
    }
    return out;
}

node_ptr parser::escaped(std::size_t depth) {
    if (rest_.size() < 2) {
        return fail("Trailing backslash");
    }
    const char byte = rest_[1];
    rest_.remove_prefix(2);
    switch (byte) {
    case '(': {
        auto out = make(node::kind::group);
        out->number = ++groups_;
        out->parts.push_back(alternatives(depth + 1));
        if (out->parts[0] == nullptr) {
            return nullptr;
        }
        if (!take("\\)")) {
            return fail("Unmatched ( or \\(");
        }
        closed_ |= out->number <= most_groups ? 1U << out->number : 0U;
        return out;
    }
    case ')':
        return fail("Unmatched ) or \\)");
    case '{':
        return fail("Invalid preceding regular expression");
    case 'w':
        return word_set("alnum", true, false);
    case 'W':
        return word_set("alnum", true, true);
    case 's':
        return word_set("space", false, false);
    case 'S':
        return word_set("space", false, true);
    case 'b':
        return assertion(place::word_edge);
    case 'B':
        return assertion(place::word_inside);
    case '<':
        return assertion(place::word_start);
    case '>':
        return assertion(place::word_end);
    case '`':
        return assertion(place::line_start);
    case '\'':
        return assertion(place::line_end);
    default:
        break;
    }
    if (byte >= '1' && byte <= '9') {
        auto out = make(node::kind::reference);
        out->number = static_cast<unsigned>(byte - '0');
        if ((closed_ & 1U << out->number) == 0) {
            return fail("Invalid back reference");
        }
        has_references = true;
        return out;
    }
    return literal(byte);
}

node_ptr parser::bracket() {
    auto out = make(node::kind::set);
    const bool negated = take("^");
    for (bool first = true; first || !rest_.starts_with(']'); first = false) {
        if (rest_.empty()) {
            return fail("Unmatched [, [^, [:, [., or [=");
        }
        if (!bracket_item(out->set)) {
            return nullptr;
        }
    }
    rest_.remove_prefix(1);
    if (negated) {
        out->set.negate();
    }
    return out;
}

/// A class, a character or a range.
bool parser::bracket_item(character_set& set) {
    if (rest_.starts_with("[:")) {
        const auto end = rest_.find(":]", 2);
        if (end == std::string_view::npos) {
            return fail("Unmatched [, [^, [:, [., or [=") != nullptr;
        }
        if (!set.add_class(rest_.substr(2, end - 2))) {
            return fail("Invalid character class name") != nullptr;
        }
        rest_.remove_prefix(end + 2);
        return true;
    }
    std::uint32_t from = 0;
    if (!bracket_end(from)) {
        return false;
    }
    std::uint32_t to = from;
    if (rest_.size() > 1 && rest_[0] == '-' && rest_[1] != ']') {
        rest_.remove_prefix(1);
        if (!bracket_end(to)) {
            return false;
        }
        if (to < from) {
            return fail("Invalid range end") != nullptr;
        }
    }
    set.add(from, to);
    return true;
}

/// One character, also as [.x.] or [=x=].
bool parser::bracket_end(std::uint32_t& code) {
    const char mark = rest_.size() > 1 && rest_[0] == '[' ? rest_[1] : '\0';
    const bool wrapped = mark == '.' || mark == '=';
    rest_.remove_prefix(wrapped ? 2 : 0);
    const auto one = first_character(rest_);
    if (one.size == 0) {
        return fail("Unmatched [, [^, [:, [., or [=") != nullptr;
    }
    code = one.code;
    rest_.remove_prefix(one.size);
    const char end[] = {mark, ']'};
    if (wrapped && !take({end, 2})) {
        return fail("Invalid collation character") != nullptr;
    }
    return true;
}

node_ptr parser::postfix(node_ptr of) {
    for (std::size_t repeats = 0;; ++repeats) {
        if (repeats > most_depth) {
            return fail("Regular expression too big");
        }
        unsigned least = 0;
        unsigned most = no_end;
        if (take("\\+")) {
            least = 1;
        } else if (take("\\?")) {
            most = 1;
        } else if (take("\\{")) {
            if (!interval(least, most)) {
                return nullptr;
            }
        } else if (!take("*")) {
            return of;
        }
        auto out = make(node::kind::repeat);
        out->least = least;
        out->most = most;
        out->parts.push_back(std::move(of));
        of = std::move(out);
    }
}

bool parser::number(unsigned& out) {
    bool any = false;
    for (out = 0; !rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9'; any = true) {
        out = std::min(out * 10 + static_cast<unsigned>(rest_[0] - '0'), most_repeats + 1);
        rest_.remove_prefix(1);
    }
    return any;
}

bool parser::interval(unsigned& least, unsigned& most) {
    const bool has_least = number(least);
    most = least;
    const bool comma = take(",");
    if (comma && !number(most)) {
        most = no_end;
    }
    if (!take("\\}")) {
        return fail(rest_.empty() ? "Unmatched \\{" : "Invalid content of \\{\\}") != nullptr;
    }
    if ((!has_least && !comma) || (most != no_end && most < least)) {
        return fail("Invalid content of \\{\\}") != nullptr;
    }
    if (least > most_repeats || (most != no_end && most > most_repeats)) {
        return fail("Regular expression too big") != nullptr;
    }
    return true;
}

} // namespace

parsed_regex parse_regex(std::string_view pattern) {
    parsed_regex out;
    parser from(pattern);
    out.root = from.parse();
    out.fault = from.fault;
    out.has_references = from.has_references;
    return out;
}

} // namespace sandboxd::agent
