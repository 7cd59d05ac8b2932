#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sandboxd::docker {

/// A name or an id as one path segment: everything but unreserved characters is percent-encoded.
[[nodiscard]] std::string segment(std::string_view text);

/// An image reference in a path: '/', ':' and '@' stay.
[[nodiscard]] std::string image_path(std::string_view reference);

/// Builds "/path?a=b&c=d".
class target {
public:
    explicit target(std::string path) : text_(std::move(path)) {}
    target with(std::string_view name, std::string_view value) &&;
    target flag(std::string_view name, bool value) && {
        return std::move(*this).with(name, value ? "1" : "0");
    }
    [[nodiscard]] std::string text() const { return text_; }

private:
    std::string text_;
    bool any_ = false;
};

/// The daemon's `filters` parameter: {"label":["k=v"],"status":["running"]}. Labels AND, others OR.
using filter_list = std::vector<std::pair<std::string, std::string>>;
[[nodiscard]] std::string filters_json(const filter_list& filters);

} // namespace sandboxd::docker
