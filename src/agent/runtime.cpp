// What the C++ library would bring along to throw exceptions that nothing in the agent could catch: half of
// the program's size, and of what it keeps resident. Only for the shipped program; the tests use the
// library's own.

#ifdef SANDBOXD_AGENT_PROGRAM

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <new>

namespace {

[[noreturn]] void die(const char* reason) {
    [[maybe_unused]] auto count = write(2, reason, std::strlen(reason));
    count = write(2, "\n", 1);
    std::abort();
}

void* allocate(std::size_t size) {
    void* const out = std::malloc(size == 0 ? 1 : size);
    if (out == nullptr) {
        die("out of memory");
    }
    return out;
}

} // namespace

void* operator new(std::size_t size) {
    return allocate(size);
}
void* operator new[](std::size_t size) {
    return allocate(size);
}
void operator delete(void* at) noexcept {
    std::free(at);
}
void operator delete[](void* at) noexcept {
    std::free(at);
}
void operator delete(void* at, std::size_t) noexcept {
    std::free(at);
}
void operator delete[](void* at, std::size_t) noexcept {
    std::free(at);
}

namespace std {

void __throw_length_error(const char* reason) {
    die(reason);
}
void __throw_logic_error(const char* reason) {
    die(reason);
}
void __throw_bad_alloc() {
    die("out of memory");
}
void __throw_bad_array_new_length() {
    die("out of memory");
}
void __throw_out_of_range_fmt(const char* reason, ...) {
    die(reason);
}
void __throw_bad_function_call() {
    die("empty function");
}
void __throw_bad_optional_access() {
    die("empty optional");
}

} // namespace std

#endif
