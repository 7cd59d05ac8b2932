#pragma once

#include "openapi/operation.hpp"

namespace sandboxd::api::told {

// What the document says of each route, one per row of routes.cpp; the handlers are held to it
// (admission.hpp, answer.hpp).

using openapi::operation;

extern const operation index, health, policy, change_policy, forget_policy, openapi_document, docs_page;

extern const operation open_session, list_sessions, inspect_session, close_session, list_events;

extern const operation exec, run, stop_run;

extern const operation read_file, read_file_bytes, write_file, edit_file, file_exists, list_directory,
    find_files, search_files;

extern const operation native_read, native_write, native_stat, native_list, native_realpath, native_mkdir,
    native_remove;

extern const operation list_workspace, read_workspace, read_workspace_bytes, walk_workspace, walk_workspaces;

} // namespace sandboxd::api::told
