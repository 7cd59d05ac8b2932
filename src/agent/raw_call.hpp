#pragma once

#include <type_traits>

namespace sandboxd::agent {

namespace detail {

template <class T>
long as_word(T value) {
    if constexpr (std::is_pointer_v<T>) {
        return reinterpret_cast<long>(value);
    } else {
        return static_cast<long>(value);
    }
}

inline long call_kernel(long number, long a, long b, long c, long d) {
#if defined(__x86_64__)
    long result = number;
    register long fourth asm("r10") = d;
    asm volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c), "r"(fourth) : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long result asm("x0") = a;
    register long second asm("x1") = b;
    register long third asm("x2") = c;
    register long fourth asm("x3") = d;
    register long which asm("x8") = number;
    asm volatile("svc 0" : "+r"(result) : "r"(second), "r"(third), "r"(fourth), "r"(which) : "memory");
    return result;
#else
#error "say how this processor asks the kernel"
#endif
}

} // namespace detail

/// A system call of up to four arguments without the C library, which leaves `errno` as it is: for a process
/// that shares its memory with another. Returns 0, or the errno.
template <class... Arguments>
int raw_call(long number, Arguments... arguments) {
    static_assert(sizeof...(arguments) <= 4);
    const long words[] = {detail::as_word(arguments)..., 0, 0, 0, 0};
    const long result = detail::call_kernel(number, words[0], words[1], words[2], words[3]);
    return result < 0 ? static_cast<int>(-result) : 0;
}

} // namespace sandboxd::agent
