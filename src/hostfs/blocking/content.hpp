#pragma once

#include "hostfs/blocking/walk.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace sandboxd::hostfs::blocking {

/// The whole of a regular file. EFBIG when it has more than `max_bytes`, also when it grows while it is read;
/// otherwise as open_file().
[[nodiscard]] os_result<std::string> read_content(const node& found, std::uint64_t max_bytes,
                                                  time_limit until);

/// Puts `content` in the place of `name` in `directory` by one rename (contract N5.2): an existing regular
/// file is replaced and keeps its permission bits, a new one is 0666 less the umask. Whatever stands there at
/// the moment of the rename is replaced, never followed. On an error the old file is whole and the temporary
/// is gone. EISDIR for a directory, EOPNOTSUPP for a FIFO, socket or device, ELOOP for a link, ENAMETOOLONG
/// for a name over 237 bytes.
[[nodiscard]] error_code replace_content(const node& directory, const std::string& name,
                                         std::string_view content, time_limit until);

} // namespace sandboxd::hostfs::blocking
