#include "api/routes.hpp"

#include "api/handlers.hpp"
#include "api/told.hpp"
#include "router/answer.hpp"
#include "router/table.hpp"

#include <algorithm>
#include <array>
#include <memory>

namespace sandboxd::api {

namespace {

struct route {
    router::endpoint where;
    task<void> (*answer)(call&);
    const openapi::operation& told;
};

// The whole surface of the service. [contract]
constexpr std::array routes{
    route{{"GET", "/"}, index, told::index},                                                          // 1.3.1
    route{{"GET", "/healthz"}, health, told::health},                                                 // 1.3.2
    route{{"GET", "/openapi.json"}, openapi_document, told::openapi_document},                        // 1.3.4
    route{{"GET", "/docs"}, docs_page, told::docs_page},                                              // 1.3.4
    route{{"GET", "/policy"}, policy, told::policy},                                                  // 1.4.1
    route{{"PUT", "/policy"}, change_policy, told::change_policy},                                    // 1.4.2
    route{{"DELETE", "/policy"}, forget_policy, told::forget_policy},                                 // ours
    route{{"POST", "/sessions"}, open_session, told::open_session},                                   // 1.4.3
    route{{"GET", "/sessions"}, list_sessions, told::list_sessions},                                  // 1.4.4
    route{{"GET", "/sessions/{session_id}"}, inspect_session, told::inspect_session},                 // 1.5.1
    route{{"DELETE", "/sessions/{session_id}"}, close_session, told::close_session},                  // 1.5.3
    route{{"GET", "/sessions/{session_id}/events"}, list_events, told::list_events},                  // 1.5.2
    route{{"POST", "/sessions/{session_id}/exec"}, exec, told::exec},                                 // 1.5.4
    route{{"POST", "/sessions/{session_id}/read"}, read_file, told::read_file},                       // 1.5.4
    route{{"POST", "/sessions/{session_id}/read_bytes"}, read_file_bytes, told::read_file_bytes},     // 1.5.4
    route{{"POST", "/sessions/{session_id}/write"}, write_file, told::write_file},                    // 1.5.4
    route{{"POST", "/sessions/{session_id}/edit"}, edit_file, told::edit_file},                       // 1.5.4
    route{{"POST", "/sessions/{session_id}/exists"}, file_exists, told::file_exists},                 // 1.5.4
    route{{"POST", "/sessions/{session_id}/ls"}, list_directory, told::list_directory},               // 1.5.4
    route{{"POST", "/sessions/{session_id}/glob"}, find_files, told::find_files},                     // 1.5.4
    route{{"POST", "/sessions/{session_id}/grep"}, search_files, told::search_files},                 // 1.5.4
    route{{"POST", "/sessions/{session_id}/run"}, run, told::run},                                    // 1.5.5
    route{{"POST", "/sessions/{session_id}/runs/{run_id}/stop"}, stop_run, told::stop_run},           // 1.5.6
    route{{"POST", "/sessions/{session_id}/files/read"}, native_read, told::native_read},             // N5.1
    route{{"POST", "/sessions/{session_id}/files/write"}, native_write, told::native_write},          // N5.2
    route{{"POST", "/sessions/{session_id}/files/stat"}, native_stat, told::native_stat},             // N5.3
    route{{"POST", "/sessions/{session_id}/files/list"}, native_list, told::native_list},             // N5.4
    route{{"POST", "/sessions/{session_id}/files/realpath"}, native_realpath, told::native_realpath}, // N5.5
    route{{"POST", "/sessions/{session_id}/files/mkdir"}, native_mkdir, told::native_mkdir},          // N5.6
    route{{"POST", "/sessions/{session_id}/files/remove"}, native_remove, told::native_remove},       // N5.7
    route{{"POST", "/workspaces/{session_id}/ls"}, list_workspace, told::list_workspace},             // 7.4
    route{{"POST", "/workspaces/{session_id}/read"}, read_workspace, told::read_workspace},           // 7.4
    route{{"POST", "/workspaces/{session_id}/read_bytes"},
          read_workspace_bytes,
          told::read_workspace_bytes},                                                      // 7.4
    route{{"POST", "/workspaces/{session_id}/tree"}, walk_workspace, told::walk_workspace}, // N7.1
    route{{"POST", "/workspaces/trees"}, walk_workspaces, told::walk_workspaces},           // N7.2
};

constexpr auto endpoints = [] {
    std::array<router::endpoint, routes.size()> all{};
    for (std::size_t i = 0; i < routes.size(); ++i) {
        all[i] = routes[i].where;
    }
    return all;
}();

class service_handler {
public:
    service_handler(session::registry& sessions, core::worker_pool& workers, std::uint64_t max_body_bytes,
                    service_facts facts)
        : table_(endpoints),
          context_{sessions, workers, max_body_bytes, table_.patterns(), std::move(facts)} {
        std::erase(context_.endpoints, "/");
    }

    task<void> answer(http::exchange& x) const {
        const auto& head = x.head();
        const router::match found = table_.find(head.method, head.target);
        if (found.kind != router::match::outcome::found) {
            co_await x.answer().send(router::unmatched(head, found));
            co_return;
        }
        call c{x, found, routes[found.index].told, context_};
        co_await routes[found.index].answer(c);
    }

private:
    router::table table_;
    context context_;
};

} // namespace

http::handler create_handler(session::registry& sessions, core::worker_pool& workers,
                             std::uint64_t max_body_bytes, service_facts facts) {
    auto all = std::make_shared<const service_handler>(sessions, workers, max_body_bytes, std::move(facts));
    return [all](http::exchange& x) { return all->answer(x); };
}

std::vector<openapi::route> described_routes() {
    std::vector<openapi::route> all;
    all.reserve(routes.size());
    for (const auto& one : routes) {
        all.push_back({one.where.method, one.where.pattern, &one.told});
    }
    return all;
}

} // namespace sandboxd::api
