#include "core/deadline.hpp"
#include "docker/engine_client.hpp"
#include "docker/json_stream.hpp"

namespace sandboxd::docker {

namespace {

std::string container(const std::string& id, const char* rest) {
    return "/containers/" + segment(id) + rest;
}

container_summary summary_of(const json::object& from) {
    container_summary found;
    found.id = text_at(from, "Id").value_or("");
    const auto names = texts(at(from, "Names"));
    if (!names.empty()) {
        found.name = names.front().front() == '/' ? names.front().substr(1) : names.front();
    }
    found.image = text_at(from, "Image").value_or("");
    found.state = text_at(from, "State").value_or("");
    found.labels = pairs(at(from, "Labels"));
    return found;
}

} // namespace

task<answer<created_container>> engine_client::create(container_spec spec, milliseconds limit) {
    target to("/containers/create");
    if (!spec.name.empty()) {
        to = std::move(to).with("name", spec.name);
    }
    if (!spec.platform.empty()) {
        to = std::move(to).with("platform", spec.platform);
    }
    const auto told =
        co_await call_object(post("create the container", to.text(), create_body(spec)), limit, {201});
    if (!told) {
        co_return told.error();
    }
    created_container made;
    made.id = text_at(*told, "Id").value_or("");
    made.warnings = texts(at(*told, "Warnings"));
    if (made.id.empty()) {
        co_return no_answer(errc::protocol, "cannot create the container: the daemon told no id", true);
    }
    co_return made;
}

task<answer<outcome>> engine_client::start(std::string id, milliseconds limit) {
    return call_outcome(post("start the container", container(id, "/start")), limit, false);
}

task<answer<outcome>> engine_client::stop(std::string id, std::chrono::seconds grace, milliseconds limit) {
    auto to = target(container(id, "/stop")).with("t", std::to_string(grace.count()));
    return call_outcome(post("stop the container", to.text()), limit + grace, true);
}

task<answer<outcome>> engine_client::kill(std::string id, std::string signal, milliseconds limit) {
    auto to = target(container(id, "/kill")).with("signal", signal);
    auto got = co_await call_outcome(post("kill the container", to.text()), limit, true);
    if (!got && got.error().status == 409) {
        co_return outcome::already;
    }
    co_return got;
}

task<answer<outcome>> engine_client::unpause(std::string id, milliseconds limit) {
    return call_outcome(post("unpause the container", container(id, "/unpause")), limit, false);
}

task<answer<void>> engine_client::rename(std::string id, std::string name, milliseconds limit) {
    auto to = target(container(id, "/rename")).with("name", name);
    const auto got = co_await call_outcome(post("rename the container", to.text()), limit, false);
    if (!got) {
        co_return got.error();
    }
    co_return answer<void>();
}

task<answer<outcome>> engine_client::remove(std::string id, bool force, milliseconds limit) {
    // v: anonymous volumes that the image declares go with it.
    auto to = target(container(id, "")).flag("v", true).flag("force", force);
    auto got = co_await call_outcome(erase("remove the container", to.text()), limit, true);
    if (!got && got.error().status == 409 &&
        got.error().message.find("already in progress") != std::string::npos) {
        co_return outcome::in_progress;
    }
    co_return got;
}

task<answer<container_details>> engine_client::inspect(std::string id, milliseconds limit) {
    const auto told =
        co_await call_object(get("inspect the container", container(id, "/json")), limit, {200});
    if (!told) {
        co_return told.error();
    }
    co_return read_container(*told);
}

task<answer<std::vector<container_summary>>> engine_client::list(filter_list filters, milliseconds limit) {
    auto to = target("/containers/json").flag("all", true).with("filters", filters_json(filters));
    const auto told = co_await call_array(get("list containers", to.text()), limit);
    if (!told) {
        co_return told.error();
    }
    std::vector<container_summary> all;
    for (const auto& one : *told) {
        if (const auto* object = one.if_object()) {
            all.push_back(summary_of(*object));
        }
    }
    co_return all;
}

task<answer<wait_result>> engine_client::wait_now(request what, milliseconds limit) {
    auto opened = co_await http_->open(std::move(what), limit);
    if (!opened) {
        co_return opened.error();
    }
    std::optional<json::object> told;
    json_stream reader;
    std::vector<char> part(4096);
    while (!told) {
        auto got = co_await opened->read_some(part);
        if (!got) {
            co_return got.error();
        }
        if (*got == 0) {
            co_return no_answer(errc::protocol, "the daemon ended a wait without an answer");
        }
        auto fed = reader.feed({part.data(), *got}, [&](json::object one) { told = std::move(one); });
        if (!fed) {
            co_return fed.error();
        }
    }
    wait_result found;
    const auto code = integer(at(*told, "StatusCode"));
    if (!code) {
        co_return no_answer(errc::protocol, "the daemon ended a wait without an exit code");
    }
    found.exit_code = *code;
    found.error = text_at(*told, "Error", "Message").value_or("");
    co_return found;
}

task<answer<wait_result>> engine_client::wait(std::string id, std::string condition, milliseconds limit) {
    auto to = target(container(id, "/wait")).with("condition", condition);
    auto work = wait_now(post("wait for the container", to.text()), limit);
    auto done = co_await on_strand(core::with_timeout(std::move(work), limit));
    if (!done) {
        co_return no_answer(errc::timeout,
                            "the container did not end within " + std::to_string(limit.count()) + " ms");
    }
    co_return std::move(*done);
}

task<answer<stats_sample>> engine_client::stats(std::string id, milliseconds limit) {
    auto to = target(container(id, "/stats")).flag("stream", false).flag("one-shot", true);
    const auto told = co_await call_object(get("sample the container", to.text()), limit, {200});
    if (!told) {
        co_return told.error();
    }
    co_return read_stats(*told);
}

task<answer<void>> engine_client::put_archive(std::string id, std::string path, std::string tar,
                                              milliseconds limit) {
    request what =
        get("copy into the container",
            target(container(id, "/archive")).with("path", path).with("noOverwriteDirNonDir", "true").text());
    what.method = "PUT";
    what.body = std::move(tar);
    what.content_type = "application/x-tar";
    const auto got = co_await call(std::move(what), limit, {200});
    if (!got) {
        co_return got.error();
    }
    co_return answer<void>();
}

task<answer<std::size_t>> remove_matching(std::shared_ptr<engine> from, filter_list filters,
                                          milliseconds limit) {
    const auto found = co_await from->list(std::move(filters), limit);
    if (!found) {
        co_return found.error();
    }
    std::optional<engine_error> failed;
    for (const auto& one : *found) {
        auto removed = co_await from->remove(one.id, true, limit);
        if (!removed) {
            failed = removed.error(); // the others are removed all the same
        }
    }
    if (failed) {
        co_return *failed;
    }
    co_return found->size();
}

} // namespace sandboxd::docker
