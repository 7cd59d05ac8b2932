// From a pattern to programs.

#include "agent/regex.hpp"
#include "agent/utf8.hpp"

#include <algorithm>
#include <memory>

namespace sandboxd::agent {

namespace {

constexpr std::size_t most_steps = 30'000;
constexpr std::size_t most_depth = 200;
constexpr unsigned most_repeats = 32'767;
constexpr unsigned no_end = UINT32_MAX;
constexpr unsigned most_groups = 9;
constexpr std::uint32_t last_code = 0x10FFFF;

using place = regex_step::place;

struct node {
    enum class kind : std::uint8_t {
        empty,
        byte,
        any,
        set,
        assertion,
        group,
        reference,
        list,
        either,
        repeat
    };
    kind what = kind::empty;
    char byte = 0;
    place where{};
    unsigned number = 0; ///< group, reference
    unsigned least = 0;  ///< repeat
    unsigned most = 0;
    character_set set;
    std::vector<std::unique_ptr<node>> parts;
};
using node_ptr = std::unique_ptr<node>;

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
    for (;;) {
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

/// Whether two programs are needed: characters of more than one byte are to be told from bytes.
bool needs_characters(const node& of) {
    if (of.what == node::kind::any || (of.what == node::kind::set && of.set.negated())) {
        return true;
    }
    if (of.what == node::kind::set) {
        const auto ranges = of.set.ranges();
        return !ranges.empty() && ranges.back().second >= 0x80;
    }
    return std::any_of(of.parts.begin(), of.parts.end(),
                       [](const auto& one) { return needs_characters(*one); });
}

class emitter {
public:
    emitter(regex_program& out, bool characters) : out_(out), characters_(characters) {}

    void emit(const node& of);
    [[nodiscard]] bool too_large() const { return out_.steps.size() > most_steps; }

private:
    using ranges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

    std::uint32_t here() const { return static_cast<std::uint32_t>(out_.steps.size()); }
    std::uint32_t add(const regex_step& step) {
        out_.steps.push_back(step);
        return here() - 1;
    }
    void emit_either(const std::vector<node_ptr>& parts);
    void emit_repeat(const node& of);
    void emit_set(const character_set& set);
    void emit_ranges(const ranges& all);
    void utf8_sequences(std::uint32_t from, std::uint32_t to,
                        std::vector<std::vector<std::pair<unsigned char, unsigned char>>>& out) const;

    regex_program& out_;
    bool characters_;
};

void emitter::emit(const node& of) {
    if (too_large()) {
        return;
    }
    using kind = node::kind;
    const auto byte = static_cast<unsigned char>(of.byte);
    switch (of.what) {
    case kind::empty:
        break;
    case kind::byte:
        add({.what = regex_step::kind::bytes, .low = byte, .high = byte});
        break;
    case kind::any: {
        character_set all;
        all.negate();
        emit_set(all);
        break;
    }
    case kind::set:
        emit_set(of.set);
        break;
    case kind::assertion:
        add({.what = regex_step::kind::assertion, .where = of.where});
        break;
    case kind::group:
        add({.what = regex_step::kind::save, .next = 2 * of.number});
        emit(*of.parts[0]);
        add({.what = regex_step::kind::save, .next = 2 * of.number + 1});
        break;
    case kind::reference:
        add({.what = regex_step::kind::reference, .next = of.number});
        break;
    case kind::list:
        for (const auto& one : of.parts) {
            emit(*one);
        }
        break;
    case kind::either:
        emit_either(of.parts);
        break;
    case kind::repeat:
        emit_repeat(of);
        break;
    }
}

void emitter::emit_either(const std::vector<node_ptr>& parts) {
    std::vector<std::uint32_t> jumps;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const bool last = i + 1 == parts.size();
        const auto split = last ? 0 : add({.what = regex_step::kind::split});
        if (!last) {
            out_.steps[split].next = here();
        }
        emit(*parts[i]);
        if (!last) {
            jumps.push_back(add({.what = regex_step::kind::jump}));
            out_.steps[split].other = here();
        }
    }
    for (const auto jump : jumps) {
        out_.steps[jump].next = here();
    }
}

void emitter::emit_repeat(const node& of) {
    const auto& part = *of.parts[0];
    for (unsigned i = 0; i < of.least && !too_large(); ++i) {
        emit(part);
    }
    if (of.most == no_end) {
        const auto split = add({.what = regex_step::kind::split});
        out_.steps[split].next = here();
        emit(part);
        add({.what = regex_step::kind::jump, .next = split});
        out_.steps[split].other = here();
        return;
    }
    std::vector<std::uint32_t> splits;
    for (unsigned i = of.least; i < of.most && !too_large(); ++i) {
        splits.push_back(add({.what = regex_step::kind::split}));
        out_.steps[splits.back()].next = here();
        emit(part);
    }
    for (const auto split : splits) {
        out_.steps[split].other = here();
    }
}

/// The complement up to `last`, the line end left out.
std::vector<std::pair<std::uint32_t, std::uint32_t>>
complement(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& of, std::uint32_t last) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> out;
    std::uint32_t from = 0;
    for (const auto& [low, high] : of) {
        if (low > from) {
            out.emplace_back(from, low - 1);
        }
        from = std::max(from, high + 1);
    }
    if (from <= last) {
        out.emplace_back(from, last);
    }
    return out;
}

void emitter::emit_set(const character_set& set) {
    const std::uint32_t last = characters_ ? last_code : 0xFF;
    auto all = set.ranges();
    if (set.negated()) {
        all = complement(all, last);
    }
    emit_ranges(all);
}

/// One of several sequences of byte ranges.
void emitter::emit_ranges(const ranges& all) {
    std::vector<std::vector<std::pair<unsigned char, unsigned char>>> sequences;
    for (const auto& [from, to] : all) {
        if (characters_) {
            utf8_sequences(from, to, sequences);
        } else if (from <= 0xFF) {
            sequences.push_back({{static_cast<unsigned char>(from),
                                  static_cast<unsigned char>(std::min<std::uint32_t>(to, 0xFF))}});
        }
    }
    std::vector<std::uint32_t> jumps;
    if (sequences.empty()) {
        add({.what = regex_step::kind::bytes, .low = 1, .high = 0}); // matches nothing
    }
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        const bool last = i + 1 == sequences.size();
        const auto split = last ? 0 : add({.what = regex_step::kind::split});
        if (!last) {
            out_.steps[split].next = here();
        }
        for (const auto& [low, high] : sequences[i]) {
            add({.what = regex_step::kind::bytes, .low = low, .high = high});
        }
        if (!last) {
            jumps.push_back(add({.what = regex_step::kind::jump}));
            out_.steps[split].other = here();
        }
    }
    for (const auto jump : jumps) {
        out_.steps[jump].next = here();
    }
}

