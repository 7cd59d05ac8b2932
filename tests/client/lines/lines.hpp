#pragma once

#include "sandboxd/remote_sandbox.hpp"
#include "sandboxd/sandboxd_workspace.hpp"
#include "sandboxd/workspace_archive.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

// The contract's lines on clients, as programs in C++ see them. The service, one that keeps no workspaces,
// and the workspace root come from the environment (SANDBOXD_URL, SANDBOXD_BARE_URL, SANDBOXD_TOKEN,
// LINES_ROOT). What no single release of the reference does is named "..._ours".

namespace sandboxd::lines {

inline std::string from_environment(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr ? value : "";
}

inline client::connection_options where() {
    client::connection_options made;
    made.url = from_environment("SANDBOXD_URL");
    return made;
}

inline std::string token() {
    return from_environment("SANDBOXD_TOKEN");
}

inline std::filesystem::path root() {
    return from_environment("LINES_ROOT");
}

inline std::string content_of(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// Purges its session at the end, whatever the test did.
struct own_sandbox {
    explicit own_sandbox(client::remote_sandbox_options options = {})
        : sandbox(client::remote_sandbox::create(where(), with_token(std::move(options))).value()) {}
    ~own_sandbox() { sandbox.stop(true); }
    own_sandbox(const own_sandbox&) = delete;
    own_sandbox& operator=(const own_sandbox&) = delete;
    const client::remote_sandbox* operator->() const { return &sandbox; }

    static client::remote_sandbox_options with_token(client::remote_sandbox_options options) {
        options.token = token();
        return options;
    }
    client::remote_sandbox sandbox;
};

struct own_workspace {
    explicit own_workspace(client::workspace_options options = {})
        : workspace(client::sandboxd_workspace::create(where(), with_token(std::move(options))).value()) {}
    ~own_workspace() {
        if (workspace.ref()) {
            (void)workspace.purge();
        }
    }
    own_workspace(const own_workspace&) = delete;
    own_workspace& operator=(const own_workspace&) = delete;
    const client::sandboxd_workspace* operator->() const { return &workspace; }

    static client::workspace_options with_token(client::workspace_options options) {
        options.token = token();
        return options;
    }
    client::sandboxd_workspace workspace;
};

/// A name that no other test uses.
std::string unique(const std::string& stem);

} // namespace sandboxd::lines
