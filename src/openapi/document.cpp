#include "openapi/document.hpp"

#include "openapi/answers.hpp"
#include "openapi/models.hpp"
#include "sandboxd/version.hpp"
#include "wire/scalars.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <vector>

namespace sandboxd::openapi {

namespace json = boost::json;

namespace {

constexpr std::string_view about =
    "Rents out sandboxes: isolated places where commands run and files live.\n\n"
    "Every answer but a page and a file's bytes is JSON. What the service refuses itself is "
    "`{\"detail\": \"<text>\"}`, or a list of faults with 422. What fails inside a sandbox is told in an "
    "answer "
    "with 200.\n\n"
    "Numbers and booleans of a request may also be sent as strings that read as such (`\"3\"`, `\"yes\"`); "
    "members that are not known are ignored, except in a change of the policy.\n\n"
    "Before a route is found a request may be answered 400 (malformed), 404 (no such path), 405 with `Allow` "
    "(another method), 307 (a slash too many), 408 (the head came too slowly), 417, 431 (the head is too "
    "large) or 501 (an unknown transfer coding). Every answer carries `X-Request-Id`, by which the service's "
    "log can be searched.";

constexpr std::string_view token_header = "X-Sandbox-Token";

json::object token_scheme(std::string_view says) {
    return {{"type", "apiKey"}, {"in", "header"}, {"name", token_header}, {"description", says}};
}

json::object id_schema(const wire::id_pattern& pattern) {
    return {{"type", "string"}, {"pattern", pattern.text}};
}

json::object parameter(std::string_view name, std::string_view in, bool required, json::object schema,
                       std::string_view says) {
    return {{"name", name},
            {"in", in},
            {"required", required},
            {"schema", std::move(schema)},
            {"description", says}};
}

/// The names in braces, in their order.
std::vector<std::string_view> names_in(std::string_view pattern) {
    std::vector<std::string_view> out;
    for (auto at = pattern.find('{'); at != std::string_view::npos; at = pattern.find('{', at + 1)) {
        out.push_back(pattern.substr(at + 1, pattern.find('}', at) - at - 1));
    }
    return out;
}

json::object path_parameter(std::string_view name) {
    if (name == "session_id") {
        return parameter(name, "path", true, id_schema(wire::session_id_pattern), "The session's id.");
    }
    if (name == "run_id") {
        return parameter(name, "path", true, id_schema(wire::run_id_pattern), "The id the run was given.");
    }
    throw std::logic_error("no description of the path parameter " + std::string(name));
}

std::string_view text_of(std::string_view query) {
    if (query == wire::usage_query.name) {
        return "Tell what the sandboxes use; takes a moment.";
    }
    if (query == wire::purge_query.name) {
        return "Remove the session's files as well, and what else is kept of it.";
    }
    if (query == wire::after_query.name) {
        return "Only events whose number is higher.";
    }
    if (query == wire::path_query.name) {
        return "The file's absolute path.";
    }
    throw std::logic_error("no description of the query's " + std::string(query));
}

json::object query_parameter(const wire::query_parameter& query) {
    using kind = wire::query_parameter::kind;
    json::object schema;
    switch (query.of) {
    case kind::flag:
        schema = {{"type", "boolean"}, {"default", false}};
        break;
    case kind::number: {
        wire::rules keep;
        keep.at_least = 0;
        schema = detail::of_integer(keep, true);
        schema["default"] = 0;
        break;
    }
    case kind::text:
        schema = {{"type", "string"}};
        break;
    }
    return parameter(query.name, "query", query.of == kind::text, std::move(schema), text_of(query.name));
}

json::array parameters_of(const route& one) {
    json::array out;
    for (const auto name : names_in(one.pattern)) {
        out.push_back(path_parameter(name));
    }
    if (one.told->query) {
        out.push_back(query_parameter(*one.told->query));
    }
    return out;
}

json::object request_body(const operation& told, const schema_book& book) {
    if (told.takes.of == content::kind::bytes) {
        return {{"description", "The file's new content; none: an empty file."},
                {"required", false},
                {"content", in_bytes()}};
    }
    return {{"required", true}, {"content", in_json(book.reference(*told.takes.model))}};
}

json::array security_of(access who) {
    const json::object service{{"serviceToken", json::array{}}};
    const json::object session{{"sessionToken", json::array{}}};
    switch (who) {
    case access::anybody:
        return {};
    case access::service:
        return json::array{service};
    case access::session:
        return json::array{session, service};
    }
    return {};
}

json::object described(const route& one, const schema_book& book) {
    const operation& told = *one.told;
    json::object out{{"operationId", told.id}, {"tags", json::array{told.tag}}, {"summary", told.summary}};
    if (!told.says.empty()) {
        out["description"] = told.says;
    }
    out["security"] = security_of(told.who);
    if (auto parameters = parameters_of(one); !parameters.empty()) {
        out["parameters"] = std::move(parameters);
    }
    if (told.takes.of != content::kind::none) {
        out["requestBody"] = request_body(told, book);
    }
    out["responses"] = responses_of(one, book);
    return out;
}

std::string lower(std::string_view method) {
    std::string out(method);
    std::transform(out.begin(), out.end(), out.begin(), [](char c) { return static_cast<char>(c | 0x20); });
    return out;
}

} // namespace

json::object document(std::span<const route> routes) {
    const schema_book book = all_models();
    json::object paths;
    std::set<std::string_view> ids;
    for (const auto& one : routes) {
        if (one.told == nullptr || !ids.insert(one.told->id).second) {
            throw std::logic_error("without a description of its own: " + std::string(one.pattern));
        }
        if (!paths.contains(one.pattern)) {
            paths[one.pattern] = json::object();
        }
        paths[one.pattern].as_object()[lower(one.method)] = described(one, book);
    }
    const json::object tokens{
        {"serviceToken", token_scheme("The service's own token: everything.")},
        {"sessionToken", token_scheme("A session's token, from its open: that session only.")}};
    return {{"openapi", "3.1.0"},
            {"info", json::object{{"title", "sandboxd"}, {"version", version()}, {"description", about}}},
            {"servers", json::array{json::object{{"url", "/"}, {"description", "This service."}}}},
            {"paths", std::move(paths)},
            {"components", json::object{{"schemas", book.schemas()}, {"securitySchemes", tokens}}}};
}

std::string document_text(std::span<const route> routes) {
    return json::serialize(document(routes));
}

} // namespace sandboxd::openapi
