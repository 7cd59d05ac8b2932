#include "hostfs/blocking/directory.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>

namespace sandboxd::hostfs::blocking {

namespace {

// struct linux_dirent64, which no header declares.
constexpr std::size_t after_at = 8;
constexpr std::size_t length_at = 16;
constexpr std::size_t type_at = 18;
constexpr std::size_t name_at = 19;

} // namespace

directory_reader::directory_reader(int directory) : directory_(directory) {}

os_result<std::optional<directory_reader::entry>> directory_reader::next() {
    for (;;) {
        if (at_ == size_) {
            if (asked_ < largest_block) {
                asked_ = asked_ == 0 ? first_block : largest_block;
                block_ = std::make_unique_for_overwrite<char[]>(asked_); // NOLINT
            }
            const auto got = ::syscall(SYS_getdents64, directory_, block_.get(), asked_);
            if (got < 0) {
                return os_code(errno);
            }
            if (got == 0) {
                return std::optional<entry>();
            }
            size_ = static_cast<std::size_t>(got);
            at_ = 0;
        }
        const char* const record = block_.get() + at_;
        std::uint16_t length = 0;
        std::memcpy(&length, record + length_at, sizeof length);
        at_ += length;
        std::int64_t after = 0;
        std::memcpy(&after, record + after_at, sizeof after);
        const std::string_view name(record + name_at);
        if (name != "." && name != "..") {
            return std::optional(entry{name, static_cast<unsigned char>(record[type_at]), after});
        }
    }
}

} // namespace sandboxd::hostfs::blocking
