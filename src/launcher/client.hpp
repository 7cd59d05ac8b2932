#pragma once

#include "core/event.hpp"
#include "core/fd.hpp"
#include "launcher/requests.hpp"
#include "sandboxd/sandbox.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sandboxd::launcher {

/// A sandbox that runs, as the launcher found it.
struct live_sandbox {
    sandbox_started facts;
    core::unique_fd pidfd;  ///< readable once its first process has ended
    core::unique_fd socket; ///< O_PATH of the agent's socket: connect to /proc/self/fd/<it>
};

/// Called on the client's own executor.
using progress_line = std::function<void(const std::string&)>;

/// More than any image takes that is there already.
inline constexpr std::chrono::milliseconds import_deadline = std::chrono::hours(1);

/// The service's end of the launcher. Safe to use from any executor, any number of requests at a time. A
/// request whose awaiting coroutine is cancelled goes on in the launcher and its answer is dropped; only an
/// import is ended.
/// errc::unavailable when the launcher is gone, errc::timeout when it has not answered some time after the
/// request's deadline.
class client {
public:
    virtual ~client() = default;

    [[nodiscard]] virtual task<result<live_sandbox>> start(start_sandbox request,
                                                           std::chrono::milliseconds deadline) = 0;
    [[nodiscard]] virtual task<result<live_sandbox>> attach(std::string slot) = 0;
    [[nodiscard]] virtual task<result<void>> remove(std::string slot) = 0;
    /// stop_slot: a layer that is to be kept stays.
    [[nodiscard]] virtual task<result<void>> stop(std::string slot) = 0;
    /// All slots of the state directory.
    [[nodiscard]] virtual task<result<std::vector<std::string>>> list() = 0;
    /// The image's key for start_sandbox. Progress goes to `tell`, to the log where that is empty.
    [[nodiscard]] virtual task<result<image_info>> import(import_image request, progress_line tell,
                                                          std::chrono::milliseconds deadline) = 0;
    [[nodiscard]] virtual task<result<image_info>> keep(keep_image request,
                                                        std::chrono::milliseconds deadline) = 0;
    /// All names of images.
    [[nodiscard]] virtual task<result<std::vector<std::string>>> images() = 0;
    [[nodiscard]] virtual task<result<void>> forget(std::vector<std::string> references) = 0;
    [[nodiscard]] virtual task<result<host_features>> probe() = 0;

    /// Set once the launcher has left, whether by close() or because it was killed; nothing can be started
    /// then.
    [[nodiscard]] virtual std::shared_ptr<core::shared_event> lost() const = 0;

    /// Closes the socket: the launcher finishes what is in progress and leaves; requests end with
    /// errc::unavailable. Returns when nothing of this object runs any more. Idempotent.
    [[nodiscard]] virtual task<void> close() = 0;
};

/// `socket` is what launcher::start() answered. Call close() before the object goes away.
[[nodiscard]] std::shared_ptr<client> create_client(boost::asio::any_io_executor executor,
                                                    core::unique_fd socket);

} // namespace sandboxd::launcher
