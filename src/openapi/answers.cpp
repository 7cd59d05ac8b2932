#include "openapi/answers.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sandboxd::openapi {

namespace json = boost::json;

namespace {

json::object reference(std::string_view name) {
    return {{"$ref", "#/components/schemas/" + std::string(name)}};
}

/// What one status can mean on one route.
struct meaning {
    std::vector<std::string> when;
    bool detail = false; ///< {"detail": "<text>"}
    bool faults = false; ///< {"detail": [...]}
    bool file = false;   ///< {"detail": {...}}
    bool plain = false;  ///< plain text as well
};

using meanings = std::map<unsigned, meaning>;

void add(meanings& all, unsigned status, std::string_view when) {
    all[status].detail = true;
    all[status].when.emplace_back(when);
}

void add_admission(meanings& all, const route& one) {
    const operation& told = *one.told;
    if (told.who != access::anybody) {
        add(all, 401, "The token is missing or wrong.");
    }
    if (told.who == access::session) {
        add(all, 404, "There is no such session, or no longer.");
    }
    const bool has_parameters = one.pattern.find('{') != std::string_view::npos || told.query;
    if (has_parameters || told.takes.of == content::kind::json) {
        all[422].faults = true;
        all[422].when.emplace_back("A parameter or the body is at fault.");
    }
    if (told.takes.of == content::kind::json) {
        add(all, 400, "The body is not UTF-8, or can't be read.");
        add(all, 413, "The body is larger than the service takes.");
    } else if (told.takes.of == content::kind::bytes) {
        add(all, 400, "The body can't be read.");
    }
    if (told.takes.of != content::kind::none) {
        add(all, 408, "The body came too slowly.");
    }
    if (told.large || told.takes.of != content::kind::none) {
        add(all, 503, "The service has no memory left for this; try again later.");
    }
    add(all, 500, "A fault of the service; its log says more.");
    all[500].plain = true;
}

meanings meanings_of(const route& one) {
    meanings all;
    add_admission(all, one);
    for (const auto& refusal : one.told->refusals) {
        auto& here = all[refusal.status];
        here.when.emplace_back(refusal.when);
        (refusal.body == refusal::shape::file ? here.file : here.detail) = true;
    }
    return all;
}

json::object schema_of(const meaning& one) {
    json::array shapes;
    if (one.detail) {
        shapes.push_back(reference("Refusal"));
    }
    if (one.faults) {
        shapes.push_back(reference("Faults"));
    }
    if (one.file) {
        shapes.push_back(reference("FileErrorResponse"));
    }
    if (shapes.size() == 1) {
        return shapes[0].as_object();
    }
    return {{"anyOf", std::move(shapes)}};
}

json::object shown(const meaning& one) {
    std::string when;
    for (const auto& text : one.when) {
        when += (when.empty() ? "" : " ") + text;
    }
    auto body = in_json(schema_of(one));
    if (one.plain) {
        body["text/plain"] = json::object{{"schema", json::object{{"type", "string"}}}};
    }
    return {{"description", when}, {"content", std::move(body)}};
}

json::object body_of(const content& carried, const schema_book& book) {
    switch (carried.of) {
    case content::kind::none:
        return {};
    case content::kind::json:
        return in_json(book.reference(*carried.model));
    case content::kind::json_list:
        return in_json({{"type", "array"}, {"items", book.reference(*carried.model)}});
    case content::kind::bytes:
        return in_bytes();
    case content::kind::html:
        return {{"text/html", json::object{{"schema", json::object{{"type", "string"}}}}}};
    case content::kind::document:
        return in_json({{"type", "object"}});
    }
    return {};
}

json::object success(const operation& told, const schema_book& book) {
    json::object out{{"description", told.answer}};
    if (auto body = body_of(told.answers, book); !body.empty()) {
        out["content"] = std::move(body);
    }
    if (told.can_be_cut) {
        const json::object truncated{
            {"description", "`true` when there is more than this list; absent otherwise."},
            {"schema", json::object{{"type", "string"}, {"enum", json::array{"true"}}}}};
        out["headers"] = json::object{{"X-Sandbox-Truncated", truncated}};
    }
    return out;
}

} // namespace

json::object in_json(json::object schema) {
    return {{"application/json", json::object{{"schema", std::move(schema)}}}};
}

json::object in_bytes() {
    const json::object any{{"type", "string"}, {"format", "binary"}};
    return {{"application/octet-stream", json::object{{"schema", any}}}};
}

json::object responses_of(const route& one, const schema_book& book) {
    const bool empty = one.told->answers.of == content::kind::none;
    json::object out{{empty ? "204" : "200", success(*one.told, book)}};
    for (const auto& [status, meaning] : meanings_of(one)) {
        out[std::to_string(status)] = shown(meaning);
    }
    return out;
}

} // namespace sandboxd::openapi
