#include "wire/fault.hpp"

#include "wire/json_text.hpp"

#include <boost/json.hpp>

namespace sandboxd::wire {
namespace {

void append_part(std::string& out, const place_part& part) {
    if (const auto* key = std::get_if<std::string>(&part)) {
        append_string(out, *key);
    } else {
        append_number(out, std::get<std::int64_t>(part));
    }
}

void append_fault(std::string& out, const fault& one) {
    out += "{\"type\":";
    append_string(out, one.type);
    out += ",\"loc\":[";
    const char* separator = "";
    for (const auto& part : one.loc) {
        out += separator;
        append_part(out, part);
        separator = ",";
    }
    out += "],\"msg\":";
    append_string(out, one.msg);
    out += ",\"input\":";
    out += one.input;
    if (!one.ctx.empty()) {
        out += ",\"ctx\":";
        append_value(out, one.ctx);
    }
    out += '}';
}

} // namespace

std::string shown_input(const boost::json::value& input) {
    constexpr std::size_t longest = 4096;
    std::string whole;
    if (append_value_within(whole, input, longest)) {
        return whole;
    }
    std::string out;
    append_string(out, whole.substr(0, longest) + "...");
    return out;
}

void fault_list::add(fault one) {
    constexpr std::size_t most = 100;
    if (faults_.size() < most) {
        faults_.push_back(std::move(one));
    }
}

std::string faults_body(const fault_list& faults) {
    std::string out = "{\"detail\":[";
    const char* separator = "";
    for (const auto& one : faults.all()) {
        out += separator;
        append_fault(out, one);
        separator = ",";
    }
    return out + "]}";
}

std::string detail_body(std::string_view text) {
    std::string out = "{\"detail\":";
    append_string(out, text);
    return out + "}";
}

} // namespace sandboxd::wire
