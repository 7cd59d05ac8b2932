#pragma once

// openapi: what the service says of its own routes. An operation describes one row of the route table; the
// handlers are admitted and answer by the same description (api/admission.hpp, api/answer.hpp), so that the
// document can't promise what the code does not do. Pure: no I/O, no clocks; safe from any thread.

#include "wire/params.hpp"

#include <optional>
#include <span>
#include <string_view>
#include <typeinfo>

namespace sandboxd::openapi {

/// Whose token opens a route (contract 1.1.8 c).
enum class access {
    anybody, ///< no token is asked for
    service, ///< the service's
    session, ///< the service's, or the one of the session in the path
};

/// What a request or an answer carries.
struct content {
    enum class kind { none, json, json_list, bytes, html, document };
    kind of = kind::none;
    const std::type_info* model = nullptr; ///< of json; of each item of json_list
};

inline constexpr content bytes{content::kind::bytes};

template <class Model>
inline constexpr content json_of{content::kind::json, &typeid(Model)};
template <class Model>
inline constexpr content list_of{content::kind::json_list, &typeid(Model)};

/// A status beside the successful one, and when it comes. What every route of a kind answers (401, 404 of a
/// session, 422, what can befall a body) is added by the document and not repeated here.
struct refusal {
    enum class shape {
        detail, ///< {"detail": "<text>"}
        file,   ///< the object of `files/*` (contract N4.5), beside the plain detail where both occur
    };
    unsigned status;
    std::string_view when;
    shape body = shape::detail;
};

struct operation {
    std::string_view id;  ///< unique; the name of the method in a generated client
    std::string_view tag; ///< the heading it stands under
    std::string_view summary;
    std::string_view says{}; ///< more, in Markdown; may be empty
    access who = access::anybody;
    content takes{};         ///< json or bytes
    content answers{};       ///< none: 204
    std::string_view answer; ///< what the successful answer is
    /// The answer is counted against the memory that all answers may hold: 503 when there is none.
    bool large = false;
    /// The head says X-Sandbox-Truncated when the list is not complete ("Decided" 11).
    bool can_be_cut = false;
    std::optional<wire::query_parameter> query{};
    std::span<const refusal> refusals{};
};

/// A row of the route table.
struct route {
    std::string_view method;
    std::string_view pattern;
    const operation* told = nullptr;
};

} // namespace sandboxd::openapi
