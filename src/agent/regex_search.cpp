// Programs on lines: a state machine made as it goes, and backtracking, with a bound, for back-references.

#include "agent/regex.hpp"

#include <algorithm>

namespace sandboxd::agent {

namespace {

constexpr std::size_t most_states = 2'000;
constexpr std::size_t most_held = 1'000'000; ///< steps in all states
constexpr std::size_t most_backtracks = 2'000'000;

bool is_word(std::size_t symbol) {
    return symbol == '_' || (symbol >= '0' && symbol <= '9') || (symbol >= 'a' && symbol <= 'z') ||
           (symbol >= 'A' && symbol <= 'Z');
}

bool holds(regex_step::place where, bool at_start, bool at_end, bool word_before, bool word_after) {
    using place = regex_step::place;
    switch (where) {
    case place::line_start:
        return at_start;
    case place::line_end:
        return at_end;
    case place::word_edge:
        return word_before != word_after;
    case place::word_inside:
        return word_before == word_after;
    case place::word_start:
        return !word_before && word_after;
    case place::word_end:
        return word_before && !word_after;
    }
    return false;
}

/// Tries one way after the other; what is to be undone on the way back lies between the branches.
class backtracker {
public:
    backtracker(const regex_program& program, std::string_view line) : program_(program), line_(line) {}

    /// Nothing when it takes too many steps, all places together.
    std::optional<bool> matches_at(std::size_t begin);

private:
    static constexpr std::size_t unset = SIZE_MAX;
    struct branch {
        std::uint32_t step;
        std::size_t at;
        std::uint32_t slot; ///< not 0: not a branch, but a group's end to be put back
        std::size_t value;
    };
    struct position {
        std::uint32_t step;
        std::size_t at;
    };

    bool advance(position& from);
    bool repeats_group(std::uint32_t group, std::size_t& at) const;

