#pragma once

// router: which route a request means (contract 1.1.8 a). No I/O: a table is made once from a constant list
// and only read after that, by any thread.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sandboxd::router {

/// A row of the route table; the handler stands beside it in the caller's own row.
struct endpoint {
    std::string_view method;  ///< "GET"
    std::string_view pattern; ///< "/sessions/{session_id}/run": literal segments and whole-segment parameters
};

/// What a method and a target lead to.
struct match {
    enum class outcome {
        found,          ///< `index` and `parameters` are set
        unknown_path,   ///< 404
        unknown_method, ///< 405; `allow` lists the methods of the path
        trailing_slash, ///< 307 to `location`
    };
    outcome kind = outcome::unknown_path;
    std::size_t index = 0; ///< of the endpoint in the list
    /// In the order of the pattern. Percent-decoded once; bytes that are no UTF-8 became U+FFFD, so every
    /// value is UTF-8, is not empty and holds no '/', but may hold anything else, NUL included.
    std::vector<std::pair<std::string_view, std::string>> parameters;
    std::string allow;      ///< "DELETE, GET": every method of the path (contract N19.8), sorted
    std::string location;   ///< path (encoded again) and query, without scheme and host
    std::string_view query; ///< raw, without '?'; of the target given

    /// The value of a parameter of the pattern; empty when there is none of that name.
    [[nodiscard]] std::string_view parameter(std::string_view name) const noexcept;
};

/// The table. The first endpoint that fits wins.
class table {
public:
    /// The texts of the endpoints must outlive the table. Throws std::logic_error for a pattern that does not
    /// begin with '/' or has a malformed parameter: a bug, found by any test.
    explicit table(std::span<const endpoint> endpoints);

    /// `target` as in http::request_head: raw path and query. Invalid escapes stand for themselves, dot
    /// segments mean nothing special; escapes are decoded before matching, so `%2F` parts the path.
    [[nodiscard]] match find(std::string_view method, std::string_view target) const;

    /// The patterns, each once, sorted by code unit, without "/" (contract 1.3.1).
    [[nodiscard]] std::vector<std::string> patterns() const;

private:
    struct route {
        std::string_view method;
        std::vector<std::string_view> segments; ///< a parameter is kept with its braces
    };
    void redirect(std::string_view path, match& found) const;

    std::vector<route> routes_;
    std::vector<std::string_view> patterns_;
};

} // namespace sandboxd::router
