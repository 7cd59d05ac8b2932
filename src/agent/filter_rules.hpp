#pragma once

// What a row of the filter's list says (filter_calls.hpp, filter_file_calls.hpp).

#include <cstdint>

namespace sandboxd::agent {

/// The kernel's answer to a call.
enum class verdict : std::uint8_t {
    refuse,            ///< EPERM
    unknown,           ///< ENOSYS
    allow,             ///< the call is made
    unless_namespaces, ///< EPERM when its first argument asks for a namespace
    if_known_persona,  ///< EPERM unless its first argument is an execution domain that programs use
    unless_vsock,      ///< EPERM when its first argument is AF_VSOCK
};

/// Ways into the kernel, 64-bit ones and those of their 32-bit programs: columns of the list.
enum class entry : std::uint8_t { amd64, i386, arm64, arm };
inline constexpr unsigned entries = 4;

struct filtered_call {
    const char* name;
    std::int32_t number[entries];
    verdict what;
};

namespace filter_list {

inline constexpr std::int32_t none = -1; ///< there is no such call on that way
inline constexpr auto allow = verdict::allow;

} // namespace filter_list

} // namespace sandboxd::agent
