#include "api/admission.hpp"

#include "api/errors.hpp"
#include "wire/params.hpp"

#include <stdexcept>
#include <string_view>
#include <variant>

namespace sandboxd::api {

namespace {

constexpr std::string_view token_header = "X-Sandbox-Token";

struct taken_body {
    wire::parsed_body json;
    std::size_t size = 0;
};

/// Reads and parses the body; nothing when that failed and was answered.
task<std::optional<taken_body>> take_body(call& c, bool trusted) {
    auto bytes = co_await c.x.body().read_all(trusted ? c.on.max_body_bytes : stranger_body_bytes);
    if (!bytes) {
        if (bytes.error() == http::body_fault::too_large && !trusted) {
            co_await c.x.answer().send(unauthorized());
        } else {
            co_await http::refuse(c.x, bytes.error());
        }
        co_return std::nullopt;
    }
    const auto parse = [&c, &bytes] { return wire::parse_body(c.x.head().header("Content-Type"), *bytes); };
    auto parsed = co_await c.on.workers.run_sized(bytes->size(), parse);
    if (auto* failure = std::get_if<wire::body_failure>(&parsed)) {
        co_await c.x.answer().send(
            http::json_reply(static_cast<unsigned>(failure->status), std::move(failure->body)));
        co_return std::nullopt;
    }
    co_return taken_body{std::get<wire::parsed_body>(std::move(parsed)), bytes->size()};
}

task<void> read_body(call& c, const taken_body& body, const reader& read, wire::fault_list& faults) {
    co_await c.on.workers.run_sized(body.size, [&] { read(body.json, faults); });
}

bool takes_json(const call& c) {
    return c.told.takes.of == openapi::content::kind::json;
}

void expect_access(const call& c, openapi::access who) {
    if (c.told.who != who) {
        throw std::logic_error("told to be open to others: " + std::string(c.told.id));
    }
}

bool session_exists(const call& c, std::string_view id) {
    return c.on.sessions.has_session(id);
}

/// The answer to a caller who may not use this session; nothing for one who may.
std::optional<http::reply> refused(const call& c, std::string_view id, auth::scope scope) {
    switch (scope) {
    case auth::scope::none:
        return unauthorized();
    case auth::scope::tombstone:
        return http::detail_reply(404, "No such session: " + std::string(id));
    case auth::scope::service:
        if (!session_exists(c, id)) {
            return http::detail_reply(404, "No such session: " + std::string(id));
        }
        return std::nullopt;
    case auth::scope::session:
        return std::nullopt;
    }
    return unauthorized();
}

} // namespace

void read_nothing(const wire::parsed_body&, wire::fault_list&) {}

void expect_to_take(const call& c, const std::type_info& model) {
    if (!takes_json(c) || *c.told.takes.model != model) {
        throw std::logic_error("not told what it takes: " + std::string(c.told.id));
    }
}

task<bool> admit_service(call& c, reader read) {
    expect_access(c, openapi::access::service);
    const auto token = c.x.head().header(token_header);
    const bool trusted = token && c.on.sessions.is_service(*token);
    std::optional<taken_body> body;
    if (takes_json(c)) {
        // Into an empty optional: assigned over a value, JSON would be copied into that one's own memory.
        body = co_await take_body(c, trusted);
        if (!body) {
            co_return false;
        }
    } else {
        body.emplace();
    }
    if (!trusted) {
        co_await c.x.answer().send(unauthorized());
        co_return false;
    }
    wire::fault_list faults;
    co_await read_body(c, *body, read, faults);
    if (!faults.empty()) {
        co_await c.x.answer().send(reply_of(faults));
        co_return false;
    }
    co_return true;
}

task<bool> admit_session(call& c, reader read) {
    expect_access(c, openapi::access::session);
    const auto token = c.x.head().header(token_header);
    const std::string_view id = c.route.parameter("session_id");
    wire::fault_list faults;
    const bool well_formed = wire::check_session_id(id, faults);
    const auth::scope scope = token && well_formed ? c.on.sessions.authorize(*token, id) : auth::scope::none;
    std::optional<taken_body> body;
    if (takes_json(c)) {
        // Into an empty optional: assigned over a value, JSON would be copied into that one's own memory.
        body = co_await take_body(c, scope != auth::scope::none);
        if (!body) {
            co_return false;
        }
    } else {
        body.emplace();
    }
    if (well_formed) {
        if (auto refusal = refused(c, id, scope)) {
            co_await c.x.answer().send(std::move(*refusal));
            co_return false;
        }
    }
    co_await read_body(c, *body, read, faults);
    if (!faults.empty()) {
        co_await c.x.answer().send(reply_of(faults));
        co_return false;
    }
    co_return true;
}

} // namespace sandboxd::api
