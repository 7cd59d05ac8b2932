#pragma once

// Texts that several parts of the registry answer with.

#include "sandboxd/error.hpp"

#include <string>

namespace sandboxd::session {

[[nodiscard]] inline error gone_with_files(const std::string& id) {
    return {errc::gone, "The sandbox of session " + id + " is gone, and its files with it"};
}

[[nodiscard]] inline error was_closed(const std::string& id) {
    return {errc::gone, "Session " + id + " was closed"};
}

/// A full disk, most often: nothing is started that a crash would make an orphan of.
[[nodiscard]] inline error could_not_record() {
    return {errc::start_failed,
            "The sandbox could not be started: its session could not be recorded (is the disk full?)"};
}

} // namespace sandboxd::session
