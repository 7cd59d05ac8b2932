#include "launcher/uid_ranges.hpp"

#include "core/random.hpp"
#include "launcher/blocking/files.hpp"
#include "launcher/bundle_config.hpp"
#include "launcher/fields.hpp"
#include "launcher/text.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sandboxd::launcher {

namespace json = boost::json;

namespace {

constexpr std::size_t max_claim = 16 * 1024;

std::string encode(const range_owner& owner) {
    return json::serialize(
        json::object{{"state_dir", owner.state_dir}, {"service", owner.service_uuid}, {"slot", owner.slot}});
}

std::optional<range_owner> decode(std::string_view text) {
    boost::system::error_code failed;
    json::parse_options options;
    options.allow_invalid_utf8 = true;
    const auto value = json::parse(json::string_view(text.data(), text.size()), failed, {}, options);
    if (failed) {
        return std::nullopt;
    }
    field_reader from(value);
    range_owner owner;
    owner.state_dir = from.text("state_dir");
    owner.service_uuid = from.text("service");
    owner.slot = from.text("slot");
    return from.failed() ? std::nullopt : std::optional(owner);
}

/// True when a process of this host runs with a uid of the block.
bool in_use(std::uint32_t base) {
    auto proc = blocking::open_directory("/proc");
    auto names = proc ? blocking::list_directory(proc->get()) : result<std::vector<std::string>>(error{});
    if (!names) {
        return true; // can't tell
    }
    for (const auto& name : *names) {
        struct stat status{};
        if (parse_number(name) && ::fstatat(proc->get(), name.c_str(), &status, 0) == 0 &&
            status.st_uid >= base && status.st_uid - base < ids_per_sandbox) {
            return true;
        }
    }
    return false;
}

std::uint32_t random_number() {
    std::array<unsigned char, sizeof(std::uint32_t)> bytes{};
    core::random_bytes(bytes);
    std::uint32_t value = 0;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
}

} // namespace

std::vector<std::uint32_t> free_blocks(id_span range, const std::vector<id_span>& taken) {
    std::vector<std::uint32_t> blocks;
    constexpr std::uint64_t size = ids_per_sandbox;
    for (std::uint64_t base = (range.first + size - 1) / size * size; base + size - 1 <= range.second;
         base += size) {
        const auto touches = [&](const id_span& one) {
            return one.first < base + size && one.second >= base;
        };
        if (std::none_of(taken.begin(), taken.end(), touches)) {
            blocks.push_back(static_cast<std::uint32_t>(base));
        }
    }
    return blocks;
}

std::vector<id_span> parse_subids(std::string_view text) {
    std::vector<id_span> spans;
    for (const auto line : split(text, '\n')) {
        const auto parts = split(line, ':');
        if (parts.size() != 3) {
            continue;
        }
        const auto start = parse_number(parts[1]);
        const auto count = parse_number(parts[2]);
        if (start && count && *count > 0) {
            const std::uint64_t last = std::uint64_t{*start} + *count - 1;
            spans.emplace_back(*start, static_cast<std::uint32_t>(std::min<std::uint64_t>(last, UINT32_MAX)));
        }
    }
    return spans;
}

namespace blocking {

uid_ranges::uid_ranges(std::string directory, std::vector<std::uint32_t> blocks)
    : directory_(std::move(directory)), blocks_(std::move(blocks)) {}

std::vector<std::uint32_t> uid_ranges::host_blocks(id_span range) {
    std::vector<id_span> taken;
    for (const char* file : {"/etc/subuid", "/etc/subgid"}) {
        if (const auto text = read_file(file, 1024 * 1024)) {
            const auto more = parse_subids(*text);
            taken.insert(taken.end(), more.begin(), more.end());
        }
    }
    return free_blocks(range, taken);
}

std::string uid_ranges::path_of(std::uint32_t base) const {
    return directory_ + "/" + std::to_string(base);
}

result<bool> uid_ranges::try_claim(std::uint32_t base, const std::string& prepared) const {
    if (::link(prepared.c_str(), path_of(base).c_str()) == 0) {
        return true;
    }
    if (errno == EEXIST) {
        return false;
    }
    return os_error("claiming a range of uids in " + directory_, errno);
}

result<std::uint32_t> uid_ranges::claim(const range_owner& owner) const {
    if (auto made = make_directories(directory_, 0711); !made) {
        return made.error();
    }
    const auto prepared = directory_ + "/.claim-" + core::random_hex(8);
    if (auto written = write_file_at(AT_FDCWD, prepared, encode(owner), 0600); !written) {
        return written.error();
    }
    result<std::uint32_t> answer =
        error{errc::capacity,
              "all " + std::to_string(blocks_.size()) +
                  " ranges of uids are taken (SANDBOXD_UID_RANGE, less /etc/subuid and /etc/subgid)"};
    // Somewhere at random, so that a range is not used again at once and services rarely meet.
    const auto start = blocks_.empty() ? 0 : random_number() % blocks_.size();
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
        const auto base = blocks_[(start + i) % blocks_.size()];
        const auto got = try_claim(base, prepared);
        if (!got || *got) {
            answer = got ? result<std::uint32_t>(base) : result<std::uint32_t>(got.error());
            break;
        }
    }
    ::unlink(prepared.c_str());
    return answer;
}

/// Claims do not outlive a boot of the host, layers do.
result<std::uint32_t> uid_ranges::claim_again(const range_owner& owner, std::uint32_t base) const {
    if (owner_of(base) == owner) {
        return base;
    }
    if (auto made = make_directories(directory_, 0711); !made) {
        return made.error();
    }
    const auto prepared = directory_ + "/.claim-" + core::random_hex(8);
    if (auto written = write_file_at(AT_FDCWD, prepared, encode(owner), 0600); !written) {
        return written.error();
    }
    const auto got = try_claim(base, prepared);
    ::unlink(prepared.c_str());
    if (!got) {
        return got.error();
    }
    if (!*got) {
        return error{errc::capacity, "the range of uids of what was kept (from " + std::to_string(base) +
                                         ") is in use by another sandbox"};
    }
    return base;
}

std::optional<range_owner> uid_ranges::owner_of(std::uint32_t base) const {
    const auto text = read_file(path_of(base), max_claim);
    return text ? decode(*text) : std::nullopt;
}

std::vector<std::uint32_t> uid_ranges::claimed() const {
    std::vector<std::uint32_t> bases;
    auto directory = open_directory(directory_);
    auto names = directory ? list_directory(directory->get()) : result<std::vector<std::string>>(error{});
    if (names) {
        for (const auto& name : *names) {
            if (const auto base = parse_number(name)) {
                bases.push_back(*base);
            }
        }
    }
    return bases;
}

void uid_ranges::release(const range_owner& owner, std::optional<std::uint32_t> base) const {
    const auto mine = base ? std::vector<std::uint32_t>{*base} : claimed();
    for (const auto one : mine) {
        if (owner_of(one) == owner) {
            ::unlink(path_of(one).c_str());
        }
    }
}

void uid_ranges::sweep() const {
    for (const auto base : claimed()) {
        // A claim is made after its slot's directory and given back before it: no directory, no claim.
        const auto owner = owner_of(base);
        if (owner && ::access((owner->state_dir + "/oci/" + owner->slot).c_str(), F_OK) != 0 &&
            errno == ENOENT && !in_use(base)) {
            release(*owner, base);
        }
    }
}

} // namespace blocking

} // namespace sandboxd::launcher
