#include "launcher/requests.hpp"

#include <boost/test/unit_test.hpp>

#include <random>

using namespace sandboxd;
using namespace sandboxd::launcher;

BOOST_AUTO_TEST_SUITE(launcher_codec)

namespace {

start_sandbox full_start() {
    start_sandbox r;
    r.slot = "abc123";
    r.runtime = "runsc";
    r.hostname = "box";
    r.image = "dir:/srv/a \"b\"";
    r.limits.memory_bytes = 1ULL << 40;
    r.limits.memory_swap_bytes = 1ULL << 41;
    r.limits.cpus = 1.5;
    r.limits.cpu_shares = 512;
    r.limits.pids = 100;
    r.limits.tmpfs_size = "64m";
    r.work_dir = "/workspace";
    r.workspace_dir = "/srv/ws/\xff\xfe/workspace";
    r.uid = 1000;
    r.workspace_uid = 1000;
    r.env = {{"A", "1"}, {"B", "two words\n\xff"}};
    r.keep = keeping::kept;
    r.network = true;
    r.run_entrypoint = false;
    return r;
}

std::string start_text() {
    return encode(request{7, std::chrono::seconds(3), full_start()});
}

} // namespace

BOOST_AUTO_TEST_CASE(a_start_request_comes_back_whole) {
    const auto got = decode_request(start_text());
    BOOST_REQUIRE(got.has_value());
    BOOST_TEST(got->id == 7U);
    BOOST_TEST(got->deadline.count() == 3000);
    const auto& r = std::get<start_sandbox>(got->body);
    const auto want = full_start();
    BOOST_TEST(r.slot == want.slot);
    BOOST_TEST(r.runtime == "runsc");
    BOOST_TEST(r.hostname == want.hostname);
    BOOST_TEST(r.image == want.image);
    BOOST_TEST(*r.limits.memory_bytes == *want.limits.memory_bytes);
    BOOST_TEST(*r.limits.memory_swap_bytes == *want.limits.memory_swap_bytes);
    BOOST_TEST(*r.limits.cpus == 1.5);
    BOOST_TEST(*r.limits.cpu_shares == 512U);
    BOOST_TEST(*r.limits.pids == 100U);
    BOOST_TEST(*r.limits.tmpfs_size == "64m");
    BOOST_TEST(r.work_dir == want.work_dir);
    BOOST_TEST(*r.workspace_dir == *want.workspace_dir);
    BOOST_TEST(*r.uid == 1000U);
    BOOST_TEST(*r.workspace_uid == 1000U);
    BOOST_TEST((r.env == want.env));
    BOOST_TEST((r.keep == keeping::kept));
    BOOST_TEST(r.network);
    BOOST_TEST(!r.run_entrypoint);
}

BOOST_AUTO_TEST_CASE(requests_about_images_come_back) {
    const auto import =
        decode_request(encode(request{1, {}, import_image{"a/b:1", false, "{\"auths\":{}}"}}));
    BOOST_REQUIRE(import.has_value());
    BOOST_TEST(std::get<import_image>(import->body).reference == "a/b:1");
    BOOST_TEST(!std::get<import_image>(import->body).fetch);
    BOOST_TEST(std::get<import_image>(import->body).auth == "{\"auths\":{}}");
    const auto keep = decode_request(encode(request{2, {}, keep_image{"build-1", "x:y", "{}"}}));
    BOOST_REQUIRE(keep.has_value());
    BOOST_TEST(std::get<keep_image>(keep->body).slot == "build-1");
    BOOST_TEST(std::get<keep_image>(keep->body).reference == "x:y");
    BOOST_TEST(std::get<keep_image>(keep->body).config == "{}");
    BOOST_TEST(!decode_request(encode(request{2, {}, keep_image{"../x", "x:y", "{}"}})).has_value());
    const auto list = decode_request(encode(request{3, {}, list_images{}}));
    BOOST_REQUIRE(list.has_value());
    BOOST_TEST(std::holds_alternative<list_images>(list->body));
    const auto forget = decode_request(encode(request{4, {}, forget_images{{"a", "b"}}}));
    BOOST_REQUIRE(forget.has_value());
    BOOST_TEST((std::get<forget_images>(forget->body).references == std::vector<std::string>{"a", "b"}));
    const auto given_up = decode_request(encode(request{9, {}, give_up{1}}));
    BOOST_REQUIRE(given_up.has_value());
    BOOST_TEST(std::get<give_up>(given_up->body).request == 1U);
    const auto info = decode_answer(encode(answer{5, image_info{"built-1", "{}"}}));
    BOOST_REQUIRE(info.has_value());
    BOOST_TEST(std::get<image_info>(info->body).key == "built-1");
    BOOST_TEST(std::get<image_info>(info->body).config == "{}");
    const auto names = decode_answer(encode(answer{6, image_names{{"a"}}}));
    BOOST_REQUIRE(names.has_value());
    BOOST_TEST((std::get<image_names>(names->body).references == std::vector<std::string>{"a"}));
}

BOOST_AUTO_TEST_CASE(whole_numbers_of_cpus_are_kept) {
    auto r = full_start();
    r.limits.cpus = 2.0;
    const auto got = decode_request(encode(request{1, {}, r}));
    BOOST_REQUIRE(got.has_value());
    BOOST_TEST(*std::get<start_sandbox>(got->body).limits.cpus == 2.0);
}

