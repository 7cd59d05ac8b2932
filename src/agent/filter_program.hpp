#pragma once

#include "agent/filter_calls.hpp"

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <span>

namespace sandboxd::agent {

/// From here on a number that the list does not have is newer than the list: the kernel answers as one that
/// is older than the call, so that programs fall back to what it replaces.
inline constexpr std::uint32_t first_newer_call = 457;

/// Execution domains: native, 32-bit addresses for old programs, both with UNAME26, and the query.
inline constexpr std::uint32_t known_personas[] = {0x0, 0x8, 0x20000, 0x20008, 0xffffffff};

/// CLONE_NEW*: user, mount, pid, net, ipc, uts, cgroup, in the flags of clone.
inline constexpr std::uint32_t namespace_flags = 0x7E020000;

/// Would reach the hypervisor and other virtual machines.
inline constexpr std::uint32_t vsock_family = 40;

inline constexpr std::size_t most_instructions = 700;

/// A filter for the kernel, built while this is compiled: the architecture is looked at first (a call of
/// another one than the two ends its process), then the number by halving, so that a call costs about ten
/// steps and the kernel needs little time to load it.
class filter_program {
public:
    /// For a kernel of 64 bits and its 32-bit programs. Calls of x32 (bit 30 set) are unknown.
    constexpr filter_program(entry native, entry compatible) {
        load(offsetof(seccomp_data, arch));
        branch(BPF_JEQ, architecture_of(native), 1, 0);
        const auto jump = add({BPF_JMP | BPF_JA, 0, 0, 0});
        add_entry(native);
        code_[jump].k = static_cast<std::uint32_t>(size_ - jump - 1);
        branch(BPF_JEQ, architecture_of(compatible), 1, 0);
        answer(SECCOMP_RET_KILL_PROCESS);
        add_entry(compatible);
    }

    /// Every jump is short enough for its 8 bits.
    [[nodiscard]] constexpr bool is_sound() const { return reachable_; }

    [[nodiscard]] constexpr std::span<const sock_filter> code() const { return {code_.data(), size_}; }

private:
    static_assert(std::endian::native == std::endian::little, "the first half of an argument is its low one");

    /// Numbers from `first` to the next segment's have one answer.
    struct segment {
        std::uint32_t first = 0;
        verdict what = verdict::refuse;
    };

    struct segments {
        std::array<segment, 2 * std::size(filter_list::calls) + 2> all{};
        std::size_t count = 0;

        constexpr void add(std::uint32_t first, verdict what) {
            if (count == 0 || all[count - 1].what != what) {
                all[count++] = {first, what};
            }
        }

        /// What is not on the list, from `first` to before `end`.
        constexpr void add_others(std::uint32_t first, std::uint32_t end) {
            if (first < std::min(end, first_newer_call)) {
                add(first, verdict::refuse);
            }
            if (std::max(first, first_newer_call) < end) {
                add(std::max(first, first_newer_call), verdict::unknown);
            }
        }
    };

    static constexpr std::uint32_t architecture_of(entry way) {
        constexpr std::uint32_t all[entries] = {0xC000003E, 0x40000003, 0xC00000B7,
                                                0x40000028}; // AUDIT_ARCH_*
        return all[static_cast<unsigned>(way)];
    }

    static constexpr segments segments_of(entry way) {
        std::array<segment, std::size(filter_list::calls)> listed{};
        std::size_t count = 0;
        for (const auto& call : filter_list::calls) {
            if (const auto number = call.number[static_cast<unsigned>(way)]; number >= 0) {
                listed[count++] = {static_cast<std::uint32_t>(number), call.what};
            }
        }
        std::sort(listed.begin(), listed.begin() + count,
                  [](const segment& one, const segment& other) { return one.first < other.first; });
        segments out;
        std::uint32_t next = 0;
        for (std::size_t i = 0; i < count; ++i) {
            out.add_others(next, listed[i].first);
            out.add(listed[i].first, listed[i].what);
            next = listed[i].first + 1;
        }
        out.add_others(next, UINT32_MAX);
        return out;
    }

    constexpr std::size_t add(sock_filter one) {
        code_[size_] = one;
        return size_++;
    }

    constexpr void load(std::size_t offset) {
        add({BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<std::uint32_t>(offset)});
    }

    constexpr std::size_t branch(unsigned how, std::uint32_t value, std::uint8_t yes, std::uint8_t no) {
        return add({static_cast<std::uint16_t>(BPF_JMP | BPF_K | how), yes, no, value});
    }

    constexpr void answer(std::uint32_t what) { add({BPF_RET | BPF_K, 0, 0, what}); }

    constexpr void refuse() { answer(SECCOMP_RET_ERRNO | EPERM); }

    constexpr void add_entry(entry way) {
        load(offsetof(seccomp_data, nr));
        const auto all = segments_of(way);
        add_tree({all.all.data(), all.count});
    }

    constexpr void add_tree(std::span<const segment> part) {
        if (part.size() == 1) {
            add_leaf(part[0].what);
            return;
        }
        const auto middle = part.size() / 2;
        const auto at = branch(BPF_JGE, part[middle].first, 0, 0);
        add_tree(part.first(middle));
        const auto distance = size_ - at - 1;
        code_[at].jt = static_cast<std::uint8_t>(distance);
        reachable_ = reachable_ && distance <= UINT8_MAX;
        add_tree(part.subspan(middle));
    }

    /// Of an argument the low half is looked at: more the kernel does not read of these.
    constexpr void add_leaf(verdict what) {
        switch (what) {
        case verdict::refuse:
            refuse();
            return;
        case verdict::unknown:
            answer(SECCOMP_RET_ERRNO | ENOSYS);
            return;
        case verdict::allow:
            break;
        case verdict::unless_namespaces:
            load(offsetof(seccomp_data, args));
            branch(BPF_JSET, namespace_flags, 0, 1);
            refuse();
            break;
        case verdict::unless_vsock:
            load(offsetof(seccomp_data, args));
            branch(BPF_JEQ, vsock_family, 0, 1);
            refuse();
            break;
        case verdict::if_known_persona: {
            load(offsetof(seccomp_data, args));
            auto left = static_cast<std::uint8_t>(std::size(known_personas));
            for (const auto persona : known_personas) {
                branch(BPF_JEQ, persona, left--, 0);
            }
            refuse();
            break;
        }
        }
        answer(SECCOMP_RET_ALLOW);
    }

    std::array<sock_filter, most_instructions> code_{};
    std::size_t size_ = 0;
    bool reachable_ = true;
};

inline constexpr filter_program filter_for_amd64{entry::amd64, entry::i386};
inline constexpr filter_program filter_for_arm64{entry::arm64, entry::arm};
static_assert(filter_for_amd64.is_sound() && filter_for_arm64.is_sound());

} // namespace sandboxd::agent
