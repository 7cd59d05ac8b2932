#include "session/path_locks.hpp"

#include <boost/test/unit_test.hpp>

#include <optional>

namespace sandboxd::session {

BOOST_AUTO_TEST_SUITE(locks_of_paths)

BOOST_AUTO_TEST_CASE(keys) {
    BOOST_TEST(lock_key("/w", "a/b") == "/w/a/b");
    BOOST_TEST(lock_key("/w/", "./a//b/../c/") == "/w/a/c");
    BOOST_TEST(lock_key("/w", "/w/a/c") == "/w/a/c");
    BOOST_TEST(lock_key("/w", "../../../etc/x") == "/etc/x");
    BOOST_TEST(lock_key("/w", "..") == "/");
    BOOST_TEST(lock_key("/", "a") == "/a");
}

BOOST_AUTO_TEST_CASE(first_come_first_served) {
    path_locks locks;
    std::optional<path_locks::place> first;
    std::optional<path_locks::place> second;
    std::optional<path_locks::place> third;
    first.emplace(locks, "/a");
    second.emplace(locks, "/a");
    third.emplace(locks, "/a");
    const path_locks::place other(locks, "/b");
    BOOST_TEST(first->granted());
    BOOST_TEST(other.granted());
    BOOST_TEST(!second->granted());
    BOOST_TEST(locks.busy() == 2U);
    second.reset(); // gave up
    BOOST_TEST(!third->granted());
    first.reset();
    BOOST_TEST(third->granted());
    BOOST_TEST(third->wake().is_set());
    third.reset();
    BOOST_TEST(locks.busy() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace sandboxd::session
