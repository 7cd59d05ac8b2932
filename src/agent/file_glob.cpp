#include "agent/file_call.hpp"
#include "agent/file_paths.hpp"
#include "agent/glob_pattern.hpp"
#include "agent/tree_walk.hpp"

#include <algorithm>
#include <cerrno>

namespace sandboxd::agent {

namespace {

/// Contract 3.9: a leading "**/" goes, once; then the whole path has to end in a slash and the pattern.
std::string whole_pattern(std::string_view pattern) {
    pattern.remove_prefix(pattern.starts_with("**/") ? 3 : 0);
    return "*/" + std::string(pattern);
}

std::string with_slash(std::string_view root) {
    std::string out(root);
    while (!out.empty() && out.back() == '/') {
        out.pop_back();
    }
    return out + "/";
}

} // namespace

void glob_files(file_call& call) {
    const auto& request = call.request();
    located where;
    tree_walk walk(call, {});
    int failed = locate(request.path, where);
    failed = failed != 0 ? failed : walk.open(where.at(), where.rest.c_str());
    if (failed == ENOTDIR) {
        call.refuse(protocol::failure_kind::invalid, "Not a directory");
        return;
    }
    if (failed != 0) {
        call.fail(failed);
        return;
    }
    const glob_pattern pattern(whole_pattern(request.pattern));
    std::string whole = with_slash(request.path);
    const auto root_size = whole.size();
    std::vector<std::string> found;
    std::uint64_t bytes = 0;
    bool truncated = false;
    while (!truncated && walk.next()) {
        const auto& path = walk.path();
        whole.resize(root_size);
        whole.append(path);
        if (!pattern.matches(whole)) {
            continue;
        }
        bytes += protocol::listing_head + path.size();
        truncated = found.size() == request.length || bytes > request.limit_bytes;
        if (!truncated) {
            found.push_back(path);
        }
    }
    std::sort(found.begin(), found.end());
    std::string record;
    for (const auto& one : found) {
        record.clear();
        protocol::append_record(record, {.is_directory = false, .size = {}, .name = one});
        call.put(record);
    }
    call.succeed(truncated || walk.incomplete() ? protocol::truncated : 0U);
}

} // namespace sandboxd::agent
