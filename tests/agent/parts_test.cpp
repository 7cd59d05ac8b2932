// The agent's parts without I/O.

#include "agent/command.hpp"
#include "agent/deadlines.hpp"
#include "agent/input_channel.hpp"
#include "agent/outbox.hpp"
#include "agent/output_channel.hpp"
#include "agent/passwd.hpp"
#include "agent/path_search.hpp"
#include "agent/process_tree.hpp"
#include "agent/raw_call.hpp"
#include "agent/run_ids.hpp"

#include <boost/test/unit_test.hpp>

#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <sys/syscall.h>

namespace {

using namespace sandboxd::agent;
namespace protocol = sandboxd::protocol;

BOOST_AUTO_TEST_SUITE(agent_parts)

BOOST_AUTO_TEST_CASE(the_kernel_is_asked_without_errno) {
    errno = 77;
    BOOST_TEST(raw_call(SYS_close, -1) == EBADF);
    BOOST_TEST(raw_call(SYS_chdir, "/no/such/directory") == ENOENT);
    BOOST_TEST(raw_call(SYS_getpid) == 0);
    BOOST_TEST(errno == 77);
}

BOOST_AUTO_TEST_CASE(a_ring_holds_what_a_deque_would) {
    std::mt19937 random(7);
    byte_ring ring(100'000);
    std::deque<char> model;
    std::uint64_t begin = 0;
    for (int i = 0; i < 20'000; ++i) {
        if (random() % 2 == 0) {
            std::string bytes(std::min<std::size_t>(random() % 9'000, ring.room()), '\0');
            for (auto& one : bytes) {
                one = static_cast<char>(random());
            }
            ring.append(bytes);
            model.insert(model.end(), bytes.begin(), bytes.end());
        } else {
            const auto count = model.empty() ? 0 : random() % (model.size() + 1);
            begin += count;
            ring.release(begin);
            model.erase(model.begin(), model.begin() + static_cast<std::ptrdiff_t>(count));
        }
        BOOST_REQUIRE(ring.size() == model.size());
        BOOST_REQUIRE(ring.begin() == begin);
        const auto offset = model.empty() ? 0 : random() % (model.size() + 1);
        iovec pieces[2];
        const int count = ring.view(begin + offset, 5'000, pieces);
        std::string seen;
        for (int j = 0; j < count; ++j) {
            seen.append(static_cast<const char*>(pieces[j].iov_base), pieces[j].iov_len);
        }
        BOOST_REQUIRE(seen.size() == std::min<std::size_t>(5'000, model.size() - offset));
        BOOST_REQUIRE(
            std::equal(seen.begin(), seen.end(), model.begin() + static_cast<std::ptrdiff_t>(offset)));
    }
}

void fill(output_channel& to, std::string_view bytes) {
    while (!bytes.empty()) {
        iovec pieces[2];
        const int count = to.prepare(pieces);
        BOOST_REQUIRE(count > 0);
        const auto length = std::min(pieces[0].iov_len, bytes.size());
        std::memcpy(pieces[0].iov_base, bytes.data(), length);
        to.commit(length);
        bytes.remove_prefix(length);
    }
}

BOOST_AUTO_TEST_CASE(an_output_channel_stops_at_its_window_and_goes_on_with_credit) {
    output_channel channel;
    fill(channel, std::string(protocol::window, 'x'));
    BOOST_TEST(!channel.wants());
    std::string out;
    channel.take(out, 1, protocol::channel::out, 32'768);
    BOOST_TEST(out.size() == 32'768U + protocol::header_size);
    BOOST_TEST(!channel.credit(32'769)); // more than was sent
    BOOST_TEST(channel.credit(32'768));
    BOOST_TEST(channel.credit(5)); // an older one, repeated
    BOOST_TEST(channel.first_held() == 32'768U);
    BOOST_TEST(channel.wants());
    BOOST_TEST(!channel.resume(32'767));
    BOOST_TEST(!channel.resume(32'769));
    BOOST_TEST(channel.resume(32'768));
}

BOOST_AUTO_TEST_CASE(keep_and_forget_drop_what_comes_after) {
    output_channel channel;
    channel.set_keep(3);
    iovec pieces[2];
    BOOST_REQUIRE(channel.prepare(pieces) == 1);
    BOOST_TEST(pieces[0].iov_len == 3U); // exactly what may be kept
    channel.commit(3);
    BOOST_TEST(channel.dropping());
    BOOST_TEST(channel.wants());
    BOOST_TEST(channel.pending());
    channel.forget();
    BOOST_TEST(!channel.pending());
    BOOST_TEST(channel.held() == 0U);
    BOOST_TEST(channel.total() == 3U);
}

BOOST_AUTO_TEST_CASE(an_input_channel_refuses_what_is_beyond_the_window) {
    input_channel channel;
    BOOST_TEST(channel.accept(std::string(protocol::window, 'x')));
    BOOST_TEST(!channel.accept("x"));
    std::uint64_t count = 0;
    BOOST_TEST(!channel.credit_due(count));
    channel.consume(protocol::window / 4);
    BOOST_TEST(channel.credit_due(count));
    BOOST_TEST(count == protocol::window / 4);
    BOOST_TEST(!channel.credit_due(count));
    BOOST_TEST(channel.accept("x"));
    channel.end();
    BOOST_TEST(!channel.accept("y"));
    channel.close();
    BOOST_TEST(channel.credit_due(count));
    BOOST_TEST(count == protocol::window + 1);
}

struct talker final : turn_source {
    talker(char name_of_it, int turns) : name(name_of_it), left(turns) {}
    bool take_turn(std::string& out) override {
        out.append(20'000, name);
        return --left > 0;
    }
    char name;
    int left;
};

std::string order_of(outbox& box) {
    std::string out;
    for (auto bytes = box.front(); !bytes.empty(); bytes = box.front()) {
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            if (i == 0 || bytes[i] != bytes[i - 1]) {
                out.push_back(bytes[i]);
            }
        }
        box.advance(bytes.size());
    }
    return out;
}

BOOST_AUTO_TEST_CASE(sources_take_turns_and_control_goes_first) {
    outbox box;
    talker a('a', 3);
    talker b('b', 1);
    talker c('c', 2);
    box.add(a);
    box.add(b);
    box.add(c);
    box.add(a); // is in already
    box.control() = "!";
    const auto first = box.front();
    BOOST_TEST(first.substr(0, 2) == "!a");
    BOOST_TEST(first.size() == 80'001U); // no more than a batch is put in front of the next control frame
    box.control() = "?";
    box.advance(1);
    BOOST_TEST(box.front().size() == 80'000U); // a frame is never cut
    BOOST_TEST(order_of(box) == "abca?ca");
    BOOST_TEST(box.empty());
}

BOOST_AUTO_TEST_CASE(a_removed_source_is_silent) {
    outbox box;
    talker a('a', 2);
    talker b('b', 1);
    box.add(a);
    box.add(b);
    box.remove(a);
    BOOST_TEST(order_of(box) == "b");
    box.add(a);
    box.clear();
    BOOST_TEST(box.front().empty());
    box.add(a);
    BOOST_TEST(!box.front().empty());
}

BOOST_AUTO_TEST_CASE(run_ids_are_known_for_ten_minutes_and_bounded) {
    run_ids ids;
    const auto id = [](unsigned n) {
        std::string out(16, '\0');
        std::memcpy(out.data(), &n, sizeof n);
        return out;
    };
    ids.add(id(1), 0);
    BOOST_TEST(ids.contains(id(1), 599));
    BOOST_TEST(!ids.contains(id(2), 599));
    ids.add(id(2), 599);
    BOOST_TEST(ids.contains(id(2), 1'198));
    BOOST_TEST(!ids.contains(id(1), 1'800));
    BOOST_TEST(!ids.contains(id(2), 5'000));
    for (unsigned n = 0; n < 200'000; ++n) {
        ids.add(id(n), 5'001);
    }
    for (unsigned n = 200'000 - run_ids::most / 2; n < 200'000; ++n) {
        BOOST_REQUIRE(ids.contains(id(n), 5'001));
    }
    BOOST_TEST(!ids.contains(id(1), 5'001));
}

BOOST_AUTO_TEST_CASE(deadlines_come_in_order) {
    deadlines all;
    all.add({30, deadline_kind::timeout, 3});
    all.add({10, deadline_kind::timeout, 1});
    all.add({20 * millisecond + 1, deadline_kind::drained, 2});
    deadline due;
    BOOST_TEST(!all.pop(9, due));
    BOOST_REQUIRE(all.pop(30, due));
    BOOST_TEST(due.id == 1U);
    BOOST_REQUIRE(all.pop(30, due));
    BOOST_TEST(due.id == 3U);
    BOOST_TEST(all.wait_ms(0) == 21); // rounded up, or it would wake too early again and again
    all.compact([](const deadline& one) { return one.id == 2; });
    BOOST_TEST(all.wait_ms(0) == -1);
}

BOOST_AUTO_TEST_CASE(stat_lines_with_any_name_are_read) {
    const auto read =
        parse_stat("42 (a) b) R (c) S 7 43 42 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 12345 0 0 0\n");
    BOOST_REQUIRE(read.has_value());
    BOOST_TEST(read->pid == 42);
    BOOST_TEST(read->parent == 7);
    BOOST_TEST(read->session == 42);
    BOOST_TEST(read->state == 'S');
    BOOST_TEST(read->started == 12345U);
    for (const auto* bad : {"", "x", "1", "1 (a", "1 (a)", "1 (a) ", "1 (a) S", "1 (a) S 3 4 5"}) {
        BOOST_TEST(!parse_stat(bad));
    }
}

BOOST_AUTO_TEST_CASE(descendants_are_found_at_any_depth_and_spared_ones_left_out) {
    const auto node = [](pid_t pid, pid_t parent) {
        return process{.pid = pid, .parent = parent, .started = 1, .state = 'S'};
    };
    const std::vector<process> all = {node(9, 8), node(2, 1), node(3, 2), node(8, 3),
                                      node(4, 1), node(5, 4), node(6, 0)};
    const auto pids = [](const std::vector<process>& found) {
        std::vector<pid_t> out;
        for (const auto& one : found) {
            out.push_back(one.pid);
        }
        std::sort(out.begin(), out.end());
        return out;
    };
    BOOST_TEST(pids(descendants(all, 1)) == (std::vector<pid_t>{2, 3, 4, 5, 8, 9}),
               boost::test_tools::per_element());
    BOOST_TEST(pids(descendants(all, 2)) == (std::vector<pid_t>{3, 8, 9}), boost::test_tools::per_element());
    BOOST_TEST(pids(descendants(all, 1, {3, 4})) == (std::vector<pid_t>{2}),
               boost::test_tools::per_element());
    BOOST_TEST(descendants(all, 77).empty());
    // Pids used again during the walk can make a circle.
    BOOST_TEST(pids(descendants({node(2, 3), node(3, 2), node(3, 1)}, 1)) == (std::vector<pid_t>{2, 3, 3}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(passwd_and_group_files_are_read) {
    const std::string passwd = "root:x:0:0:root:/root:/bin/sh\nbroken\n:::\nx:x:99999999999:1::/:\n"
                               "u:x:1000:1001:User,,,:/home/u:/bin/bash\nsame:x:1000:5::/other:\nlast:x:7:8";
    BOOST_TEST(find_user(passwd, 0)->home == "/root");
    const auto user = find_user(passwd, 1000);
    BOOST_REQUIRE(user.has_value());
    BOOST_TEST(user->name == "u");
    BOOST_TEST(user->group == 1001U);
    BOOST_TEST(user->home == "/home/u");
    BOOST_TEST(find_user(passwd, 7)->home.empty());
    BOOST_TEST(!find_user(passwd, 1001));
    BOOST_TEST(!find_user("", 0));
    const auto groups = groups_of("a:x:1:u\nb:x:2:v,u,w\nc:x:3:\nd:x:4:uu,u2\ne:x:y:u\nf:x:6:w,u", "u");
    BOOST_TEST(groups == (std::vector<gid_t>{1, 2, 6}), boost::test_tools::per_element());
    BOOST_TEST(read_small_file("/dev/zero").empty());
    BOOST_TEST(read_small_file("/no/such/file").empty());
}

/// A made-up file system: what each attempt answers.
struct files {
    std::map<std::string, int> answers;
    std::vector<std::string> tried;
    static int attempt(const char* file, void* context) {
        auto& self = *static_cast<files*>(context);
        self.tried.emplace_back(file);
        const auto found = self.answers.find(file);
        return found == self.answers.end() ? ENOENT : found->second;
    }
};

BOOST_AUTO_TEST_CASE(the_path_is_searched_as_execvp_does) {
    files disk;
    BOOST_TEST(exec_along_path("p", "/a:/b::/c", files::attempt, &disk) == ENOENT);
    BOOST_TEST(disk.tried == (std::vector<std::string>{"/a/p", "/b/p", "p", "/c/p"}),
               boost::test_tools::per_element());
    disk = {{{"/a/p", EACCES}, {"/b/p", ENOTDIR}}, {}};
    BOOST_TEST(exec_along_path("p", "/a:/b:/c", files::attempt, &disk) == EACCES);
    BOOST_TEST(disk.tried.size() == 3U);
    disk = {{{"/a/p", ENOEXEC}}, {}};
    BOOST_TEST(exec_along_path("p", "/a:/b", files::attempt, &disk) == ENOEXEC);
    BOOST_TEST(disk.tried.size() == 1U);
    disk = {};
    BOOST_TEST(exec_along_path("x/p", "/a", files::attempt, &disk) == ENOENT);
    BOOST_TEST(disk.tried == (std::vector<std::string>{"x/p"}), boost::test_tools::per_element());
    disk = {};
    BOOST_TEST(exec_along_path("", "/a", files::attempt, &disk) == ENOENT);
    BOOST_TEST(exec_along_path(std::string(300, 'x').c_str(), "/a", files::attempt, &disk) == ENAMETOOLONG);
    BOOST_TEST(exec_along_path("p", std::string(10'000, 'y') + ":/b", files::attempt, &disk) == ENOENT);
    BOOST_TEST(disk.tried == (std::vector<std::string>{"/b/p"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_command_is_built_in_place) {
    std::string frame;
    protocol::frame_writer(frame, protocol::frame_type::start, 1)
        .bytes(protocol::tag::argument, "a")
        .bytes(protocol::tag::variable, "X=1")
        .bytes(protocol::tag::argument, "")
        .bytes(protocol::tag::variable, "Y=")
        .bytes(protocol::tag::variable, "X=2")
        .bytes(protocol::tag::directory, "/d");
    std::vector<char> payload(frame.begin() + protocol::header_size, frame.end());
    payload.push_back('?');
    char x[] = "X=0";
    char z[] = "Z=9";
    char odd[] = "no equals sign";
    char* base[] = {x, z, odd, nullptr};
    command out;
    BOOST_REQUIRE(build_command({payload.data(), payload.size() - 1}, base, out) == nullptr);
    BOOST_REQUIRE(out.arguments.size() == 3U);
    BOOST_TEST(std::string(out.arguments[0]) == "a");
    BOOST_TEST(std::string(out.arguments[1]).empty());
    BOOST_TEST(out.arguments[2] == nullptr);
    BOOST_REQUIRE(out.variables.size() == 4U);
    BOOST_TEST(std::string(out.variables[0]) == "Z=9");
    BOOST_TEST(std::string(out.variables[1]) == "Y=");
    BOOST_TEST(std::string(out.variables[2]) == "X=2");
    BOOST_TEST(std::string(out.directory) == "/d");
    BOOST_TEST(std::string(find_variable(out.variables.data(), "X")) == "2");
    BOOST_TEST(find_variable(out.variables.data(), "W") == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