std::size_t encode(std::uint32_t code, unsigned char (&out)[4]) {
    const std::size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    constexpr unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (std::size_t i = size; i-- > 0;) {
        out[i] = static_cast<unsigned char>(i == 0 ? lead[size] | code : 0x80 | (code & 0x3F));
        code >>= 6;
    }
    return size;
}

/// Cuts a range of characters into pieces whose encodings are all combinations of byte ranges.
void emitter::utf8_sequences(std::uint32_t from, std::uint32_t to,
                             std::vector<std::vector<std::pair<unsigned char, unsigned char>>>& out) const {
    to = std::min(to, last_code);
    if (from > to) {
        return;
    }
    if (from < 0xE000 && to >= 0xD800 && !(from < 0xD800 && to < 0xD800)) { // surrogates have no encoding
        if (from < 0xD800) {
            utf8_sequences(from, 0xD7FF, out);
        }
        if (to >= 0xE000) {
            utf8_sequences(0xE000, to, out);
        }
        return;
    }
    for (const std::uint32_t edge : {0x7FU, 0x7FFU, 0xFFFFU}) {
        if (from <= edge && to > edge) {
            utf8_sequences(from, edge, out);
            utf8_sequences(edge + 1, to, out);
            return;
        }
    }
    for (unsigned bits = 6; bits <= 18 && to >= 0x80; bits += 6) {
        const std::uint32_t mask = (1U << bits) - 1;
        if ((from | mask) == (to | mask)) {
            continue;
        }
        if ((from & mask) != 0) {
            utf8_sequences(from, from | mask, out);
            utf8_sequences((from | mask) + 1, to, out);
            return;
        }
        if ((to & mask) != mask) {
            utf8_sequences(from, (to & ~mask) - 1, out);
            utf8_sequences(to & ~mask, to, out);
            return;
        }
    }
    unsigned char low[4];
    unsigned char high[4];
    const auto size = encode(from, low);
    encode(to, high);
    auto& added = out.emplace_back();
    for (std::size_t i = 0; i < size; ++i) {
        added.emplace_back(low[i], high[i]);
    }
}

/// The longest run of bytes that is in every match; `whole` stays true when there is nothing else.
struct literal_finder {
    std::string best;
    std::string run;
    bool whole = true;

    void end_run() {
        if (run.size() > best.size()) {
            best = run;
        }
        run.clear();
    }
    void visit(const node& of) {
        switch (of.what) {
        case node::kind::byte:
            run.push_back(of.byte);
            return;
        case node::kind::list:
            for (const auto& one : of.parts) {
                visit(*one);
            }
            return;
        case node::kind::either:
            if (of.parts.size() == 1) {
                visit(*of.parts[0]);
                return;
            }
            break;
        case node::kind::group:
            whole = false;
            visit(*of.parts[0]);
            return;
        case node::kind::assertion:
            whole = false; // it takes no bytes: the run goes on
            return;
        case node::kind::repeat:
            if (of.least > 0) {
                end_run();
                visit(*of.parts[0]);
            }
            break;
        default:
            break;
        }
        whole = false;
        end_run();
    }
};

bool emit_program(const node& root, bool characters, bool references, regex_program& out) {
    emitter to(out, characters);
    to.emit(root);
    out.steps.push_back({.what = regex_step::kind::match});
    out.has_references = references;
    return !to.too_large();
}

} // namespace

regex_parts compile_regex(std::string_view pattern) {
    regex_parts out;
    parser from(pattern);
    const auto root = from.parse();
    if (from.fault != nullptr) {
        out.fault = from.fault;
        return out;
    }
    literal_finder finder;
    finder.visit(*root);
    finder.end_run();
    out.literal = std::move(finder.best);
    out.only_literal = finder.whole && !out.literal.empty();
    bool fits = emit_program(*root, false, from.has_references, out.bytes);
    if (fits && needs_characters(*root)) {
        fits = emit_program(*root, true, from.has_references, out.characters);
    }
    out.fault = fits ? nullptr : "Regular expression too big";
    return out;
}

} // namespace sandboxd::agent
