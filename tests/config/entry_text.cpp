#include "config/entry_text.hpp"

#include "config/runtimes.hpp"

#include <boost/test/unit_test.hpp>

using namespace sandboxd;

BOOST_AUTO_TEST_CASE(an_entry_reads_back_as_it_was_written) {
    const auto entries = config::parse_runtimes("host=host,py=python:3.12-slim;mem_limit=512m;cpus=1.5;pids_"
                                                "limit=64;network_mode=none;description=a \"b\"",
                                                "test");
    BOOST_REQUIRE(entries.has_value());
    BOOST_REQUIRE(entries->size() == 2U);
    for (const runtime_entry& entry : *entries) {
        const auto again = config::parse_entry(config::entry_text(entry));
        BOOST_REQUIRE(again.has_value());
        BOOST_TEST((*again == entry));
    }
}

BOOST_AUTO_TEST_CASE(a_built_in_is_kept_with_its_definition) {
    const auto entries = config::parse_runtimes("c=@coding", "test");
    BOOST_REQUIRE(entries.has_value());
    const runtime_entry& entry = entries->front();
    const auto again = config::parse_entry(config::entry_text(entry));
    BOOST_REQUIRE(again.has_value());
    BOOST_TEST(!again->builtin.has_value());
    BOOST_TEST((again->definition == entry.definition));
    BOOST_TEST(again->alias == "c");
}

BOOST_AUTO_TEST_CASE(text_that_is_no_entry_is_refused) {
    for (const char* text : {"", "[]", "{}", R"({"a":"x","b":"y"})", R"({"a":{"runtime":"nosuch"}})"}) {
        BOOST_TEST(!config::parse_entry(text).has_value(), text);
    }
}
