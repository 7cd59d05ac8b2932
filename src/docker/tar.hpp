#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sandboxd::docker {

struct tar_file {
    std::string name; ///< at most 100 bytes, relative
    std::string content;
    unsigned mode = 0644;
};

/// A ustar archive of a few small files owned by root, as `PUT /containers/{id}/archive` takes it (the
/// agent's volume is filled with one).
[[nodiscard]] std::string make_tar(const std::vector<tar_file>& files);

} // namespace sandboxd::docker
