#pragma once

#include "config/load.hpp"
#include "config/table.hpp"

#include <boost/test/unit_test.hpp>

#include <map>
#include <string>

namespace config_test {

using namespace sandboxd;
using namespace sandboxd::config;

/// A made-up host: four cores, not root, files from a map.
inline host_facts made_up_host(std::map<std::string, std::string> files = {}) {
    host_facts out;
    out.cores = 4;
    out.current_dir = "/here";
    out.read_file = [files](const std::string& path, std::size_t max_bytes) -> result<std::string> {
        const auto found = files.find(path);
        if (found == files.end()) {
            return error{errc::io, "'" + path + "' can't be read: No such file or directory"};
        }
        return found->second.substr(0, max_bytes);
    };
    return out;
}

/// Loads from variables without their prefix, upper case added, with a token and a home unless given.
inline result<loaded_settings> load_from(environment variables, const host_facts& host = made_up_host(),
                                         const flags& given = {}) {
    environment whole;
    for (auto& [name, value] : variables) {
        whole["SANDBOXD_" + name] = value;
    }
    whole.emplace("SANDBOXD_TOKEN", "t");
    whole.emplace("HOME", "/h");
    return load(whole, std::nullopt, given, host);
}

/// The values; the test fails, with the error's text, when there are none.
inline settings values_of(const result<loaded_settings>& from) {
    BOOST_REQUIRE_MESSAGE(from.has_value(), (from ? "" : from.error().message));
    return from->values;
}

inline std::string message_of(const result<loaded_settings>& from) {
    if (from) {
        return "(no error)";
    }
    BOOST_TEST((from.error().code == errc::invalid));
    BOOST_TEST(from.error().message.find('\n') == std::string::npos);
    return from.error().message;
}

inline bool holds(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

} // namespace config_test
