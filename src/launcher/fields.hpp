#pragma once

#include "sandboxd/error.hpp"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sandboxd::launcher {

/// Reads the members of one JSON object strictly: the first wrong or unread member makes failed() true, and
/// what is read after that is empty. Strings hold arbitrary bytes but NUL.
class field_reader {
public:
    explicit field_reader(const boost::json::value& from);

    [[nodiscard]] std::string text(std::string_view name);
    [[nodiscard]] std::optional<std::string> optional_text(std::string_view name);
    [[nodiscard]] std::uint64_t number(std::string_view name, std::uint64_t max);
    [[nodiscard]] std::optional<std::uint64_t> optional_number(std::string_view name, std::uint64_t max);
    [[nodiscard]] std::optional<double> optional_real(std::string_view name);
    [[nodiscard]] std::vector<std::string> texts(std::string_view name);
    [[nodiscard]] std::vector<std::pair<std::string, std::string>> pairs(std::string_view name);
    /// An object or null.
    [[nodiscard]] const boost::json::value* optional_object(std::string_view name);

    void fail() noexcept { failed_ = true; }
    /// True when a member was wrong or one has not been asked for.
    [[nodiscard]] bool failed() const noexcept {
        return failed_ || object_ == nullptr || read_ != object_->size();
    }

private:
    [[nodiscard]] const boost::json::value* find(std::string_view name);

    const boost::json::object* object_ = nullptr;
    std::size_t read_ = 0;
    bool failed_ = false;
};

} // namespace sandboxd::launcher
