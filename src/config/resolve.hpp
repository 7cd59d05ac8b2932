#pragma once

#include "sandboxd/config.hpp"
#include "sandboxd/sandbox.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sandboxd::config {

/// The ceilings of a runtime as they apply: its own where set, else the service's (contract 1.2.5, 5.4.1).
struct ceilings {
    std::optional<std::string> mem_limit;
    std::optional<std::string> memswap_limit;
    std::optional<double> cpus;
    std::optional<std::int64_t> cpu_shares;
    std::optional<std::int64_t> pids_limit;
    std::optional<std::string> network_mode;
    std::optional<std::string> oci_runtime;

    friend bool operator==(const ceilings&, const ceilings&) = default;
};

[[nodiscard]] ceilings effective_ceilings(const settings& service, const runtime_entry& entry);

/// The entry of an alias; the default runtime's for none and for an empty one (contract 1.4.3). Null when the
/// alias is not allowed.
[[nodiscard]] const runtime_entry* resolve_runtime(const settings& service,
                                                   const std::optional<std::string>& alias);

/// Whether the oci backend has an adapter for every OCI runtime that is named ("Decided" 16). errc::invalid
/// in the words of a setting's error.
[[nodiscard]] result<void> check_oci_runtimes(const settings& service);

/// The allowed aliases, sorted.
[[nodiscard]] std::vector<std::string> sorted_aliases(const settings& service);

/// Contract 1.4.3's 400: "Unknown runtime 'x'", and what is allowed.
[[nodiscard]] std::string unknown_runtime_text(const settings& service, std::string_view alias);

/// What a session of this runtime is made from (contract 4.1).
struct image_choice {
    enum class kind {
        ready,         ///< `image` is used as it is
        must_be_built, ///< `image` is the base it would be built on
        none,          ///< the runtime names neither image nor base
    };
    kind what = kind::none;
    std::string image;

    friend bool operator==(const image_choice&, const image_choice&) = default;
};

[[nodiscard]] image_choice image_of(const runtime_entry& entry);

/// As the policy shows it (contract 5.4.2).
[[nodiscard]] bool builds(const runtime_entry& entry);
[[nodiscard]] std::string shown_image(const runtime_entry& entry);
[[nodiscard]] std::string shown_description(const runtime_entry& entry);

/// The uid that commands of this runtime run as: the definition's own, else the service's `sandbox_uid`, for
/// runtimes with a definition only (contract 4.6.1); the image's own user when unset.
[[nodiscard]] std::optional<std::uint32_t> sandbox_user(const settings& service, const runtime_entry& entry);

/// The environment of every container with the runtime's own on top, key by key (contract 4.3).
[[nodiscard]] std::vector<std::pair<std::string, std::string>>
container_environment(const runtime_entry& entry, bool unprivileged);

/// cpus × 10⁹, truncated (contract 4.2).
[[nodiscard]] std::int64_t nano_cpus(double cpus) noexcept;

/// Sizes as bytes; memory and swap equal to memory when unset, and never without a memory limit
/// (contract 4.2). errc::start_failed names the ceiling that is no size.
[[nodiscard]] result<sandbox_limits> limits_of(const ceilings& of,
                                               const std::optional<std::string>& tmpfs_size);

/// What the image of this runtime is built from, as a session runs it: with the service's work directory, and
/// the uid (contract 4.4.2, N10.3). Nothing when it is ready or names none.
[[nodiscard]] std::optional<runtime_definition> definition_to_build(const settings& service,
                                                                    const runtime_entry& entry);

/// Everything a builder needs for a session of this runtime; `built_image` is the tag of an image that has to
/// be built. errc::start_failed, fit for the 502, when there is none, or the runtime names no image.
[[nodiscard]] result<sandbox_spec> make_spec(const settings& service, const runtime_entry& entry,
                                             std::string session_id,
                                             const std::optional<std::string>& built_image = std::nullopt);

} // namespace sandboxd::config
