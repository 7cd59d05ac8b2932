#include "core/deadline.hpp"
#include "docker/credential_helper.hpp"
#include "docker/engine_client.hpp"
#include "docker/image_ref.hpp"
#include "docker/json_stream.hpp"
#include "docker/line_cutter.hpp"
#include "docker/tar.hpp"

#include <boost/json/serialize.hpp>

namespace sandboxd::docker {

namespace {

/// A message of the pull stream: progress, or the error that makes the 200 a failure.
std::optional<std::string> error_in(const json::object& message) {
    if (auto words = text_at(message, "errorDetail", "message")) {
        return words;
    }
    return text_at(message, "error");
}

pull_progress progress_in(const json::object& message) {
    pull_progress found;
    found.layer = text_at(message, "id").value_or("");
    found.status = text_at(message, "status").value_or("");
    found.current = count(at(message, "progressDetail", "current"));
    found.total = count(at(message, "progressDetail", "total"));
    return found;
}

volume_details volume_of(const json::object& from) {
    volume_details found;
    found.name = text_at(from, "Name").value_or("");
    found.driver = text_at(from, "Driver").value_or("");
    found.mountpoint = text_at(from, "Mountpoint").value_or("");
    found.labels = pairs(at(from, "Labels"));
    return found;
}

} // namespace

task<answer<image_details>> engine_client::inspect_image(std::string reference, milliseconds limit) {
    const auto told = co_await call_object(
        get("inspect the image", "/images/" + image_path(reference) + "/json"), limit, {200});
    if (!told) {
        co_return told.error();
    }
    image_details found;
    found.id = text_at(*told, "Id").value_or("");
    found.os = text_at(*told, "Os").value_or("");
    found.architecture = text_at(*told, "Architecture").value_or("");
    found.user = text_at(*told, "Config", "User").value_or("");
    found.working_dir = text_at(*told, "Config", "WorkingDir").value_or("");
    found.entrypoint = texts(at(*told, "Config", "Entrypoint"));
    found.command = texts(at(*told, "Config", "Cmd"));
    found.environment = texts(at(*told, "Config", "Env"));
    found.tags = texts(at(*told, "RepoTags"));
    found.digests = texts(at(*told, "RepoDigests"));
    found.size = count(at(*told, "Size"));
    found.labels = pairs(at(*told, "Config", "Labels"));
    co_return found;
}

task<answer<void>> engine_client::stream(request what, std::string registry,
                                         std::function<void(const json::object&)> told, milliseconds limit) {
    if (!registry.empty()) {
        auto header = co_await registry_header(options_.config_folder, registry, options_.files);
        if (!header) {
            engine_error failed;
            static_cast<error&>(failed) = header.error();
            co_return failed;
        }
        if (!header->empty()) {
            what.fields.emplace_back("X-Registry-Auth", *header);
        }
    }
    const std::string name = what.what;
    auto opened = co_await http_->open(std::move(what), limit);
    if (!opened) {
        co_return opened.error();
    }
    std::string failure;
    const auto each = [&](json::object message) {
        if (auto words = error_in(message)) {
            failure = std::move(*words);
        } else {
            told(message);
        }
    };
    json_stream reader;
    std::vector<char> part(16384);
    while (true) {
        auto got = co_await opened->read_some(part);
        auto fed = !got ? answer<void>(got.error())
                        : (*got == 0 ? reader.finish() : reader.feed({part.data(), *got}, each));
        if (!failure.empty()) {
            co_return from_stream(name, failure);
        }
        if (!fed || *got == 0) {
            co_return fed;
        }
    }
}

task<answer<void>> engine_client::stream_now(request what, std::string registry,
                                             std::function<void(const json::object&)> told,
                                             milliseconds limit) {
    const std::string name = what.what;
    auto work = stream(std::move(what), std::move(registry), std::move(told), limit);
    auto done = co_await core::with_timeout(std::move(work), limit);
    if (!done) {
        co_return no_answer(errc::timeout,
                            "cannot " + name + ": not done within " + std::to_string(limit.count()) + " ms");
    }
    co_return std::move(*done);
}

task<answer<void>> engine_client::pull(std::string reference, std::string platform,
                                       std::function<void(const pull_progress&)> progress,
                                       milliseconds limit) {
    const auto parsed = parse_image(reference);
    if (!parsed) {
        co_return parsed.error();
    }
    auto to = target("/images/create").with("fromImage", parsed->name).with("tag", parsed->tag);
    if (!platform.empty()) {
        to = std::move(to).with("platform", platform);
    }
    auto told = [progress = std::move(progress)](const json::object& message) {
        if (progress) {
            progress(progress_in(message));
        }
    };
    auto work = stream_now(post("pull " + reference, to.text()), parsed->registry, std::move(told), limit);
    co_return co_await on_strand(std::move(work));
}

task<answer<void>> engine_client::build(build_request what, std::function<void(const std::string&)> line,
                                        milliseconds limit) {
    json::object arguments;
    for (const auto& [name, value] : what.arguments) {
        arguments[name] = value;
    }
    request asked = post("build " + what.tag, target("/build")
                                                  .with("t", what.tag)
                                                  .with("version", "1")
                                                  .flag("rm", true)
                                                  .flag("forcerm", true)
                                                  .with("buildargs", json::serialize(arguments))
                                                  .text());
    asked.body = make_tar({{"Dockerfile", std::move(what.dockerfile)}});
    asked.content_type = "application/x-tar";
    const auto lines = std::make_shared<line_cutter>(std::move(line));
    auto told = [lines](const json::object& message) {
        if (const auto text = text_at(message, "stream")) {
            lines->add(*text);
        }
    };
    auto work = stream_now(std::move(asked), "", std::move(told), limit);
    auto done = co_await on_strand(std::move(work));
    lines->end();
    co_return done;
}

task<answer<outcome>> engine_client::remove_image(std::string reference, bool force, milliseconds limit) {
    auto to = target("/images/" + image_path(reference)).flag("force", force);
    return call_outcome(erase("remove the image", to.text()), limit, true);
}

task<answer<std::vector<image_summary>>> engine_client::list_images(filter_list filters, milliseconds limit) {
    auto to = target("/images/json").with("filters", filters_json(filters));
    const auto told = co_await call_array(get("list images", to.text()), limit);
    if (!told) {
        co_return told.error();
    }
    std::vector<image_summary> all;
    for (const auto& one : *told) {
        if (const auto* object = one.if_object()) {
            image_summary found;
            found.id = text_at(*object, "Id").value_or("");
            found.tags = texts(at(*object, "RepoTags"));
            found.size = count(at(*object, "Size"));
            all.push_back(std::move(found));
        }
    }
    co_return all;
}

task<answer<volume_details>> engine_client::create_volume(std::string name, text_pairs labels,
                                                          milliseconds limit) {
    json::object body;
    body["Name"] = name;
    json::object marks;
    for (const auto& [key, value] : labels) {
        marks[key] = value;
    }
    body["Labels"] = std::move(marks);
    const auto told = co_await call_object(
        post("create the volume", "/volumes/create", json::serialize(body)), limit, {201});
    if (!told) {
        co_return told.error();
    }
    co_return volume_of(*told);
}

task<answer<volume_details>> engine_client::inspect_volume(std::string name, milliseconds limit) {
    const auto told =
        co_await call_object(get("inspect the volume", "/volumes/" + segment(name)), limit, {200});
    if (!told) {
        co_return told.error();
    }
    co_return volume_of(*told);
}

task<answer<outcome>> engine_client::remove_volume(std::string name, milliseconds limit) {
    return call_outcome(erase("remove the volume", "/volumes/" + segment(name)), limit, true);
}

} // namespace sandboxd::docker
