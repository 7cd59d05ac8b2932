#pragma once

#include "launcher/requests.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace sandboxd::launcher {

/// What an image says about the programs that run in it.
struct image_config {
    environment env;
    std::string user; ///< "", "name", "uid", "name:group", "uid:gid"
    std::string work_dir;
    std::vector<std::string> entrypoint;
    friend bool operator==(const image_config&, const image_config&) = default;
};

/// The `config` member of an OCI image configuration; wrong members are errc::start_failed.
[[nodiscard]] result<image_config> parse_image_config(std::string_view text);

/// Our own form of it, kept beside an unpacked image.
[[nodiscard]] std::string encode_image_config(const image_config& config);
[[nodiscard]] result<image_config> decode_image_config(std::string_view text);

/// Who commands run as, and where their home is.
struct resolved_user {
    account ids;
    std::string home;
    friend bool operator==(const resolved_user&, const resolved_user&) = default;
};

/// Looks an image's user up in the texts of its own /etc/passwd and /etc/group. Numbers need no entry: the
/// group is then 0 and the home "/". errc::start_failed for a name that is not there.
[[nodiscard]] result<resolved_user> resolve_user(std::string_view user, std::string_view passwd,
                                                 std::string_view group);

/// The home directory of a uid, "/" without an entry ("/root" for 0).
[[nodiscard]] std::string home_of(std::uint32_t uid, std::string_view passwd);

/// PATH as it is where an image gives none, for those that make an image from it (as an engine's builder
/// does).
void add_usual_path(environment& env);

/// The image's variables overridden key by key, with PATH, HOME and HOSTNAME where nobody gives them.
[[nodiscard]] environment merge_environment(const environment& image, const environment& over,
                                            const std::string& home, const std::string& hostname);

} // namespace sandboxd::launcher
