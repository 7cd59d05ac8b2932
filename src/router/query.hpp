#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sandboxd::router {

/// The fields of a form-encoded query string (contract N13.1): `+` is a space, escapes are decoded, invalid
/// ones stand for themselves, bytes that are no UTF-8 become U+FFFD, a field without '=' has an empty value,
/// empty fields are left out.
class query {
public:
    explicit query(std::string_view raw);

    /// The last value of that name.
    [[nodiscard]] std::optional<std::string_view> get(std::string_view name) const noexcept;

    /// All fields in order, decoded.
    [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& all() const noexcept {
        return fields_;
    }

private:
    std::vector<std::pair<std::string, std::string>> fields_;
};

} // namespace sandboxd::router
