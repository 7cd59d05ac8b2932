#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace sandboxd::agent {

/// Remembers run ids for at least `keep` seconds, unless more than `most` come within that time: then the
/// oldest go first. Holds a 64-bit digest of each in two generations, so that an idle agent needs no memory
/// for it.
class run_ids {
public:
    static constexpr std::int64_t keep = 600;
    static constexpr std::size_t most = 64 * 1024; ///< at least half as many are always remembered

    /// Whether `id` (16 bytes) was added lately.
    [[nodiscard]] bool contains(std::string_view id, std::int64_t now_seconds);
    void add(std::string_view id, std::int64_t now_seconds);

private:
    class table {
    public:
        [[nodiscard]] bool contains(std::uint64_t key) const;
        void add(std::uint64_t key);
        [[nodiscard]] std::size_t size() const { return size_; }

    private:
        std::vector<std::uint64_t> slots_; ///< open addressing, 0 is free
        std::size_t size_ = 0;
    };

    void rotate(std::int64_t now_seconds);

    table young_;
    table old_;
    std::int64_t young_since_ = 0;
};

} // namespace sandboxd::agent
