#include "api/told.hpp"
#include "wire/answers.hpp"
#include "wire/policy.hpp"
#include "wire/requests.hpp"

namespace sandboxd::api::told {

using openapi::access;
using openapi::content;
using openapi::json_of;
using openapi::refusal;

namespace {

constexpr std::string_view service_tag = "service";
constexpr std::string_view sessions_tag = "sessions";

constexpr refusal policy_refusals[]{
    {400, "A runtime that is not allowed, or fields that exclude each other."}};

constexpr refusal close_refusals[]{{503, "The service is shutting down."}};

constexpr refusal open_refusals[]{
    {400, "The runtime is not an allowed one, or `attach` without an id."},
    {404, "`attach`: nothing of this id is kept."},
    {409, "The session exists, is still opening or closing, or runs another runtime."},
    {410, "The kept sandbox of this id is gone, and its files with it."},
    {429, "A ceiling is reached and nothing can make way."},
    {502, "The sandbox could not be started; the text names the cause."},
    {503, "The service is shutting down."},
};

} // namespace

const operation index{.id = "index",
                      .tag = service_tag,
                      .summary = "Where to begin",
                      .answers = json_of<wire::service_index>,
                      .answer = "The service and its paths."};

const operation health{.id = "health",
                       .tag = service_tag,
                       .summary = "How the service is",
                       .answers = json_of<wire::service_health>,
                       .answer = "It answers, so it lives."};

const operation openapi_document{.id = "openapi_document",
                                 .tag = service_tag,
                                 .summary = "This document",
                                 .answers = {content::kind::document},
                                 .answer = "OpenAPI 3.1."};

const operation docs_page{.id = "docs_page",
                          .tag = service_tag,
                          .summary = "This document as a page to try it out",
                          .answers = {content::kind::html},
                          .answer = "A page that needs nothing from elsewhere."};

const operation policy{.id = "get_policy",
                       .tag = service_tag,
                       .summary = "The rules in force",
                       .who = access::service,
                       .answers = json_of<wire::service_policy>,
                       .answer = "All of them."};

const operation change_policy{.id = "update_policy",
                              .tag = service_tag,
                              .summary = "Change rules while the service runs",
                              .says =
                                  "All or nothing. Holds for sandboxes built from now on and over restarts.",
                              .who = access::service,
                              .takes = json_of<wire::policy_change_body>,
                              .answers = json_of<wire::service_policy>,
                              .answer = "All rules, as they are now.",
                              .refusals = policy_refusals};

const operation forget_policy{.id = "reset_policy",
                              .tag = service_tag,
                              .summary = "Back to the rules the service was started with",
                              .who = access::service,
                              .answers = json_of<wire::service_policy>,
                              .answer = "All rules, as they are now."};

const operation open_session{
    .id = "open_session",
    .tag = sessions_tag,
    .summary = "Open a session",
    .says = "While it lasts, a client that speaks HTTP/1.1 is sent `102` every ten seconds.",
    .who = access::service,
    .takes = json_of<wire::open_body>,
    .answers = json_of<wire::session_created>,
    .answer = "It is open.",
    .refusals = open_refusals};

const operation list_sessions{.id = "list_sessions",
                              .tag = sessions_tag,
                              .summary = "All open sessions",
                              .who = access::service,
                              .answers = json_of<wire::session_list>,
                              .answer = "In the order they were opened in.",
                              .large = true,
                              .query = wire::usage_query};

const operation inspect_session{.id = "get_session",
                                .tag = sessions_tag,
                                .summary = "Look at a session",
                                .says = "Wakes nothing and counts as no activity.",
                                .who = access::session,
                                .answers = json_of<wire::session_info>,
                                .answer = "The session.",
                                .query = wire::usage_query};

const operation close_session{.id = "close_session",
                              .tag = sessions_tag,
                              .summary = "Close a session",
                              .says = "Ends what runs in it. Its files stay, unless `purge`.",
                              .who = access::session,
                              .answer = "It is closed.",
                              .query = wire::purge_query,
                              .refusals = close_refusals};

const operation list_events{.id = "list_events",
                            .tag = sessions_tag,
                            .summary = "What was done in a session",
                            .who = access::session,
                            .answers = json_of<wire::session_events>,
                            .answer = "The last operations, oldest first.",
                            .query = wire::after_query};

} // namespace sandboxd::api::told
