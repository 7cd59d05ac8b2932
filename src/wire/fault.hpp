#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sandboxd::wire {

/// A key or an index.
using place_part = std::variant<std::string, std::int64_t>;
using place = std::vector<place_part>; ///< begins with "body", "path" or "query"

/// One row of a 422's detail (contract 1.1.5).
struct fault {
    std::string type;
    place loc;
    std::string msg;
    std::string input;       ///< as JSON, see shown_input()
    boost::json::object ctx; ///< left out of the answer when empty
};

/// The faults of one request, in order. Keeps the first hundred: the sender is not to be repeated at length.
class fault_list {
public:
    void add(fault one);
    [[nodiscard]] bool empty() const noexcept { return faults_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return faults_.size(); }
    [[nodiscard]] const std::vector<fault>& all() const noexcept { return faults_; }

private:
    std::vector<fault> faults_;
};

/// What a fault repeats of the input: its JSON; beyond 4 KiB the start of it as a string. Costs no more than
/// that.
[[nodiscard]] std::string shown_input(const boost::json::value& input);

/// `{"detail":[...]}`, the body of a 422.
[[nodiscard]] std::string faults_body(const fault_list& faults);

/// `{"detail":"<text>"}` (contract 1.1.4).
[[nodiscard]] std::string detail_body(std::string_view text);

} // namespace sandboxd::wire
