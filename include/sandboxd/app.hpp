#pragma once

#include "sandboxd/config.hpp"
#include "sandboxd/error.hpp"
#include "sandboxd/sandbox.hpp"

#include <functional>
#include <memory>
#include <string>

namespace sandboxd {

/// The service as a part of another program: the same routes, sessions, store and limits, with sandboxes of
/// the program's own making. One per state directory.
class application {
public:
    virtual ~application() = default;
    application() = default;
    application(const application&) = delete;
    application& operator=(const application&) = delete;

    /// Serves until stop() is called, on this thread and up to `io_threads` - 1 more. `listening` is told
    /// "127.0.0.1:8080" once requests are taken. An error when it could not start (a port in use, say). To be
    /// called once. Signals are the program's own business.
    [[nodiscard]] virtual result<void> run(std::function<void(std::string address)> listening) = 0;

    /// Makes run() return: requests under way get `shutdown_grace` seconds, sessions stay for the next start
    /// unless `on_shutdown` is "stop". From any thread, also before run() and more than once; returns at
    /// once.
    virtual void stop() noexcept = 0;
};

/// The service with sandboxes that `builder` makes. Of `config` the token, the runtimes and the state
/// directory are needed; a default runtime and the number of threads are filled in. What only concerns the
/// backends that ship (`backend`, `user`, `uid_range`, the OCI runtimes) has no meaning. errc::invalid with a
/// sentence that names the setting; errc::unavailable when the state directory is in use; errc::io.
[[nodiscard]] result<std::unique_ptr<application>> create_app(settings config,
                                                              std::shared_ptr<sandbox_builder> builder);

/// The settings that the program `sandboxd` would run with in this process's environment (SANDBOXD_*).
/// errc::invalid with a sentence that names the variable.
[[nodiscard]] result<settings> settings_from_environment();

} // namespace sandboxd
