#include "wire/model.hpp"

namespace sandboxd::wire {

const boost::json::object* object_of(const parsed_body& body, fault_list& faults) {
    if (!body.present) {
        faults.add({"missing", {"body"}, "Field required", "null", {}});
        return nullptr;
    }
    if (!body.value.is_object()) {
        faults.add({"model_attributes_type",
                    {"body"},
                    "Input should be a valid dictionary or object to extract fields from",
                    shown_input(body.value),
                    {}});
        return nullptr;
    }
    return &body.value.get_object();
}

void add_missing(std::string_view name, const boost::json::value& whole, fault_list& faults) {
    faults.add({"missing", {"body", std::string(name)}, "Field required", shown_input(whole), {}});
}

void add_forbidden(std::string_view name, const boost::json::value& value, fault_list& faults) {
    constexpr std::size_t shown = 256;
    faults.add({"extra_forbidden",
                {"body", std::string(name.substr(0, shown))},
                "Extra inputs are not permitted",
                shown_input(value),
                {}});
}

} // namespace sandboxd::wire