BOOST_AUTO_TEST_CASE(every_answer_comes_back) {
    sandbox_started started{4242, 99, 0x20000000, account{1000, 100}, 5, 6};
    const auto one = decode_answer(encode(answer{1, started}));
    BOOST_REQUIRE(one.has_value());
    BOOST_TEST((std::get<sandbox_started>(one->body) == started));
    started.user.reset();
    started.dials = true;
    const auto two = decode_answer(encode(answer{2, started}));
    BOOST_REQUIRE(two.has_value());
    BOOST_TEST((std::get<sandbox_started>(two->body) == started));
    const auto failure = decode_answer(encode(answer{3, error{errc::gone, "it is gone"}}));
    BOOST_REQUIRE(failure.has_value());
    BOOST_TEST((std::get<error>(failure->body).code == errc::gone));
    BOOST_TEST(std::get<error>(failure->body).message == "it is gone");
    const auto slots = decode_answer(encode(answer{4, slot_list{{"a", "b"}}}));
    BOOST_REQUIRE(slots.has_value());
    BOOST_TEST((std::get<slot_list>(slots->body).slots == std::vector<std::string>{"a", "b"}));
    const auto features = decode_answer(encode(answer{5, host_features{{"n"}, "f"}}));
    BOOST_REQUIRE(features.has_value());
    BOOST_TEST(*std::get<host_features>(features->body).fatal == "f");
    const auto line = decode_answer(encode(answer{6, progress{"half"}}));
    BOOST_REQUIRE(line.has_value());
    BOOST_TEST(std::get<progress>(line->body).text == "half");
}

BOOST_AUTO_TEST_CASE(what_encode_would_not_write_is_refused) {
    for (const std::string text : {
             "",
             "{",
             "[]",
             "null",
             "{}",
             R"({"id":1})",
             R"({"id":1,"deadline_ms":0,"kind":"probe","more":1})",  // unknown member
             R"({"id":-1,"deadline_ms":0,"kind":"probe"})",          // negative
             R"({"id":1.5,"deadline_ms":0,"kind":"probe"})",         // no integer
             R"({"id":1,"deadline_ms":99999999999,"kind":"probe"})", // more than a day
             R"({"id":1,"deadline_ms":0,"kind":"nonsense"})",        // no such request
             R"({"id":1,"deadline_ms":0,"kind":"remove"})",          // no slot
             R"({"id":1,"deadline_ms":0,"kind":"remove","slot":"../x"})",
             R"({"id":1,"deadline_ms":0,"kind":"remove","slot":""})",
             R"({"id":1,"deadline_ms":0,"kind":"remove","slot":"A"})",
             R"({"id":1,"deadline_ms":0,"kind":"remove","slot":"-a"})",
             R"({"id":1,"deadline_ms":0,"kind":"list","after":"a\u0000b"})",
             R"({"id":1,"deadline_ms":0,"kind":"list","after":["a"]})",
             R"({"id":1,"deadline_ms":0,"kind":"list","after":[[[[[[[[[[[[]]]]]]]]]]]]})", // too deep
         }) {
        const auto got = decode_request(text);
        BOOST_TEST(!got.has_value(), text);
        if (!got) {
            BOOST_TEST((got.error().code == errc::protocol), text);
        }
    }
    BOOST_TEST(!decode_request(std::string(max_message + 1, ' ')).has_value());
    BOOST_TEST(!decode_answer(R"({"id":1,"kind":"error","code":"no such code","message":""})").has_value());
    BOOST_TEST(!decode_answer(R"({"id":1,"kind":"slots","slots":"a"})").has_value());
}

BOOST_AUTO_TEST_CASE(damaged_messages_never_do_harm) {
    std::mt19937 random(20260101);
    const auto good = start_text();
    int refused = 0;
    for (int round = 0; round < 3000; ++round) {
        auto bad = good;
        for (unsigned n = random() % 4 + 1; n > 0; --n) {
            bad[random() % bad.size()] = static_cast<char>(random());
        }
        bad.resize(random() % 3 == 0 ? random() % bad.size() : bad.size());
        const auto got = decode_request(bad);
        refused += got ? 0 : 1;
        if (got) {
            const auto* start = std::get_if<start_sandbox>(&got->body);
            BOOST_TEST((start == nullptr || is_slot_name(start->slot)));
        }
    }
    BOOST_TEST(refused > 1500);
}

BOOST_AUTO_TEST_CASE(slot_names) {
    BOOST_TEST(is_slot_name("a"));
    BOOST_TEST(is_slot_name("0123-abc"));
    BOOST_TEST(is_slot_name(std::string(64, 'a')));
    BOOST_TEST(!is_slot_name(std::string(65, 'a')));
    BOOST_TEST(!is_slot_name(""));
    BOOST_TEST(!is_slot_name("."));
    BOOST_TEST(!is_slot_name("a/b"));
    BOOST_TEST(!is_slot_name("a.b"));
    BOOST_TEST(!is_slot_name("a b"));
}

BOOST_AUTO_TEST_SUITE_END()
