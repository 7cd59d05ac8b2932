#include "router/table.hpp"

#include "router/text.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

namespace sandboxd::router {

namespace {

bool is_parameter(std::string_view segment) noexcept {
    return segment.size() > 2 && segment.front() == '{' && segment.back() == '}';
}

/// "/a/b" → "a", "b"; "/" → one empty segment. `path` begins with '/'.
std::vector<std::string_view> split(std::string_view path) {
    std::vector<std::string_view> segments;
    path.remove_prefix(1);
    for (;;) {
        const auto slash = path.find('/');
        segments.push_back(path.substr(0, slash));
        if (slash == std::string_view::npos) {
            return segments;
        }
        path.remove_prefix(slash + 1);
    }
}

bool fits(const std::vector<std::string_view>& pattern, const std::vector<std::string_view>& path) noexcept {
    return std::equal(pattern.begin(), pattern.end(), path.begin(), path.end(),
                      [](std::string_view wanted, std::string_view given) {
                          return is_parameter(wanted) ? !given.empty() : wanted == given;
                      });
}

} // namespace

std::string_view match::parameter(std::string_view name) const noexcept {
    for (const auto& [known, value] : parameters) {
        if (known == name) {
            return value;
        }
    }
    return {};
}

table::table(std::span<const endpoint> endpoints) {
    for (const auto& [method, pattern] : endpoints) {
        if (pattern.empty() || pattern.front() != '/') {
            throw std::logic_error("a pattern begins with '/': " + std::string(pattern));
        }
        route made{method, split(pattern)};
        for (const auto segment : made.segments) {
            if (!is_parameter(segment) && segment.find_first_of("{}") != std::string_view::npos) {
                throw std::logic_error("a parameter is a whole segment: " + std::string(pattern));
            }
        }
        routes_.push_back(std::move(made));
        patterns_.push_back(pattern);
    }
}

match table::find(std::string_view method, std::string_view target) const {
    match found;
    const auto mark = target.find('?');
    found.query = mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1);
    const std::string path = decode(target.substr(0, mark));
    if (path.empty() || path.front() != '/') {
        return found;
    }
    const auto segments = split(path);
    std::set<std::string_view> methods;
    for (std::size_t i = 0; i < routes_.size(); ++i) {
        const auto& route = routes_[i];
        if (!fits(route.segments, segments)) {
            continue;
        }
        if (route.method != method) {
            methods.insert(route.method);
            continue;
        }
        found.kind = match::outcome::found;
        found.index = i;
        for (std::size_t k = 0; k < segments.size(); ++k) {
            if (is_parameter(route.segments[k])) {
                const auto name = route.segments[k].substr(1, route.segments[k].size() - 2);
                found.parameters.emplace_back(name, segments[k]);
            }
        }
        return found;
    }
    if (!methods.empty()) {
        found.kind = match::outcome::unknown_method;
        for (const auto one : methods) {
            found.allow += found.allow.empty() ? "" : ", ";
            found.allow += one;
        }
        return found;
    }
    redirect(path, found);
    return found;
}

/// A known path with slashes after it, whatever the method: 307 to the path without them.
void table::redirect(std::string_view path, match& found) const {
    const auto last = path.find_last_not_of('/');
    if (path.back() != '/' || last == std::string_view::npos) {
        return;
    }
    path = path.substr(0, last + 1);
    const auto segments = split(path);
    const bool known = std::any_of(routes_.begin(), routes_.end(),
                                   [&](const route& one) { return fits(one.segments, segments); });
    if (known) {
        found.kind = match::outcome::trailing_slash;
        found.location = encode_path(path);
        if (!found.query.empty()) {
            found.location += '?';
            found.location += found.query;
        }
    }
}

std::vector<std::string> table::patterns() const {
    std::vector<std::string> sorted(patterns_.begin(), patterns_.end());
    std::sort(sorted.begin(), sorted.end());
    std::erase(sorted, "/");
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    return sorted;
}

} // namespace sandboxd::router
