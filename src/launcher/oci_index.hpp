#pragma once

#include "sandboxd/error.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace sandboxd::launcher {

/// A blob that an index or a manifest points at.
struct blob_descriptor {
    std::string media_type;
    std::string digest; ///< "sha256:" and 64 hex digits
    std::uint64_t size = 0;

    [[nodiscard]] bool is_index() const;
    [[nodiscard]] std::string hex() const { return digest.substr(digest.find(':') + 1); }
    friend bool operator==(const blob_descriptor&, const blob_descriptor&) = default;
};

/// The image of an OCI index: by its tag; without one the only image there is, or that tagged `latest`.
/// errc::start_failed, with the tags there are, when it is none or more than one.
[[nodiscard]] result<blob_descriptor> choose_by_tag(std::string_view index, const std::string& tag);

/// Of an index of platforms: the image for linux and this machine.
[[nodiscard]] result<blob_descriptor> choose_by_platform(std::string_view index);

/// The configuration blob of an image manifest.
[[nodiscard]] result<blob_descriptor> config_of_manifest(std::string_view manifest);

/// An index.json with one image, tagged "image".
[[nodiscard]] std::string index_of(const blob_descriptor& manifest);

} // namespace sandboxd::launcher
