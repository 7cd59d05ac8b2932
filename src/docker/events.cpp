#include "docker/events.hpp"

#include <algorithm>

namespace sandboxd::docker {

std::string engine_event::attribute(std::string_view name) const {
    const auto found = std::find_if(attributes.begin(), attributes.end(),
                                    [&](const auto& one) { return one.first == name; });
    return found != attributes.end() ? found->second : std::string();
}

std::optional<engine_event> read_event(const json::object& from) {
    auto action = text_at(from, "Action");
    auto id = text_at(from, "Actor", "ID");
    if (!action || !id) {
        return std::nullopt;
    }
    engine_event one;
    one.type = text_at(from, "Type").value_or("");
    one.action = std::move(*action);
    one.id = std::move(*id);
    one.attributes = pairs(at(from, "Actor", "Attributes"));
    one.time_nano = integer(at(from, "timeNano")).value_or(0);
    return one;
}

bool event_cursor::accept(const engine_event& one) {
    std::string key = std::to_string(one.time_nano) + " " + one.type + " " + one.action + " " + one.id + " " +
                      one.attribute("execID");
    if (!seen_.insert(key).second) {
        return false;
    }
    order_.push_back(std::move(key));
    if (order_.size() > remembered) {
        seen_.erase(order_.front());
        order_.pop_front();
    }
    last_ = std::max(last_, one.time_nano);
    return true;
}

std::string event_cursor::since() const {
    if (last_ <= 0) {
        return {};
    }
    std::string rest = std::to_string(last_ % 1'000'000'000);
    rest.insert(0, 9 - rest.size(), '0');
    return std::to_string(last_ / 1'000'000'000) + "." + rest;
}

} // namespace sandboxd::docker