    const regex_program& program_;
    std::string_view line_;
    std::size_t left_ = most_backtracks;
    std::vector<branch> branches_;
    std::array<std::size_t, 20> slots_{};
};

bool backtracker::repeats_group(std::uint32_t group, std::size_t& at) const {
    const auto first = slots_[2 * group];
    const auto end = slots_[2 * group + 1];
    if (first == unset || end == unset || first > end ||
        !line_.substr(at).starts_with(line_.substr(first, end - first))) {
        return false;
    }
    at += end - first;
    return true;
}

/// One step; false where it does not match.
bool backtracker::advance(position& from) {
    const auto& one = program_.steps[from.step++];
    const bool at_end = from.at == line_.size();
    const auto byte = at_end ? 0U : static_cast<unsigned char>(line_[from.at]);
    switch (one.what) {
    case regex_step::kind::match:
        return true;
    case regex_step::kind::bytes:
        ++from.at;
        return !at_end && byte >= one.low && byte <= one.high;
    case regex_step::kind::split:
        branches_.push_back({one.other, from.at, 0, 0});
        from.step = one.next;
        return true;
    case regex_step::kind::jump:
        from.step = one.next;
        return true;
    case regex_step::kind::assertion:
        return holds(one.where, from.at == 0, at_end,
                     from.at > 0 && is_word(static_cast<unsigned char>(line_[from.at - 1])),
                     !at_end && is_word(byte));
    case regex_step::kind::save:
        if (one.next < slots_.size()) {
            branches_.push_back({0, 0, one.next, slots_[one.next]});
            slots_[one.next] = from.at;
        }
        return true;
    case regex_step::kind::reference:
        return repeats_group(one.next, from.at);
    }
    return false;
}

std::optional<bool> backtracker::matches_at(std::size_t begin) {
    slots_.fill(unset);
    branches_.assign(1, {0, begin, 0, 0});
    while (!branches_.empty()) {
        const auto from = branches_.back();
        branches_.pop_back();
        if (from.slot != 0) {
            slots_[from.slot] = from.value;
            continue;
        }
        position here{from.step, from.at};
        do {
            if (program_.steps[here.step].what == regex_step::kind::match) {
                return true;
            }
            if (left_-- == 0 || branches_.size() > most_backtracks / 8) {
                left_ = 0;
                return std::nullopt;
            }
        } while (advance(here));
    }
    return false;
}

} // namespace

regex_search::regex_search(const regex_program& program) : program_(program) {
    mark_.resize(program.steps.size());
    make_classes();
    forget();
}

/// Symbols that no step tells apart are one.
void regex_search::make_classes() {
    std::array<bool, 258> edge{};
    edge[0] = edge[end_of_line] = true;
    for (const auto& one : program_.steps) {
        if (one.what == regex_step::kind::bytes) {
            edge[one.low] = true;
            edge[one.high + 1U] = true;
        }
    }
    for (std::size_t symbol = 1; symbol < end_of_line; ++symbol) {
        edge[symbol] = edge[symbol] || is_word(symbol) != is_word(symbol - 1);
    }
    for (std::size_t symbol = 0; symbol <= end_of_line; ++symbol) {
        if (edge[symbol]) {
            sample_.push_back(symbol);
        }
        class_of_[symbol] = static_cast<std::uint16_t>(sample_.size() - 1);
    }
}

void regex_search::forget() {
    states_.clear();
    moves_.clear();
    held_ = 0;
    static_cast<void>(intern({0}, before::start));
}

std::int32_t regex_search::intern(std::vector<std::uint32_t> steps, before seen) {
    for (std::size_t i = 0; i < states_.size(); ++i) {
        if (states_[i].seen == seen && states_[i].steps == steps) {
            return static_cast<std::int32_t>(i);
        }
    }
    states_.push_back({std::move(steps), seen});
    moves_.resize(states_.size() * sample_.size(), unknown);
    return static_cast<std::int32_t>(states_.size() - 1);
}

/// Follows all that takes no byte, knowing what comes before and after. True when a match is reached.
bool regex_search::close(const state& from, std::size_t symbol, std::vector<std::uint32_t>& out) {
    ++round_;
    stack_.assign(from.steps.rbegin(), from.steps.rend());
    const bool word_after = symbol != end_of_line && is_word(symbol);
    while (!stack_.empty()) {
        const auto at = stack_.back();
        stack_.pop_back();
        if (mark_[at] == round_) {
            continue;
        }
        mark_[at] = round_;
        const auto& one = program_.steps[at];
        switch (one.what) {
        case regex_step::kind::match:
            return true;
        case regex_step::kind::bytes:
        case regex_step::kind::reference:
            out.push_back(at);
            break;
        case regex_step::kind::split:
            stack_.push_back(one.other);
            stack_.push_back(one.next);
            break;
        case regex_step::kind::jump:
            stack_.push_back(one.next);
            break;
        case regex_step::kind::save:
            stack_.push_back(at + 1);
            break;
        case regex_step::kind::assertion:
            if (holds(one.where, from.seen == before::start, symbol == end_of_line, from.seen == before::word,
                      word_after)) {
                stack_.push_back(at + 1);
            }
            break;
        }
    }
    return false;
}

std::int32_t regex_search::advance(std::int32_t from, std::size_t symbol) {
    std::vector<std::uint32_t> now;
    const auto origin = static_cast<std::size_t>(from);
    if (close(states_[origin], symbol, now)) {
        return moves_[origin * sample_.size() + class_of_[symbol]] = found;
    }
    std::vector<std::uint32_t> next;
    for (const auto at : now) {
        const auto& one = program_.steps[at];
        if (symbol >= one.low && symbol <= one.high && symbol != end_of_line) {
            next.push_back(at + 1);
        }
    }
    next.push_back(0); // a match may begin at any place
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    const auto to = intern(std::move(next), is_word(symbol) ? before::word : before::other);
    moves_[origin * sample_.size() + class_of_[symbol]] = to;
    return to;
}

std::optional<bool> regex_search::matches(std::string_view line) {
    if (program_.has_references) {
        return backtrack(line);
    }
    std::int32_t at = 0;
    for (std::size_t i = 0; i <= line.size(); ++i) {
        const std::size_t symbol = i < line.size() ? static_cast<unsigned char>(line[i]) : end_of_line;
        auto to = moves_[static_cast<std::size_t>(at) * sample_.size() + class_of_[symbol]];
        if (to == unknown) {
            to = advance(at, symbol);
            held_ += to >= 0 ? states_[static_cast<std::size_t>(to)].steps.size() : 0;
            if (states_.size() > most_states || held_ > most_held) {
                auto kept = to >= 0 ? states_[static_cast<std::size_t>(to)] : state();
                forget();
                to = to >= 0 ? intern(std::move(kept.steps), kept.seen) : to;
            }
        }
        if (to == found) {
            return true;
        }
        at = to;
    }
    return false;
}

std::optional<bool> regex_search::backtrack(std::string_view line) const {
    backtracker from(program_, line);
    for (std::size_t begin = 0; begin <= line.size(); ++begin) {
        const auto answer = from.matches_at(begin);
        if (!answer || *answer) {
            return answer;
        }
    }
    return false;
}

} // namespace sandboxd::agent
