#pragma once

#include "api/call.hpp"

namespace sandboxd::api {

// One per route; the contract's number stands beside each row of routes.cpp.

task<void> index(call& c);
task<void> health(call& c);
task<void> openapi_document(call& c);
task<void> docs_page(call& c);
task<void> policy(call& c);
task<void> change_policy(call& c);
task<void> forget_policy(call& c);

task<void> open_session(call& c);
task<void> list_sessions(call& c);
task<void> inspect_session(call& c);
task<void> close_session(call& c);
task<void> list_events(call& c);

task<void> exec(call& c);
task<void> run(call& c);
task<void> stop_run(call& c);

task<void> read_file(call& c);
task<void> read_file_bytes(call& c);
task<void> write_file(call& c);
task<void> edit_file(call& c);
task<void> file_exists(call& c);
task<void> list_directory(call& c);
task<void> find_files(call& c);
task<void> search_files(call& c);

task<void> native_read(call& c);
task<void> native_write(call& c);
task<void> native_stat(call& c);
task<void> native_list(call& c);
task<void> native_realpath(call& c);
task<void> native_mkdir(call& c);
task<void> native_remove(call& c);

task<void> list_workspace(call& c);
task<void> read_workspace(call& c);
task<void> read_workspace_bytes(call& c);
task<void> walk_workspace(call& c);
task<void> walk_workspaces(call& c);

} // namespace sandboxd::api
