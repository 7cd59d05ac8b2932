#include "launcher/uid_ranges.hpp"

#include "launcher/bundle_config.hpp"
#include "support/scratch.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

using namespace sandboxd;
using namespace sandboxd::launcher;

namespace {

struct directory_fixture : test::scratch {
    [[nodiscard]] std::size_t files() const {
        const auto all = std::filesystem::directory_iterator(path + "/uids");
        return static_cast<std::size_t>(std::distance(begin(all), end(all)));
    }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(launcher_uid_ranges, directory_fixture)

BOOST_AUTO_TEST_CASE(blocks_lie_on_their_boundaries) {
    const auto blocks = free_blocks({0x10000, 0x4FFFF}, {});
    BOOST_TEST((blocks == std::vector<std::uint32_t>{0x10000, 0x20000, 0x30000, 0x40000}));
    BOOST_TEST((free_blocks({0x10001, 0x4FFFE}, {}) == std::vector<std::uint32_t>{0x20000, 0x30000}));
    BOOST_TEST(free_blocks({0x10001, 0x20000}, {}).empty());
    BOOST_TEST(free_blocks({0x10000000, 0x6FFFFFFF}, {}).size() == 24576U);
    BOOST_TEST((free_blocks({0xFFFF0000, 0xFFFFFFFF}, {}) == std::vector<std::uint32_t>{0xFFFF0000}));
}

BOOST_AUTO_TEST_CASE(what_subuid_gives_away_is_left_out) {
    const auto taken =
        parse_subids("someone:131072:65536\nnonsense\n:1:\nother:262143:2\nbad:x:1\nzero:1:0\n");
    BOOST_TEST((taken == std::vector<id_span>{{131072, 196607}, {262143, 262144}}));
    BOOST_TEST((free_blocks({0x10000, 0x5FFFF}, taken) == std::vector<std::uint32_t>{0x10000, 0x50000}));
    BOOST_TEST((parse_subids("a:4294967290:100") == std::vector<id_span>{{4294967290U, 4294967295U}}));
}

BOOST_AUTO_TEST_CASE(a_claim_is_held_until_its_owner_gives_it_back) {
    const blocking::uid_ranges ranges(path + "/uids", {0x10000, 0x20000});
    const range_owner one{path, "uuid", "one"};
    const range_owner two{path, "uuid", "two"};
    const auto first = ranges.claim(one);
    const auto second = ranges.claim(two);
    BOOST_REQUIRE((first && second));
    BOOST_TEST(*first != *second);
    BOOST_TEST((ranges.owner_of(*first) == one));
    const auto third = ranges.claim(one);
    BOOST_REQUIRE(!third.has_value());
    BOOST_TEST((third.error().code == errc::capacity));
    ranges.release(two, *first); // not theirs
    BOOST_TEST((ranges.owner_of(*first) == one));
    ranges.release(one, *first);
    BOOST_TEST(!ranges.owner_of(*first).has_value());
    ranges.release(two, std::nullopt); // whatever it holds
    BOOST_TEST(files() == 0U);
}

BOOST_AUTO_TEST_CASE(nobody_ever_gets_the_same_range) {
    std::vector<std::uint32_t> blocks;
    for (std::uint32_t i = 1; i <= 200; ++i) {
        blocks.push_back(i * ids_per_sandbox);
    }
    std::mutex mutex;
    std::vector<std::uint32_t> got;
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 8; ++t) {
            threads.emplace_back([&, t] {
                // An object each, as services have: nothing is shared but the directory.
                const blocking::uid_ranges ranges(path + "/uids", blocks);
                for (int i = 0; i < 25; ++i) {
                    const auto base =
                        ranges.claim({path, "uuid", std::to_string(t) + "-" + std::to_string(i)});
                    const std::lock_guard lock(mutex);
                    got.push_back(base ? *base : 0);
                }
            });
        }
    }
    BOOST_TEST(got.size() == 200U);
    BOOST_TEST(std::set<std::uint32_t>(got.begin(), got.end()).size() == 200U);
    BOOST_TEST(!std::set<std::uint32_t>(got.begin(), got.end()).contains(0));
    BOOST_TEST(files() == 200U); // and no half-made ones
}

BOOST_AUTO_TEST_CASE(claims_without_their_slot_are_swept) {
    const blocking::uid_ranges ranges(path + "/uids", {0x7FF10000, 0x7FF20000});
    std::filesystem::create_directories(path + "/state/oci/kept");
    const auto kept = ranges.claim({path + "/state", "uuid", "kept"});
    const auto lost = ranges.claim({path + "/state", "uuid", "lost"});
    BOOST_REQUIRE((kept && lost));
    ranges.sweep();
    BOOST_TEST(ranges.owner_of(*kept).has_value());
    BOOST_TEST(!ranges.owner_of(*lost).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
