// The parts of file operations that know nothing of files: patterns and edits. Compared with the C library's
// where that has the same rules.

#include "agent/glob_pattern.hpp"
#include "agent/regex.hpp"
#include "agent/text_edit.hpp"

#include <boost/test/unit_test.hpp>

#include <fnmatch.h>
#include <regex.h>

#include <ctime>
#include <random>

namespace {

using namespace sandboxd::agent;

bool glob(std::string_view pattern, std::string_view text) {
    return glob_pattern(pattern).matches(text);
}

std::string random_text(std::mt19937& random, std::string_view letters, std::size_t most) {
    std::string out;
    for (auto left = random() % (most + 1); left > 0; --left) {
        out.push_back(letters[random() % letters.size()]);
    }
    return out;
}

/// Whether the pattern matches somewhere in the line, as the agent decides it.
bool search(std::string_view pattern, std::string_view line, bool characters = false) {
    const auto parts = compile_regex(pattern);
    BOOST_REQUIRE_MESSAGE(parts.fault == nullptr, "\"" << pattern << "\": " << parts.fault);
    const bool wide = characters && !parts.characters.steps.empty();
    const auto answer = regex_search(wide ? parts.characters : parts.bytes).matches(line);
    BOOST_REQUIRE(answer.has_value());
    if (*answer && !parts.literal.empty()) {
        BOOST_TEST(line.find(parts.literal) != std::string_view::npos);
    }
    return *answer;
}

std::string fault_of(std::string_view pattern) {
    const auto* const fault = compile_regex(pattern).fault;
    return fault == nullptr ? "" : fault;
}

BOOST_AUTO_TEST_SUITE(files_parts)

BOOST_AUTO_TEST_CASE(globs_know_stars_sets_and_quotes) {
    BOOST_TEST(glob("*.py", "a/b/.c.py"));
    BOOST_TEST(!glob("*.py", "a.pyc"));
    BOOST_TEST(glob("a?c", "a/c"));
    BOOST_TEST(glob("?", "é"));
    BOOST_TEST(!glob("?", "éa"));
    BOOST_TEST(!glob("*??", "€"));
    BOOST_TEST(glob("?", "\xff"));
    BOOST_TEST(glob("[é-ü]x", "öx"));
    BOOST_TEST(!glob("[é-ü]x", "\xf6x"));
    BOOST_TEST(glob("[!a]", "\xff"));
    BOOST_TEST(glob("{a,b}", "{a,b}"));
    BOOST_TEST(!glob("{a,b}", "a"));
    BOOST_TEST(glob("\\*[[:digit:]]", "*7"));
    BOOST_TEST(glob("[x", "[x"));
    BOOST_TEST(glob("", ""));
    BOOST_TEST(!glob("", "a"));
}

BOOST_AUTO_TEST_CASE(globs_agree_with_fnmatch) {
    std::mt19937 random(17);
    for (int i = 0; i < 200'000; ++i) {
        const auto pattern = random_text(random, "ab*?[]!-/.\\", 8);
        const auto text = random_text(random, "ab/.-]", 8);
        const auto quote = pattern.find('\\');
        if (pattern.find("[.") != std::string::npos || pattern.ends_with('\\') ||
            (quote != std::string::npos && pattern.find('[') != std::string::npos)) {
            continue; // collating symbols, and quotes at the end or with brackets: every C library has its
                      // own
        }
        const bool expected = fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
        BOOST_REQUIRE_MESSAGE(glob(pattern, text) == expected, pattern << " and " << text);
    }
}

BOOST_AUTO_TEST_CASE(a_glob_of_many_stars_is_quick) {
    std::string pattern;
    for (int i = 0; i < 1'000; ++i) {
        pattern += "*a";
    }
    const auto began = std::clock(); // its own time: the machine may do something else meanwhile
    BOOST_TEST(!glob(pattern + "b*", std::string(5'000, 'a')));
    BOOST_TEST(((std::clock() - began) / CLOCKS_PER_SEC < 20));
}

BOOST_AUTO_TEST_CASE(basic_expressions_mean_what_grep_means) {
    BOOST_TEST(search("", "x"));
    BOOST_TEST(search("b.d", "abcde"));
    BOOST_TEST(!search("^b", "ab"));
    BOOST_TEST(search("b$", "ab"));
    BOOST_TEST(search("a^b$c", "a^b$c"));
    BOOST_TEST(search("*a", "*a"));
    BOOST_TEST(search("^*a", "*a"));
    BOOST_TEST(search("\\(*a\\)", "*a"));
    BOOST_TEST(search("a+b?|{2}", "a+b?|{2}"));
    BOOST_TEST(search("^a\\+b\\?$", "aa"));
    BOOST_TEST(search("^\\(ab\\|cd\\)\\{2\\}$", "abcd"));
    BOOST_TEST(!search("^\\(ab\\|cd\\)\\{2\\}$", "abcdab"));
    BOOST_TEST(search("one\ntwo", "a two"));
    BOOST_TEST(search("^[]^-]*$", "]-^"));
    BOOST_TEST(search("^[^]]$", "^"));
    BOOST_TEST(search("[[:upper:][:digit:]]x", "7x"));
    BOOST_TEST(search("^[\\n]*$", "\\n\\"));
    BOOST_TEST(search("\\bfoo\\b", "a foo."));
    BOOST_TEST(!search("\\bfoo\\b", "a food"));
    BOOST_TEST(search("\\<fo", "(foo"));
    BOOST_TEST(!search("\\<oo", "foo"));
    BOOST_TEST(search("oo\\>", "foo"));
    BOOST_TEST(search("\\Bo\\B", "fog"));
    BOOST_TEST(search("^\\w\\W\\s\\S$", "a- b"));
    BOOST_TEST(search("-e", "x-e"));
    BOOST_TEST(search("\\(a*\\)b\\1$", "aabaa"));
    BOOST_TEST(!search("^\\(a*\\)b\\1$", "aaba"));
    BOOST_TEST(search("^\\(.\\)\\(.\\)\\2\\1$", "abba"));
}

BOOST_AUTO_TEST_CASE(characters_are_utf8_where_the_line_is) {
    BOOST_TEST(search("^.$", "é", true));
    BOOST_TEST(!search("^.$", "é", false));
    BOOST_TEST(search("^..$", "é", false));
    BOOST_TEST(search("^[^a]$", "\U0001F600", true));
    BOOST_TEST(search("^[à-ÿ]\\+$", "éèü", true));
    BOOST_TEST(!search("^[à-ÿ]$", "a", true));
    BOOST_TEST(search("^[\u0400-\U0001F64F]*$", "Ж€\U0001F600", true));
}

BOOST_AUTO_TEST_CASE(wrong_expressions_are_told_in_words) {
    BOOST_TEST(fault_of("[a") == "Unmatched [, [^, [:, [., or [=");
    BOOST_TEST(fault_of("\\(a") == "Unmatched ( or \\(");
    BOOST_TEST(fault_of("a\\)") == "Unmatched ) or \\)");
    BOOST_TEST(fault_of("a\\") == "Trailing backslash");
    BOOST_TEST(fault_of("[z-a]") == "Invalid range end");
    BOOST_TEST(fault_of("[[:no:]]") == "Invalid character class name");
    BOOST_TEST(fault_of("a\\{2,1\\}") == "Invalid content of \\{\\}");
    BOOST_TEST(fault_of("\\1") == "Invalid back reference");
    BOOST_TEST(fault_of("a\\{40000\\}") == "Regular expression too big");
    BOOST_TEST(fault_of("\\(\\(a\\{999\\}\\)\\{999\\}\\)\\{999\\}") == "Regular expression too big");
    std::string deep;
    for (int i = 0; i < 100'000; ++i) {
        deep += "\\(";
    }
    BOOST_TEST(fault_of(deep) == "Regular expression too big");
    BOOST_TEST(fault_of("a" + std::string(50'000, '*')) == "Regular expression too big");
}

BOOST_AUTO_TEST_CASE(expressions_agree_with_the_c_library) {
    std::mt19937 random(23);
    const std::string_view pieces[] = {"a",   "b",   ".",    "*",    "\\(",       "\\)",     "\\|",
                                       "^",   "$",   "[ab]", "[^a]", "\\{1,2\\}", "\\{2\\}", "\\+",
                                       "\\?", "\\b", "\\<",  "\\>",  "_",         " "};
    int compared = 0;
    for (int i = 0; i < 60'000; ++i) {
        std::string pattern;
        bool repeatable = true; // what a repeated assertion is, the C library has its own idea of
        for (auto left = random() % 8; left > 0; --left) {
            const auto piece = pieces[random() % std::size(pieces)];
            const bool repeats = piece == "*" || piece == "\\+" || piece == "\\?" || piece.starts_with("\\{");
            if (!repeats || repeatable) {
                pattern += piece;
                repeatable = piece != "\\b" && piece != "\\<" && piece != "\\>" && piece != "$";
            }
        }
        regex_t theirs;
        const bool good = compile_regex(pattern).fault == nullptr;
        if (!good || regcomp(&theirs, pattern.c_str(), REG_NOSUB) != 0) {
            continue;
        }
        for (int j = 0; j < 4; ++j) {
            const auto text = random_text(random, "aab _", 6);
            const bool expected = regexec(&theirs, text.c_str(), 0, nullptr, 0) == 0;
            BOOST_CHECK_MESSAGE(search(pattern, text) == expected,
                                "\"" << pattern << "\" and \"" << text << "\": " << expected);
            ++compared;
        }
        regfree(&theirs);
    }
    BOOST_TEST(compared > 50'000);
}

BOOST_AUTO_TEST_CASE(no_expression_takes_for_ever) {
    const auto began = std::clock(); // its own time: the machine may do something else meanwhile
    BOOST_TEST(!search("\\(a*\\)*\\(a*\\)*\\(a*\\)*b$", std::string(20'000, 'a')));
    BOOST_TEST(!search("\\(a\\|aa\\)\\+c", std::string(20'000, 'a')));
    const auto parts = compile_regex("\\(a*\\)\\(a*\\)\\(a*\\)\\1\\2\\3b");
    BOOST_TEST(!regex_search(parts.bytes).matches(std::string(5'000, 'a')).has_value());
    std::mt19937 random(5);
    std::string text;
    for (int i = 0; i < 20'000; ++i) {
        text.push_back(random() % 2 == 0 ? 'a' : 'b');
    }
    BOOST_TEST(!search("a.\\{200\\}c", text)); // as many states as there are texts of 200 letters
    BOOST_TEST(((std::clock() - began) / CLOCKS_PER_SEC < 60));
}

BOOST_AUTO_TEST_CASE(literals_are_found_in_patterns) {
    BOOST_TEST(compile_regex("needle").only_literal);
    BOOST_TEST(compile_regex("need\\.le").literal == "need.le");
    BOOST_TEST(compile_regex("^needle$").literal == "needle");
    BOOST_TEST(!compile_regex("^needle$").only_literal);
    BOOST_TEST(compile_regex("a*xyz[0-9]ab").literal == "xyz");
    BOOST_TEST(compile_regex("ab*").literal == "a");
    BOOST_TEST(compile_regex("ab\\|cd").literal.empty());
}

struct edit_case {
    std::string content, from, to;
    bool all;
    std::uint64_t occurrences;
    std::string result; ///< empty: not applied
};

BOOST_AUTO_TEST_CASE(edits_change_what_they_name_and_nothing_else) {
    const edit_case cases[] = {
        {"a b a", "b", "c", false, 1, "a c a"},
        {"a b a", "a", "c", false, 2, ""},
        {"a b a", "a", "", true, 2, " b "},
        {"a b a", "x", "c", false, 0, ""},
        {"aaaa", "aa", "b", true, 2, "bb"},
        {"a\r\nb\r\nc\r\n", "a\nb", "x\ny", false, 1, "x\r\ny\r\nc\r\n"},
        {"a\r\nb\nc\r\n", "a\nb", "x", false, 0, ""},
        {"a\r\nb\r\n", "a\r\nb", "x\ny", false, 1, "x\ny\r\n"},
        {"a\nb\r\n", "a\nb", "x", false, 1, "x\r\n"},
        {"caf\xe9 = 1", "1", "2", false, 1, "caf\xe9 = 2"},
        {"\xEF\xBB\xBFtext", "text", "other", false, 1, "\xEF\xBB\xBFother"},
        {"x", "x", "\\1&$0\n/", false, 1, "\\1&$0\n/"},
        {"aé", "", "-", true, 3, "-a-é-"},
        {"ab", "", "-", false, 3, ""},
    };
    for (const auto& one : cases) {
        const auto got = edit_text(one.content, one.from, one.to, one.all, 1'000);
        BOOST_TEST(got.occurrences == one.occurrences);
        BOOST_TEST(got.applied == !one.result.empty());
        BOOST_TEST(got.content == one.result);
    }
    BOOST_TEST(edit_text("aaa", "a", std::string(400, 'b'), true, 1'000).too_large);
    BOOST_TEST(edit_text("aaa", "a", std::string(333, 'b'), true, 1'000).applied);
}

BOOST_AUTO_TEST_CASE(binary_is_what_is_neither_utf8_nor_an_older_text) {
    BOOST_TEST(!looks_binary("plain"));
    BOOST_TEST(!looks_binary(std::string(100, '\0')));
    BOOST_TEST(!looks_binary("caf\xe9 cr\xe8me br\xfbl\xe9\x65\n"));
    BOOST_TEST(looks_binary(std::string("\x7f"
                                        "ELF\x02\x01\x01\0\0\xff\xfe\x90\x80",
                                        13)));
    BOOST_TEST(!looks_binary(std::string(1'000, 'a') + '\0' + "\xff"));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
