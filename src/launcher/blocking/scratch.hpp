#pragma once

#include "core/fd.hpp"
#include "sandboxd/error.hpp"

#include <string>

namespace sandboxd::launcher::blocking {

/// A directory below images/ for one import, gone with its object. Locked while its process lives, so that
/// what a killed one has left is told from what is in use.
class scratch {
public:
    explicit scratch(std::string images);
    scratch(const scratch&) = delete;
    scratch& operator=(const scratch&) = delete;
    ~scratch();

    [[nodiscard]] result<void> make();
    [[nodiscard]] std::string path() const { return images_ + "/" + name_; }

private:
    std::string images_;
    std::string name_;
    core::unique_fd lock_; ///< the directory itself
};

/// Removes what imports that were cut off have left.
void sweep_imports(const std::string& state_dir);

} // namespace sandboxd::launcher::blocking
