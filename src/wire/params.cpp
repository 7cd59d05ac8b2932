#include "wire/params.hpp"

#include "wire/scalars.hpp"

#include <boost/json.hpp>

namespace sandboxd::wire {
namespace {

boost::json::value as_value(std::string_view text) {
    return boost::json::value(boost::json::string(text));
}

bool check_path_id(const char* name, std::string_view id, const id_pattern& pattern, fault_list& faults) {
    std::string kept;
    rules keep;
    keep.pattern = &pattern;
    return read_value(as_value(id), kept, keep, {"path", name}, faults);
}

} // namespace

bool check_session_id(std::string_view id, fault_list& faults) {
    return check_path_id("session_id", id, session_id_pattern, faults);
}

bool check_run_id(std::string_view id, fault_list& faults) {
    return check_path_id("run_id", id, run_id_pattern, faults);
}

std::optional<bool> read_query_flag(std::string_view name, std::optional<std::string_view> text, bool absent,
                                    fault_list& faults) {
    bool out = absent;
    if (!text || read_value(as_value(*text), out, {}, {"query", std::string(name)}, faults)) {
        return out;
    }
    return std::nullopt;
}

std::optional<std::string> read_query_text(std::string_view name, std::optional<std::string_view> text,
                                           fault_list& faults) {
    if (text) {
        return std::string(*text);
    }
    faults.add({.type = "missing",
                .loc = {"query", std::string(name)},
                .msg = "Field required",
                .input = "null",
                .ctx = {}});
    return std::nullopt;
}

std::optional<std::int64_t> read_query_integer(std::string_view name, std::optional<std::string_view> text,
                                               std::int64_t absent, std::int64_t at_least,
                                               fault_list& faults) {
    std::int64_t out = absent;
    rules keep;
    keep.at_least = at_least;
    if (!text || read_value(as_value(*text), out, keep, {"query", std::string(name)}, faults)) {
        return out;
    }
    return std::nullopt;
}

} // namespace sandboxd::wire
