#pragma once

#include "client/http_client.hpp"

#include <boost/json/value.hpp>

#include <cstdint>
#include <string_view>

namespace sandboxd::client {

// From the bodies of answers to values. What does not fit the contract's models is nothing: the answer is not
// one of the service. Unknown fields are ignored, so that newer services can add some.

[[nodiscard]] std::optional<boost::json::value> json_of(const std::string& body);

/// One field of an object. Each reader answers false when the field is missing (unless it is `optional`,
/// where it may also be null) or of another type.
class fields {
public:
    explicit fields(const boost::json::value& of) : object_(of.if_object()) {}

    [[nodiscard]] bool is_object() const noexcept { return object_ != nullptr; }
    [[nodiscard]] const boost::json::value* find(std::string_view name) const;

    [[nodiscard]] bool read(std::string_view name, std::string& into) const;
    [[nodiscard]] bool read(std::string_view name, bool& into) const;
    [[nodiscard]] bool read(std::string_view name, std::uint64_t& into) const;
    [[nodiscard]] bool read(std::string_view name, double& into) const;
    [[nodiscard]] bool read(std::string_view name, std::optional<std::string>& into) const;
    [[nodiscard]] bool read(std::string_view name, std::optional<int>& into) const;
    [[nodiscard]] bool read(std::string_view name, std::optional<std::uint64_t>& into) const;
    [[nodiscard]] bool read(std::string_view name, std::optional<double>& into) const;
    /// Left as it is when missing.
    [[nodiscard]] bool read_if_there(std::string_view name, bool& into) const;

private:
    const boost::json::object* object_;
};

/// Contract 1.2.2.
struct session_info {
    std::string session_id;
    std::string runtime;
    std::optional<std::string> tenant;
    bool alive = false;
    std::string state = "running";
    double created_at = 0;
    double last_activity = 0;
    double idle_seconds = 0;
    std::optional<usage_sample> usage;
};

struct session_created {
    session_info session;
    std::string token;
};

/// The part of contract 1.2.6 that clients act on.
struct service_policy {
    double execute_timeout = 0;
    double max_read_bytes = 0;
    bool native_files = false;
    bool native_writes = false;
    bool native_realpath = false;
};

[[nodiscard]] std::optional<session_info> session_info_of(const boost::json::value& from);
[[nodiscard]] std::optional<session_created> session_created_of(const std::string& body);
[[nodiscard]] std::optional<service_policy> service_policy_of(const std::string& body);
[[nodiscard]] std::optional<file_info> file_info_of(const boost::json::value& from);
[[nodiscard]] std::optional<std::vector<file_info>> file_infos_of(const boost::json::value& from);

/// Bodies of requests, compact. Nothing when a text in it is no UTF-8: it would arrive as another one.
[[nodiscard]] std::optional<std::string> json_text(const boost::json::value& body);

} // namespace sandboxd::client
