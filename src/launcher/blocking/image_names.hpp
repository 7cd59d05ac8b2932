#pragma once

#include "core/fd.hpp"
#include "launcher/blocking/child.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sandboxd::launcher::blocking {

/// Which names mean which image (its key below <state_dir>/images): what was fetched keeps the digest that
/// its tag meant then, as under an engine, until the name is forgotten.
using image_map = std::map<std::string, std::string>;

/// Waits for a lock file below images/; errc::timeout, with `busy`, at the deadline.
[[nodiscard]] result<core::unique_fd> lock_file(const std::string& path, deadline until,
                                                const std::string& busy, bool shared = false);

/// Held (shared) from before an image appears until its name is known and while a slot is put on one, and
/// (not shared) while images that nothing stands on are taken away.
[[nodiscard]] result<core::unique_fd> lock_images(const std::string& state_dir, deadline until, bool shared);

/// All names; a record that can't be read counts as none: what it named is fetched anew.
[[nodiscard]] image_map read_image_names(const std::string& state_dir);

[[nodiscard]] std::optional<std::string> find_image_name(const std::string& state_dir,
                                                         const std::string& reference);

/// Writes the name down, in the place of what it meant before. Under lock_images().
[[nodiscard]] result<void> put_image_name(const std::string& state_dir, const std::string& reference,
                                          const std::string& key, deadline until);

/// Under lock_images(), not shared.
[[nodiscard]] result<void> drop_image_names(const std::string& state_dir,
                                            const std::vector<std::string>& references, deadline until);

} // namespace sandboxd::launcher::blocking
