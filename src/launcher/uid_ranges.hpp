#pragma once

#include "sandboxd/error.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sandboxd::launcher {

/// Host uids first to last, both included.
using id_span = std::pair<std::uint32_t, std::uint32_t>;

/// The blocks of `ids_per_sandbox` uids, by first uid and in order, that lie in `range` on a boundary of that
/// size and touch none of `taken`.
[[nodiscard]] std::vector<std::uint32_t> free_blocks(id_span range, const std::vector<id_span>& taken);

/// The ranges that a file such as /etc/subuid gives away; lines that are none are skipped.
[[nodiscard]] std::vector<id_span> parse_subids(std::string_view text);

/// Who holds a range: enough to tell, on any service of this host, whether it still does.
struct range_owner {
    std::string state_dir;
    std::string service_uuid;
    std::string slot;
    friend bool operator==(const range_owner&, const range_owner&) = default;
};

namespace blocking {

/// Ranges of host uids, each claimed by a file below a directory that all services of this host share
/// ("Decided" 20). A claim appears whole or not at all, so two processes never hold the same one.
class uid_ranges {
public:
    uid_ranges(std::string directory, std::vector<std::uint32_t> blocks);

    /// Blocks of `range` on this host: without what /etc/subuid and /etc/subgid give away.
    [[nodiscard]] static std::vector<std::uint32_t> host_blocks(id_span range);

    /// Claims a block and answers its first uid; errc::capacity when all are taken.
    [[nodiscard]] result<std::uint32_t> claim(const range_owner& owner) const;

    /// Claims this very block, which the owner holds or has held; errc::capacity when another has it.
    [[nodiscard]] result<std::uint32_t> claim_again(const range_owner& owner, std::uint32_t base) const;

    /// Gives back what this owner holds, `base` or, when absent, whatever is found. Idempotent.
    void release(const range_owner& owner, std::optional<std::uint32_t> base) const;

    /// Removes claims whose slot is gone from its state directory and whose uids no process has.
    void sweep() const;

    [[nodiscard]] std::optional<range_owner> owner_of(std::uint32_t base) const;

private:
    [[nodiscard]] std::string path_of(std::uint32_t base) const;
    [[nodiscard]] result<bool> try_claim(std::uint32_t base, const std::string& prepared) const;
    [[nodiscard]] std::vector<std::uint32_t> claimed() const;

    std::string directory_;
    std::vector<std::uint32_t> blocks_;
};

} // namespace blocking

} // namespace sandboxd::launcher
