#include "openapi/document.hpp"
#include "openapi/models.hpp"
#include "openapi/page.hpp"
#include "wire/requests.hpp"

#include <boost/json.hpp>
#include <boost/test/unit_test.hpp>

#include <stdexcept>

namespace json = boost::json;
using namespace sandboxd::openapi;
namespace wire = sandboxd::wire;

namespace {

struct thing {
    std::string name = "none";
    bool good = true;

    static constexpr auto fields() {
        return std::tuple{wire::optional("name", &thing::name, {.no_nul = true}),
                          wire::required("good", &thing::good)};
    }
};

schema_book with_thing(direction way) {
    schema_book book;
    book.add<thing>("Thing", way, "A thing.",
                    {{"good", "Whether."}, {"name", "What.", R"({"maxLength":3})"}});
    return book;
}

const operation simple{.id = "look", .tag = "all", .summary = "Look", .answer = "Seen."};

} // namespace

BOOST_AUTO_TEST_SUITE(describing)

BOOST_AUTO_TEST_CASE(a_request_tells_defaults_and_what_is_needed) {
    BOOST_TEST(
        json::serialize(with_thing(direction::request).schemas()) ==
        R"({"Thing":{"type":"object","description":"A thing.","properties":{"name":{"type":"string","pattern":"^[^\\u0000]*$","default":"none","description":"What.","maxLength":3},"good":{"type":"boolean","description":"Whether."}},"required":["good"]}})");
}

BOOST_AUTO_TEST_CASE(an_answer_has_all_of_its_fields) {
    const auto book = with_thing(direction::answer);
    const auto& schema = book.schemas().at("Thing");
    BOOST_TEST(json::serialize(schema.at("required")) == R"(["name","good"])");
    BOOST_TEST(!schema.at("properties").at("name").as_object().contains("default"));
}

BOOST_AUTO_TEST_CASE(a_description_that_is_not_whole_is_a_bug) {
    const auto add = [](std::initializer_list<field_text> texts) {
        schema_book book;
        book.add<thing>("Thing", direction::request, "A thing.", texts);
    };
    BOOST_CHECK_NO_THROW(add({{"name", "What."}, {"good", "Whether."}}));
    BOOST_CHECK_THROW(add({{"name", "What."}}), std::logic_error);
    BOOST_CHECK_THROW(add({{"name", "What."}, {"good", ""}}), std::logic_error);
    BOOST_CHECK_THROW(add({{"name", "What."}, {"good", "Whether."}, {"old", "Gone."}}), std::logic_error);
    BOOST_CHECK_THROW(add({{"name", "What."}, {"good", "Whether."}, {"good", "Twice."}}), std::logic_error);
    auto book = with_thing(direction::request);
    BOOST_CHECK_THROW(
        book.add<wire::path_body>("Thing", direction::request, "Another.", {{"path", "Where."}}),
        std::logic_error);
    BOOST_CHECK_THROW((void)book.reference(typeid(wire::path_body)), std::logic_error);
    BOOST_TEST(json::serialize(book.reference(typeid(thing))) == R"({"$ref":"#/components/schemas/Thing"})");
}

BOOST_AUTO_TEST_CASE(a_route_that_is_not_told_is_a_bug) {
    const route fine[]{{"GET", "/a", &simple}};
    BOOST_TEST(document(fine).at("paths").at("/a").at("get").at("operationId").as_string() == "look");
    const route unknown[]{{"GET", "/a/{thing}", &simple}};
    BOOST_CHECK_THROW((void)document(unknown), std::logic_error);
    const route twice[]{{"GET", "/a", &simple}, {"GET", "/b", &simple}};
    BOOST_CHECK_THROW((void)document(twice), std::logic_error);
    const route untold[]{{"GET", "/a", nullptr}};
    BOOST_CHECK_THROW((void)document(untold), std::logic_error);
    operation foreign = simple;
    foreign.takes = json_of<thing>;
    const route strange[]{{"POST", "/a", &foreign}};
    BOOST_CHECK_THROW((void)document(strange), std::logic_error);
}

BOOST_AUTO_TEST_CASE(a_status_with_several_meanings_tells_them_all) {
    static constexpr refusal refusals[]{{404, "No such thing.", refusal::shape::file}, {409, "Busy."}};
    operation told = simple;
    told.who = access::session;
    told.refusals = refusals;
    const route routes[]{{"POST", "/a", &told}};
    const auto answers = document(routes).at("paths").at("/a").at("post").at("responses");
    BOOST_TEST(
        json::serialize(answers.at("404")) ==
        R"({"description":"There is no such session, or no longer. No such thing.","content":{"application/json":{"schema":{"anyOf":[{"$ref":"#/components/schemas/Refusal"},{"$ref":"#/components/schemas/FileErrorResponse"}]}}}})");
    BOOST_TEST(json::serialize(answers.at("204")) == R"({"description":"Seen."})");
    BOOST_TEST(answers.at("500").at("content").as_object().contains("text/plain"));
}

BOOST_AUTO_TEST_CASE(a_page_is_held_to_its_own_script_and_style) {
    const auto page = strict_page("<style>a</style><script>b</script>");
    BOOST_TEST(
        page.policy ==
        "default-src 'none'; script-src 'sha256-PiPoFgA5WUoziU9lZOGxNIu9egCI1CxKy3PurtWcAJ0='; style-src "
        "'sha256-ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs='; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'");
    BOOST_CHECK_THROW((void)strict_page("<script>b</script>"), std::logic_error);
    BOOST_TEST(docs_page().html.starts_with("<!doctype html>"));
}

BOOST_AUTO_TEST_SUITE_END()
