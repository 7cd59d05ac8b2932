#pragma once

#include "wire/body.hpp"
#include "wire/requests.hpp"

#include <boost/test/unit_test.hpp>

namespace wire_test {

using namespace sandboxd::wire;

inline const std::string run_id(32, 'a');

inline parsed_body parsed(std::string_view text) {
    auto got = parse_body("application/json", text);
    BOOST_REQUIRE_MESSAGE(std::holds_alternative<parsed_body>(got), text << " is no JSON");
    return std::get<parsed_body>(std::move(got));
}

template <class T>
T accepted(std::string_view text) {
    fault_list faults;
    auto got = read_model<T>(parsed(text), faults);
    BOOST_REQUIRE_MESSAGE(got.has_value(), text << " was refused: " << faults_body(faults));
    return *got;
}

/// The rows of the 422's detail, without the wrapping.
template <class T>
std::string refused(std::string_view text) {
    fault_list faults;
    const auto got = read_model<T>(parsed(text), faults);
    BOOST_REQUIRE_MESSAGE(!got.has_value(), text << " was accepted");
    const std::string body = faults_body(faults);
    return body.substr(11, body.size() - 13);
}

} // namespace wire_test
