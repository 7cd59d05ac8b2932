#pragma once

#include "sandboxd/config.hpp"
#include "sandboxd/error.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace sandboxd::config {

/// Shown where an entry is not understood at all (pinned: contract 5.3.2).
inline constexpr std::string_view runtimes_example =
    " Example: SANDBOXD_RUNTIMES=python=python:3.12-slim,data=@python-datascience;mem_limit=4g";

/// "<label> <rest>", errc::invalid.
[[nodiscard]] error runtimes_fault(std::string_view label, const std::string& rest);

/// One entry of SANDBOXD_RUNTIMES on its way in, whatever the syntax: fields are set from text one by one,
/// then finish() checks the whole. What is wrong is told with the label and the alias.
class reader {
public:
    explicit reader(std::string_view label) : label_(label) {}

    runtime_entry entry;

    [[nodiscard]] static bool has_field(std::string_view field);

    /// `alias.field='value' is not valid: cause`.
    [[nodiscard]] error at_field(std::string_view field, std::string_view value,
                                 std::string_view cause) const;
    /// `entry 'alias' cause`.
    [[nodiscard]] error at_entry(const std::string& cause) const;

    /// Sets a field from its text; an unknown one is an error that suggests the nearest.
    [[nodiscard]] result<void> set(std::string_view field, std::string_view value);

    /// Sets the source: an image, or `@name`.
    [[nodiscard]] result<void> set_source(std::string_view source);

    /// The rules about several fields, and the built-in's definition.
    [[nodiscard]] result<void> finish();

private:
    result<void> set_text(std::optional<std::string>& into, std::string_view field, std::string_view value);
    result<void> set_number(std::optional<std::int64_t>& into, std::string_view field,
                            std::string_view value);
    result<void> set_cpus(std::string_view value);
    result<void> set_checked(std::optional<std::string>& into, std::string_view field, std::string_view value,
                             std::optional<std::string> (*check)(std::string_view));
    result<void> check_alias() const;

    std::string_view label_;
};

} // namespace sandboxd::config
