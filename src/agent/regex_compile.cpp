// From the tree of a pattern to its programs.

#include "agent/regex_node.hpp"
#include "agent/utf8_ranges.hpp"

#include <algorithm>

namespace sandboxd::agent {

namespace {

constexpr std::size_t most_steps = 30'000;
constexpr std::uint32_t last_code = 0x10FFFF;

using node = regex_node;
using node_ptr = std::unique_ptr<regex_node>;
constexpr unsigned no_end = regex_node::no_end;

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
    std::vector<byte_ranges> sequences;
    for (const auto& [from, to] : all) {
        if (characters_) {
            append_utf8_ranges(from, to, sequences);
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
    const auto from = parse_regex(pattern);
    const auto& root = from.root;
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
