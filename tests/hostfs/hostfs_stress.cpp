// Reads, writes and removals in a workspace whose components are swapped for links into a directory of the
// host meanwhile, as fast as a hostile sandbox can: not a byte of the host's may be read, written or removed,
// by either way of walking, nor by the look into memory. 10 000 operations of each kind, 100 000 with
// SANDBOXD_TEST_LONG=1. Exits 0 when nothing leaked and the race was really on.

#include "hostfs/blocking/archive.hpp"
#include "hostfs/blocking/files.hpp"
#include "hostfs/in_memory.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace fs = std::filesystem;
using namespace sandboxd;
using namespace sandboxd::hostfs;
using blocking::walk_kind;

namespace {

constexpr std::string_view mine = "inside";
constexpr std::string_view theirs = "of the host";

void put(const fs::path& path, std::string_view bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

/// Everything below a directory: path, kind, mode, content.
std::map<std::string, std::string> picture(const fs::path& top) {
    std::map<std::string, std::string> out;
    for (const auto& one : fs::recursive_directory_iterator(top)) {
        std::ostringstream text;
        struct stat about{};
        ::lstat(one.path().c_str(), &about);
        text << about.st_mode << ' ' << about.st_nlink << ' ' << about.st_mtim.tv_sec << '.'
             << about.st_mtim.tv_nsec;
        if (one.is_regular_file()) {
            text << ' ' << std::ifstream(one.path(), std::ios::binary).rdbuf();
        }
        out[one.path()] = text.str();
    }
    return out;
}

/// What the sandbox has: "a/b" with files in it, and links into the host to put in the place of "a", "b" and
/// "f".
struct arena {
    arena() {
        // In memory where that can be had: a disk's journal slows the attacker down.
        const fs::path fast = "/dev/shm";
        const fs::path where = ::access(fast.c_str(), W_OK) == 0 ? fast : fs::temp_directory_path();
        std::string name = (where / "sandboxd-race-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) {
            std::abort();
        }
        root = name;
        for (const fs::path& top : {work(), host()}) {
            const auto bytes = top == host() ? theirs : mine;
            fs::create_directories(top / "a/b/victim/deep");
            fs::create_directories(top / "b/victim/deep");
            for (const char* directory : {"a/b", "b"}) {
                put(top / directory / "f", bytes);
                put(top / directory / "victim/x", bytes);
                put(top / directory / "victim/deep/y", bytes);
            }
        }
        fs::create_directory_symlink(host() / "a", work() / "link-a");
        fs::create_directory_symlink(host() / "a/b", work() / "a/link-b");
        fs::create_symlink(host() / "a/b/f", work() / "a/b/link-f");
        before = picture(host());
    }
    ~arena() { fs::remove_all(root); }
    arena(const arena&) = delete;
    arena& operator=(const arena&) = delete;

    [[nodiscard]] fs::path work() const { return root / "s/workspace"; }
    [[nodiscard]] fs::path host() const { return root / "host"; }

    fs::path root;
    std::map<std::string, std::string> before;
};

core::unique_fd directory(int parent, const char* name) {
    return core::unique_fd(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// The hostile sandbox sees nothing of the host: its own moves go through descriptors.

/// A name and the link it is exchanged for.
struct exchange {
    const core::unique_fd& in;
    const char* name;
    const char* link;
};

/// Exchanges one or the other for its link and back, over and over, until told to stop; in between it leaves
/// the way open for longer or shorter, so that walks get through and are caught at any point.
void swap_until(const std::atomic<bool>& stop, const std::vector<exchange>& all) {
    for (unsigned round = 0; !stop.load(std::memory_order_relaxed); ++round) {
        const auto& one = all[round % all.size()];
        ::renameat2(one.in.get(), one.name, one.in.get(), one.link, RENAME_EXCHANGE);
        ::renameat2(one.in.get(), one.name, one.in.get(), one.link, RENAME_EXCHANGE);
        for (volatile unsigned spin = round * 37 % 4000; spin > 0; spin = spin - 1) {
        }
    }
}

/// What is going to be removed: a tree with a file in it, unless a link of the attacker's stands there.
void plant_victim(const core::unique_fd& in) {
    ::mkdirat(in.get(), "victim", 0755);
    const auto victim = directory(in.get(), "victim");
    ::mkdirat(victim.get(), "deep", 0755);
    const auto deep = directory(victim.get(), "deep");
    const core::unique_fd file(::openat(deep.get(), "y", O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
}

/// Puts a link to the host's in the place of what is being removed, at its top and further down.
void misdirect_until(const std::atomic<bool>& stop, const core::unique_fd& in, const std::string& target) {
    for (unsigned round = 0; !stop.load(std::memory_order_relaxed); ++round) {
        // The link of the last round may still stand.
        const bool ready = ::symlinkat(target.c_str(), in.get(), "link-victim") == 0 || errno == EEXIST;
        const auto victim = directory(in.get(), "victim");
        const bool deep = round % 2 == 0;
        const int there = deep ? victim.get() : in.get();
        const char* const name = deep ? "deep" : "victim";
        if (ready && ::renameat2(there, name, in.get(), "link-victim", RENAME_EXCHANGE) == 0 &&
            ::renameat2(there, name, in.get(), "link-victim", RENAME_EXCHANGE) != 0) {
            ::renameat(in.get(), "link-victim", there, name); // the link was removed
        }
        for (volatile unsigned spin = round * 37 % 4000; spin > 0; spin = spin - 1) {
        }
    }
}

struct tally {
    long done = 0;
    long refused = 0;
    long leaked = 0;

    template <class T>
    void count(const native_result<T>& answer) {
        ++(answer ? done : refused);
    }
    /// Some got through and some were caught.
    [[nodiscard]] bool raced() const { return done > 0 && refused > 0; }
};

native_path at(std::string_view below) {
    return *parse_native("/workspace/" + std::string(below), "/workspace");
}

blocking::time_limit soon() {
    return std::chrono::steady_clock::now() + std::chrono::seconds(20);
}

/// How many reads by path, as code that just opens would do them, it takes until one gets what is the host's:
/// shows that the race is one. Nothing when none does within a minute: on a busy machine the attacker may
/// have to wait for its turn.
std::optional<long> naive_reads_until_leak(const arena& in) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    for (long tries = 1; std::chrono::steady_clock::now() < end; ++tries) {
        std::ostringstream text;
        text << std::ifstream(in.work() / "a/b/f", std::ios::binary).rdbuf();
        if (text.str() == theirs) {
            return tries;
        }
    }
    return std::nullopt;
}

/// As files/read, stat and list look for it first.
void look_into_memory(const arena& in, tally& counted) {
    const auto node = cached_node::find(in.root, "s", "a/b/f");
    const auto bytes = node ? node->content(1000) : std::nullopt;
    ++(bytes ? counted.done : counted.refused);
    counted.leaked += bytes && *bytes != mine ? 1 : 0;
}

struct reads_and_writes {
    tally by_walking;
    tally in_memory;
};

reads_and_writes read_and_write(const blocking::workspace& in, const arena& field, long rounds) {
    reads_and_writes both;
    tally& counted = both.by_walking;
    const auto file = at("a/b/f");
    const auto fresh = at("a/b/new/dir/file");
    for (long i = 0; i < rounds; ++i) {
        const auto bytes = blocking::read(in, file, 1000, soon());
        counted.count(bytes);
        counted.leaked += bytes && *bytes != mine ? 1 : 0;
        counted.count(blocking::write(in, i % 8 == 0 ? fresh : file, mine, soon()));
        look_into_memory(field, both.in_memory);
        if (i % 4 == 0) {
            const auto listed = blocking::list(in, at("a/b"), soon());
            counted.count(listed);
            const auto shown = blocking::read_archived(in, "a/b/f", 1000, soon());
            counted.leaked += shown && *shown != mine ? 1 : 0;
            blocking::row_budget rows(1000);
            const auto seen = blocking::tree(in, "a", {4, 100}, rows, soon());
            for (const auto& row : seen ? seen->entries : std::vector<blocking::archive_entry>()) {
                counted.leaked += row.size && *row.size != mine.size() && *row.size != 0 ? 1 : 0;
            }
        }
    }
    return both;
}

tally remove_often(const blocking::workspace& in, const core::unique_fd& b, const core::unique_fd& a_b,
                   long rounds) {
    tally counted;
    const auto victim = at("b/victim");
    const auto deeper = at("a/b/victim");
    for (long i = 0; i < rounds; ++i) {
        plant_victim(i % 2 == 0 ? b : a_b);
        counted.count(blocking::remove(in, i % 2 == 0 ? victim : deeper, soon()));
    }
    return counted;
}

/// False when something leaked, or nothing was raced.
bool race(walk_kind how, long rounds) {
    const char* const name = how == walk_kind::kernel ? "openat2" : "component by component";
    const arena field;
    const auto in = *blocking::workspace::open(field.root, "s", how);
    blocking::learn_file_system(field.root);
    const auto work = directory(AT_FDCWD, field.work().c_str());
    const auto in_a = directory(work.get(), "a");
    const auto in_a_b = directory(in_a.get(), "b");
    const auto in_b = directory(work.get(), "b");
    std::atomic<bool> stop{false};
    std::optional<long> naive;
    reads_and_writes files;
    tally removals;
    {
        const std::vector<exchange> swaps{
            {work, "a", "link-a"}, {in_a, "b", "link-b"}, {in_a_b, "f", "link-f"}};
        const std::jthread swapper([&] { swap_until(stop, swaps); });
        const std::jthread misleader([&] { misdirect_until(stop, in_b, field.host() / "b/victim"); });
        std::jthread remover([&] { removals = remove_often(in, in_b, in_a_b, rounds); });
        naive = naive_reads_until_leak(field);
        files = read_and_write(in, field, rounds);
        remover.join();
        stop = true;
    }
    const bool untouched = picture(field.host()) == field.before;
    std::printf(
        "%s: removals %ld done, %ld refused; the %ldth read by path leaked; the host's files are %s\n", name,
        removals.done, removals.refused, naive.value_or(0), untouched ? "untouched" : "CHANGED");
    bool good = untouched && naive && removals.raced();
    for (const auto& [what, counted] :
         {std::pair("walking", files.by_walking), std::pair("in memory", files.in_memory)}) {
        std::printf("  reads and writes, %s: %ld done, %ld refused, %ld leaked\n", what, counted.done,
                    counted.refused, counted.leaked);
        good = good && counted.raced() && counted.leaked == 0;
    }
    return good;
}

} // namespace

int main() {
    const char* const asked = std::getenv("SANDBOXD_TEST_LONG");
    const long rounds = asked != nullptr && std::string_view(asked) == "1" ? 100'000 : 10'000;
    bool good = true;
    for (const walk_kind how : {walk_kind::kernel, walk_kind::components}) {
        good = race(how, rounds) && good;
    }
    return good ? 0 : 1;
}
