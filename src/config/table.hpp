#pragma once

#include "sandboxd/config.hpp"
#include "sandboxd/error.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace sandboxd::config {

/// Where a setting lives; its type, and whether it may be "none", follow from it.
using target =
    std::variant<std::string settings::*, std::optional<std::string> settings::*, std::int64_t settings::*,
                 std::optional<std::int64_t> settings::*, std::optional<double> settings::*, bool settings::*,
                 std::vector<runtime_entry> settings::*, std::pair<std::uint32_t, std::uint32_t> settings::*>;

/// What a text setting must look like, beyond being text without control characters.
enum class shape { any, size, tmpfs, absolute, network, backend, oci_runtime };

/// What an empty value means. For settings that can be none, `refused` is overridden by that.
enum class when_empty { refused, as_absent, kept };

/// One setting. This table is the only place that names them all: the environment, the file, `sandboxd
/// config` and docs/configuration.md come from it.
struct setting_info {
    std::string_view name; ///< lower case, as in the file; `SANDBOXD_` and upper case in the environment
    target where;
    std::string_view summary; ///< one line for the documentation
    std::int64_t min = std::numeric_limits<std::int64_t>::min();
    std::int64_t max = std::numeric_limits<std::int64_t>::max();
    shape form = shape::any;
    std::vector<std::string_view> choices{}; ///< when not empty: the only words allowed
    when_empty empty = when_empty::refused;
    std::string_view empty_meaning{};    ///< for the documentation; "none" or "error" when not said
    std::string_view computed_default{}; ///< in words, where it depends on the host or on other settings
    bool secret = false;
    bool in_effect = true; ///< false: parsed and checked, but its behaviour comes in a later release
};

/// All settings, in the order they are shown.
[[nodiscard]] std::span<const setting_info> table();

/// The setting of that (lower-case) name; null when there is none.
[[nodiscard]] const setting_info* find_setting(std::string_view name);

/// The index of a setting in table(); the name must exist.
[[nodiscard]] std::size_t index_of(std::string_view name);

/// All names, in the table's order.
[[nodiscard]] std::span<const std::string_view> setting_names();

/// "SANDBOXD_MAX_SESSIONS" for "max_sessions".
[[nodiscard]] std::string variable_name(std::string_view name);

/// True for settings that can be none.
[[nodiscard]] bool is_optional(const setting_info& info);

/// "integer", "text, optional", "`keep` or `stop`", ... for people.
[[nodiscard]] std::string type_text(const setting_info& info);

/// The value in `from`, as one line for people: "(hidden)" for secrets, "(none)" or what that means for
/// what is unset.
[[nodiscard]] std::string value_text(const setting_info& info, const settings& from);

/// The default, as one line for people.
[[nodiscard]] std::string default_text(const setting_info& info);

/// Reads `raw` as the setting's type, checks it alone (bounds, words, form) and stores it in `into`. `label`
/// says in an error where the value came from ("SANDBOXD_CPUS", "sandboxd.jsonc:3:5: cpus", "--backend"); the
/// value is quoted unless it is secret. The texts are pinned in part by contract 5.1.1, 5.2, 5.3.
[[nodiscard]] result<void> assign(const setting_info& info, settings& into, std::string_view raw,
                                  std::string_view label);

/// One line of the table of settings in docs/configuration.md, without its line end.
[[nodiscard]] std::string documentation_row(const setting_info& info);

} // namespace sandboxd::config
