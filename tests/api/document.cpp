#include "openapi/document.hpp"
#include "api/routes.hpp"

#include <boost/json.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace json = boost::json;
using namespace sandboxd;

namespace {

const json::object& document() {
    static const json::object made = openapi::document(api::described_routes());
    return made;
}

using statuses = std::set<std::string>;

statuses operator+(statuses some, const statuses& more) {
    some.insert(more.begin(), more.end());
    return some;
}

statuses told(std::string_view method, std::string_view path) {
    statuses out;
    const auto& operation = document().at("paths").at(path).at(method).as_object();
    for (const auto& [status, answer] : operation.at("responses").as_object()) {
        out.emplace(status);
    }
    return out;
}

const json::object& schema(std::string_view name) {
    return document().at("components").at("schemas").at(name).as_object();
}

void check_has_texts(const json::object& operation, std::string_view where) {
    for (const auto name : {"operationId", "summary"}) {
        BOOST_TEST(!operation.at(name).as_string().empty(), where << ": " << name);
    }
    for (const auto& [status, answer] : operation.at("responses").as_object()) {
        BOOST_TEST(!answer.at("description").as_string().empty(), where << ": " << status);
    }
}

} // namespace

BOOST_AUTO_TEST_SUITE(api_document)

BOOST_AUTO_TEST_CASE(every_route_of_the_table_is_in_the_document) {
    std::set<std::string> ids;
    std::size_t operations = 0;
    for (const auto& [path, methods] : document().at("paths").as_object()) {
        operations += methods.as_object().size();
    }
    const auto routes = api::described_routes();
    BOOST_TEST(operations == routes.size());
    for (const auto& one : routes) {
        std::string method(one.method);
        std::transform(method.begin(), method.end(), method.begin(),
                       [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        const auto& operation = document().at("paths").at(one.pattern).at(method).as_object();
        check_has_texts(operation, one.pattern);
        ids.emplace(operation.at("operationId").as_string());
    }
    BOOST_TEST(ids.size() == routes.size());
}

// The statuses are those that the contract names for each route; 500 and what befalls a body are everywhere.
BOOST_AUTO_TEST_CASE(every_status_of_the_contract_is_told) {
    const statuses any{"500"};
    const statuses body{"400", "408", "413", "422", "503"};
    const statuses service = any + statuses{"401"};
    const statuses session = any + statuses{"401", "404", "422"};
    const statuses operation = session + body + statuses{"200", "429", "501", "502", "504"};
    const statuses files = session + body + statuses{"409", "504"};
    const statuses archive = service + body + statuses{"200", "403", "404", "409", "504"};
    const auto check = [](std::string_view method, std::string_view path, const statuses& wanted) {
        const auto found = told(method, path);
        BOOST_TEST(found == wanted, boost::test_tools::per_element());
        BOOST_TEST_INFO(method << " " << path);
    };
    for (const auto path : {"/", "/healthz", "/openapi.json", "/docs"}) {
        check("get", path, any + statuses{"200"});
    }
    check("get", "/policy", service + statuses{"200"});        // 1.4.1
    check("put", "/policy", service + body + statuses{"200"}); // 1.4.2
    check("delete", "/policy", service + statuses{"200"});
    check("post", "/sessions",
          service + body + statuses{"200", "404", "409", "410", "429", "502"});  // 1.4.3, N9.2
    check("get", "/sessions", service + statuses{"200", "422", "503"});          // 1.4.4
    check("get", "/sessions/{session_id}", session + statuses{"200"});           // 1.5.1
    check("get", "/sessions/{session_id}/events", session + statuses{"200"});    // 1.5.2
    check("delete", "/sessions/{session_id}", session + statuses{"204", "503"}); // 1.5.3
    for (const auto name : {"exec", "read", "read_bytes", "write", "edit", "exists", "ls", "glob", "grep"}) {
        check("post", "/sessions/{session_id}/" + std::string(name), operation); // 1.5.4
    }
    check("post", "/sessions/{session_id}/run", operation + statuses{"409", "410"}); // 1.5.5, N8.1, N16.22
    check("post", "/sessions/{session_id}/runs/{run_id}/stop", session + statuses{"204"}); // 1.5.6
    for (const auto name : {"read", "stat", "list", "realpath"}) {
        check("post", "/sessions/{session_id}/files/" + std::string(name), files + statuses{"200"}); // N4.5
    }
    for (const auto name : {"mkdir", "remove"}) {
        check("post", "/sessions/{session_id}/files/" + std::string(name), files + statuses{"204"});
    }
    auto write = files + statuses{"204"};
    write.erase("413"); // N16.29: 409, the client writes through the sandbox
    check("post", "/sessions/{session_id}/files/write", write);
    for (const auto name : {"ls", "read", "read_bytes", "tree"}) {
        check("post", "/workspaces/{session_id}/" + std::string(name), archive); // 7, N7, N16.11
    }
    check("post", "/workspaces/trees", service + body + statuses{"200"}); // N7.2
}

BOOST_AUTO_TEST_CASE(bounds_defaults_and_nulls_are_the_models_own) {
    const auto field = [](std::string_view model, std::string_view name) {
        auto out = schema(model).at("properties").at(name).as_object();
        out.erase("description");
        return json::serialize(out);
    };
    BOOST_TEST(field("OpenSessionRequest", "session_id") ==
               R"({"type":["string","null"],"pattern":"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"})");
    BOOST_TEST(field("OpenSessionRequest", "reuse") == R"({"type":"boolean","default":false})");
    BOOST_TEST(
        field("ReadRequest", "limit") ==
        R"({"type":"integer","format":"int64","minimum":1,"maximum":9223372036854775807,"default":2000})");
    BOOST_TEST(field("RunRequest", "timeout_seconds") ==
               R"({"type":["number","null"],"exclusiveMinimum":0E0})");
    BOOST_TEST(
        field("TreesRequest", "sessions") ==
        R"({"type":"array","items":{"type":"string","pattern":"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"},"minItems":1,"maxItems":100})");
    BOOST_TEST(field("TreeRequest", "max_depth") ==
               R"({"type":"integer","format":"int64","minimum":1,"maximum":64,"default":6})");
    BOOST_TEST(field("PolicyUpdate", "idle_timeout") ==
               R"({"type":"integer","format":"int64","minimum":0,"maximum":9223372036854775807})");
    BOOST_TEST(
        field("PolicyUpdate", "cpu_shares") ==
        R"({"type":["integer","null"],"format":"int64","exclusiveMinimum":0,"maximum":9223372036854775807})");
    BOOST_TEST(field("SessionInfo", "usage") ==
               R"({"anyOf":[{"$ref":"#/components/schemas/SessionUsage"},{"type":"null"}]})");
    BOOST_TEST(schema("PolicyUpdate").at("additionalProperties").as_bool() == false);
    BOOST_TEST(!schema("OpenSessionRequest").contains("additionalProperties"));
    BOOST_TEST(!schema("OpenSessionRequest").contains("required"));
    BOOST_TEST(json::serialize(schema("RunRequest").at("required")) == R"(["argv","run_id"])");
    BOOST_TEST(schema("SessionInfo").at("required").as_array().size() == 9U);
}

BOOST_AUTO_TEST_CASE(tokens_are_told) {
    const auto& paths = document().at("paths");
    const auto needs = [&](std::string_view method, std::string_view path) {
        return json::serialize(paths.at(path).at(method).at("security"));
    };
    BOOST_TEST(needs("get", "/healthz") == "[]");
    BOOST_TEST(needs("post", "/sessions") == R"([{"serviceToken":[]}])");
    BOOST_TEST(needs("post", "/sessions/{session_id}/exec") ==
               R"([{"sessionToken":[]},{"serviceToken":[]}])");
    BOOST_TEST(needs("post", "/workspaces/{session_id}/ls") == R"([{"serviceToken":[]}])");
    const auto& schemes = document().at("components").at("securitySchemes");
    BOOST_TEST(schemes.at("serviceToken").at("name").as_string() == "X-Sandbox-Token");
}

BOOST_AUTO_TEST_SUITE_END()
