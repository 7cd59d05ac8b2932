#include "launcher/fields.hpp"
#include "launcher/requests.hpp"
#include "launcher/runtimes/runtime.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <limits>

namespace sandboxd::launcher {

namespace json = boost::json;

namespace {

constexpr auto any_number = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t any_id = std::numeric_limits<std::uint32_t>::max();

template <class... F>
struct overloaded : F... {
    using F::operator()...;
};

json::array flatten(const environment& env) {
    json::array list;
    for (const auto& [name, value] : env) {
        list.emplace_back(name);
        list.emplace_back(value);
    }
    return list;
}

json::array texts(const std::vector<std::string>& from) {
    json::array list;
    for (const auto& one : from) {
        list.emplace_back(one);
    }
    return list;
}

template <class T>
void put(json::object& into, std::string_view name, const std::optional<T>& value) {
    if (value) {
        into[json::string_view(name.data(), name.size())] = *value;
    }
}

void put_limits(json::object& into, const sandbox_limits& limits) {
    put(into, "memory", limits.memory_bytes);
    put(into, "memory_swap", limits.memory_swap_bytes);
    put(into, "cpus", limits.cpus);
    put(into, "cpu_shares", limits.cpu_shares);
    put(into, "pids", limits.pids);
    put(into, "tmpfs", limits.tmpfs_size);
}

sandbox_limits get_limits(field_reader& from) {
    sandbox_limits limits;
    limits.memory_bytes = from.optional_number("memory", any_number);
    limits.memory_swap_bytes = from.optional_number("memory_swap", any_number);
    limits.cpus = from.optional_real("cpus");
    limits.cpu_shares = from.optional_number("cpu_shares", any_number);
    limits.pids = from.optional_number("pids", any_number);
    limits.tmpfs_size = from.optional_text("tmpfs");
    return limits;
}

std::optional<std::uint32_t> get_id(field_reader& from, std::string_view name) {
    const auto value = from.optional_number(name, any_id);
    return value ? std::optional(static_cast<std::uint32_t>(*value)) : std::nullopt;
}

json::object encode_body(const request_body& body) {
    json::object into;
    const auto write = overloaded{
        [&](const start_sandbox& r) {
            into = {{"kind", "start"},     {"slot", r.slot},         {"hostname", r.hostname},
                    {"image", r.image},    {"work_dir", r.work_dir}, {"env", flatten(r.env)},
                    {"runtime", r.runtime}};
            put_limits(into, r.limits);
            put(into, "workspace_dir", r.workspace_dir);
            put(into, "uid", r.uid);
            put(into, "workspace_uid", r.workspace_uid);
            into["keep"] = static_cast<std::uint64_t>(r.keep);
            into["network"] = r.network ? 1 : 0;
            into["run_entrypoint"] = r.run_entrypoint ? 1 : 0;
        },
        [&](const attach_sandbox& r) { into = {{"kind", "attach"}, {"slot", r.slot}}; },
        [&](const remove_slot& r) { into = {{"kind", "remove"}, {"slot", r.slot}}; },
        [&](const stop_slot& r) { into = {{"kind", "stop"}, {"slot", r.slot}}; },
        [&](const list_slots& r) { into = {{"kind", "list"}, {"after", r.after}}; },
        [&](const import_image& r) {
            into = {
                {"kind", "import"}, {"reference", r.reference}, {"fetch", r.fetch ? 1 : 0}, {"auth", r.auth}};
        },
        [&](const keep_image& r) {
            into = {
                {"kind", "keep_image"}, {"slot", r.slot}, {"reference", r.reference}, {"config", r.config}};
        },
        [&](const list_images& r) { into = {{"kind", "list_images"}, {"after", r.after}}; },
        [&](const forget_images& r) {
            into = {{"kind", "forget_images"}, {"references", texts(r.references)}};
        },
        [&](const probe_host&) { into = {{"kind", "probe"}}; },
        [&](const give_up& r) { into = {{"kind", "give_up"}, {"request", r.request}}; },
    };
    std::visit(write, body);
    return into;
}

json::object encode_body(const answer_body& body) {
    json::object into;
    const auto write = overloaded{
        [&](const error& a) {
            into = {{"kind", "error"}, {"code", name_of(a.code)}, {"message", a.message}};
        },
        [&](const sandbox_started& a) {
            into = {{"kind", "started"},       {"pid", a.pid},           {"start_ticks", a.start_ticks},
                    {"uid_base", a.uid_base},  {"setup_us", a.setup_us}, {"runtime_us", a.runtime_us},
                    {"dials", a.dials ? 1 : 0}};
            if (a.user) {
                into["uid"] = a.user->uid;
                into["gid"] = a.user->gid;
            }
        },
        [&](const slot_list& a) { into = {{"kind", "slots"}, {"slots", texts(a.slots)}}; },
        [&](const image_info& a) { into = {{"kind", "image"}, {"key", a.key}, {"config", a.config}}; },
        [&](const image_names& a) { into = {{"kind", "image_names"}, {"references", texts(a.references)}}; },
        [&](const host_features& a) {
            into = {{"kind", "features"}, {"notes", texts(a.notes)}};
            put(into, "fatal", a.fatal);
        },
        [&](const done&) { into = {{"kind", "done"}}; },
        [&](const progress& a) { into = {{"kind", "progress"}, {"text", a.text}}; },
    };
    std::visit(write, body);
    return into;
}

std::string slot_of(field_reader& from) {
    auto slot = from.text("slot");
    if (!is_slot_name(slot)) {
        from.fail();
    }
    return slot;
}

start_sandbox get_start(field_reader& from) {
    start_sandbox r;
    r.slot = slot_of(from);
    r.hostname = from.text("hostname");
    r.image = from.text("image");
    r.runtime = from.text("runtime");
    if (find_runtime(r.runtime) == nullptr) {
        from.fail();
    }
    r.work_dir = from.text("work_dir");
    r.env = from.pairs("env");
    r.limits = get_limits(from);
    r.workspace_dir = from.optional_text("workspace_dir");
    r.uid = get_id(from, "uid");
    r.workspace_uid = get_id(from, "workspace_uid");
    r.keep = static_cast<keeping>(from.number("keep", static_cast<std::uint64_t>(keeping::kept)));
    r.network = from.number("network", 1) != 0;
    r.run_entrypoint = from.number("run_entrypoint", 1) != 0;
    return r;
}

import_image get_import(field_reader& from) {
    import_image r;
    r.reference = from.text("reference");
    r.fetch = from.number("fetch", 1) != 0;
    r.auth = from.text("auth");
    return r;
}

keep_image get_keep_image(field_reader& from) {
    keep_image r;
    r.slot = slot_of(from);
    r.reference = from.text("reference");
    r.config = from.text("config");
    return r;
}

std::optional<request_body> get_request(std::string_view kind, field_reader& from) {
    if (kind == "start") {
        return get_start(from);
    }
    if (kind == "attach") {
        return attach_sandbox{slot_of(from)};
    }
    if (kind == "remove") {
        return remove_slot{slot_of(from)};
    }
    if (kind == "stop") {
        return stop_slot{slot_of(from)};
    }
    if (kind == "list") {
        return list_slots{from.text("after")};
    }
    if (kind == "import") {
        return get_import(from);
    }
    if (kind == "keep_image") {
        return get_keep_image(from);
    }
    if (kind == "list_images") {
        return list_images{from.text("after")};
    }
    if (kind == "forget_images") {
        return forget_images{from.texts("references")};
    }
    if (kind == "probe") {
        return probe_host{};
    }
    if (kind == "give_up") {
        return give_up{from.number("request", any_number)};
    }
    return std::nullopt;
}

sandbox_started get_started(field_reader& from) {
    sandbox_started a;
    a.pid = static_cast<std::int32_t>(from.number("pid", std::numeric_limits<std::int32_t>::max()));
    a.start_ticks = from.number("start_ticks", any_number);
    a.uid_base = static_cast<std::uint32_t>(from.number("uid_base", any_id));
    a.dials = from.number("dials", 1) != 0;
    a.setup_us = from.number("setup_us", any_number);
    a.runtime_us = from.number("runtime_us", any_number);
    const auto uid = get_id(from, "uid");
    const auto gid = get_id(from, "gid");
    if (uid.has_value() != gid.has_value()) {
        from.fail();
    } else if (uid) {
        a.user = account{*uid, *gid};
    }
    return a;
}

error get_error(field_reader& from) {
    const auto name = from.text("code");
    for (int code = static_cast<int>(errc::invalid); code <= static_cast<int>(errc::internal); ++code) {
        if (name == name_of(static_cast<errc>(code))) {
            return {static_cast<errc>(code), from.text("message")};
        }
    }
    from.fail();
    return {};
}

std::optional<answer_body> get_answer(std::string_view kind, field_reader& from) {
    if (kind == "error") {
        return get_error(from);
    }
    if (kind == "started") {
        return get_started(from);
    }
    if (kind == "slots") {
        return slot_list{from.texts("slots")};
    }
    if (kind == "image") {
        image_info a;
        a.key = from.text("key");
        a.config = from.text("config");
        return a;
    }
    if (kind == "image_names") {
        return image_names{from.texts("references")};
    }
    if (kind == "features") {
        host_features a;
        a.notes = from.texts("notes");
        a.fatal = from.optional_text("fatal");
        return a;
    }
    if (kind == "done") {
        return done{};
    }
    if (kind == "progress") {
        return progress{from.text("text")};
    }
    return std::nullopt;
}

error broken(const char* what) {
    return {errc::protocol, std::string("a message of the launcher's socket is broken: ") + what};
}

result<json::value> parse(std::string_view text) {
    if (text.size() > max_message) {
        return broken("too long");
    }
    boost::system::error_code failed;
    json::parse_options options;
    options.max_depth = 8;
    options.allow_invalid_utf8 = true; // paths and values are bytes
    auto value = json::parse(json::string_view(text.data(), text.size()), failed, {}, options);
    if (failed) {
        return broken("no JSON");
    }
    return value;
}

} // namespace

bool is_slot_name(std::string_view name) noexcept {
    const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
    return !name.empty() && name.size() <= 64 && name.front() != '-' &&
           std::all_of(name.begin(), name.end(), plain);
}

std::string encode(const request& message) {
    auto into = encode_body(message.body);
    into["id"] = message.id;
    into["deadline_ms"] = message.deadline.count();
    return json::serialize(into);
}

std::string encode(const answer& message) {
    auto into = encode_body(message.body);
    into["id"] = message.id;
    return json::serialize(into);
}

result<request> decode_request(std::string_view text) {
    auto value = parse(text);
    if (!value) {
        return value.error();
    }
    field_reader from(*value);
    request message;
    message.id = from.number("id", any_number);
    message.deadline = std::chrono::milliseconds(from.number("deadline_ms", 24ULL * 3600 * 1000));
    auto body = get_request(from.text("kind"), from);
    if (!body || from.failed()) {
        return broken("not a request");
    }
    message.body = std::move(*body);
    return message;
}

result<answer> decode_answer(std::string_view text) {
    auto value = parse(text);
    if (!value) {
        return value.error();
    }
    field_reader from(*value);
    answer message;
    message.id = from.number("id", any_number);
    auto body = get_answer(from.text("kind"), from);
    if (!body || from.failed()) {
        return broken("not an answer");
    }
    message.body = std::move(*body);
    return message;
}

} // namespace sandboxd::launcher
