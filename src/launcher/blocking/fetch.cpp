#include "launcher/blocking/files.hpp"
#include "launcher/blocking/image_names.hpp"
#include "launcher/blocking/images.hpp"
#include "launcher/blocking/scratch.hpp"
#include "launcher/blocking/unpack.hpp"

#include <cerrno>
#include <fcntl.h>
#include <functional>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sandboxd::launcher::blocking {

namespace {

constexpr std::size_t max_certificate = 1024 * 1024;
constexpr std::size_t max_certificates = 64;
constexpr const char* policy = "/etc/containers/policy.json";

std::string key_of(const std::string& digest) {
    return "sha256-" + digest.substr(digest.find(':') + 1);
}

/// In memory only: a secret is never on the disk, whatever becomes of this process.
result<core::unique_fd> secret_file(const std::string& text) {
    core::unique_fd file(::memfd_create("auth", MFD_CLOEXEC));
    if (!file || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
        return os_error("credentials", errno);
    }
    return file;
}

/// The directory that holds the certificates for a registry: the first that is there.
std::optional<std::string> certificates_of(const std::string& host) {
    for (const char* top : {"/etc/containers/certs.d/", "/etc/docker/certs.d/"}) {
        auto path = top + host;
        if (::access(path.c_str(), F_OK) == 0) {
            return path;
        }
    }
    return std::nullopt;
}

/// Client keys are readable for root only, which the program that needs them is not: it gets copies.
result<void> copy_certificates(const std::string& from, const std::string& to) {
    auto source = open_directory(from);
    auto names = source ? list_directory(source->get()) : result<std::vector<std::string>>(source.error());
    if (!names) {
        return names.error();
    }
    if (::mkdir(to.c_str(), 0700) != 0) {
        return os_error(to, errno);
    }
    if (names->size() > max_certificates) {
        return error{errc::start_failed, "too many files in " + from};
    }
    for (const auto& name : *names) {
        const auto end = name.rfind('.');
        const auto kind = end == std::string::npos ? std::string() : name.substr(end);
        if (kind != ".crt" && kind != ".cert" && kind != ".key") {
            continue;
        }
        auto text = read_file_at(source->get(), name, max_certificate);
        auto done = text ? write_file_at(AT_FDCWD, to + "/" + name, *text, 0600) : result<void>(text.error());
        if (!done) {
            return error{errc::start_failed, from + "/" + done.error().message};
        }
    }
    return {};
}

/// One image on its way from a registry.
class fetcher {
public:
    fetcher(const worker_context& context, const image_reference& from, const import_image& request,
            deadline until)
        : context_(context), from_(from), request_(request), until_(until) {}

    result<std::string> run() {
        const auto images = context_.options.state_dir + "/images";
        scratch work(images);
        if (auto done = work.make(); !done) {
            return failed(done.error());
        }
        image_tools tools(context_, work.path());
        auto done = prepare(tools);
        if (done) {
            done = resolve(tools);
        }
        if (!done) {
            return failed(done.error());
        }
        const auto key = key_of(digest_);
        const auto target = images + "/" + key;
        const auto lock_path = images + "/.lock-" + key;
        auto lock = lock_file(lock_path, until_, "it is still being fetched");
        if (!lock) {
            return failed(lock.error());
        }
        auto kept = ::access(target.c_str(), F_OK) == 0 ? result<void>() : bring(tools, work.path(), target);
        if (!kept) {
            return failed(kept.error());
        }
        ::unlink(lock_path.c_str());
        return key;
    }

private:
    error failed(const error& why) const {
        auto text = "the image '" + request_.reference + "' could not be fetched: " + why.message;
        const bool refused = why.message.find("unauthorized") != std::string::npos ||
                             why.message.find("authentication required") != std::string::npos ||
                             why.message.find("denied") != std::string::npos;
        if (refused && request_.auth.empty()) {
            text += " (there are no credentials for " + from_.host() +
                    ": log in as the service's user with 'docker login' or 'skopeo login')";
        } else if (refused) {
            text += " (with the credentials that were found for " + from_.host() + ")";
        }
        return {errc::start_failed, std::move(text)};
    }

    result<void> prepare(image_tools& tools) {
        if (!request_.auth.empty()) {
            auto secret = secret_file(request_.auth);
            if (!secret) {
                return secret.error();
            }
            secret_ = std::move(*secret);
        }
        if (const auto from = certificates_of(from_.host())) {
            certificates_ = true;
            if (auto done = copy_certificates(*from, tools.directory() + "/certs"); !done) {
                return done;
            }
        }
        return tools.confine();
    }

    /// With what every call to the registry needs; `side` is "" or "src-".
    tool_call call(std::vector<std::string> argv, const std::string& side) const {
        tool_call made;
        made.network = true;
        made.argv = std::move(argv);
        if (secret_) {
            made.passed = {secret_.get()};
            made.argv.insert(made.argv.end(), {"--authfile", "/proc/self/fd/3"});
        } else {
            made.argv.push_back("--" + side + "no-creds");
        }
        if (certificates_) {
            made.argv.insert(made.argv.end(), {"--" + side + "cert-dir", "certs"});
        } else if (is_loopback(from_.host())) {
            made.argv.push_back("--" + side + "tls-verify=false");
        }
        return made;
    }

    /// What the tag means now.
    result<void> resolve(const image_tools& tools) {
        if (!from_.digest.empty()) {
            digest_ = from_.digest;
            return {};
        }
        context_.progress("looking for image " + from_.full());
        auto asked = call({"skopeo", "inspect", "--no-tags", "--format", "{{.Digest}}"}, "");
        asked.argv.push_back("docker://" + from_.full());
        asked.line = [this](std::string_view line) {
            if (is_digest(line)) {
                digest_ = line;
            }
        };
        if (auto done = tools.run(std::move(asked), until_); !done) {
            return done;
        }
        return digest_.empty() ? error{errc::start_failed, "the registry told no digest"} : result<void>();
    }

    result<void> bring(const image_tools& tools, const std::string& work, const std::string& target) {
        context_.progress("fetching image " + from_.full() + " (" + digest_ + ")");
        // A layout holds no signatures; what a policy asks for is read all the same.
        auto copy = call({"skopeo", "copy", "--remove-signatures"}, "src-");
        if (::access(policy, F_OK) != 0) {
            copy.argv.emplace_back("--insecure-policy"); // the host says nothing about whose images it takes
        }
        copy.argv.push_back("docker://" + from_.path + "@" + digest_);
        copy.argv.emplace_back("oci:saved:image");
        if (auto done = tools.run(std::move(copy), until_); !done) {
            return done;
        }
        auto manifest = find_manifest(work + "/saved", "image");
        if (!manifest) {
            return manifest.error();
        }
        return unpack(context_, tools, {work + "/saved", "../saved", *manifest, target}, until_);
    }

    const worker_context& context_;
    const image_reference& from_;
    const import_image& request_;
    deadline until_;
    core::unique_fd secret_;
    bool certificates_ = false;
    std::string digest_;
};

/// What is here already under this name (as it was given: what was built here; in full: what was fetched), or
/// by this digest.
std::optional<std::string> find_fetched(const worker_context& context, const image_reference& reference,
                                        const std::string& name) {
    const auto& state_dir = context.options.state_dir;
    for (const auto& one : {name, reference.full()}) {
        const auto key = find_image_name(state_dir, one);
        if (key && find_image(context, *key)) {
            return key;
        }
    }
    if (!reference.digest.empty() && find_image(context, key_of(reference.digest))) {
        return key_of(reference.digest);
    }
    return std::nullopt;
}

} // namespace

result<std::string> fetch_image(const worker_context& context, const image_reference& reference,
                                const import_image& request, deadline until) {
    const auto& state_dir = context.options.state_dir;
    if (const auto key = find_fetched(context, reference, request.reference)) {
        return *key;
    }
    if (!request.fetch) {
        return error{errc::not_found, "the image '" + request.reference + "' is not on this host"};
    }
    sweep_imports(state_dir);
    // One of those who ask for the same name asks the registry; the file is named by a hash, so now and then
    // another name waits with them.
    const auto lock_path =
        state_dir + "/images/.lock-name-" + std::to_string(std::hash<std::string>()(reference.full()));
    auto turn = lock_file(lock_path, until, "the image is still being fetched");
    auto kept = turn ? lock_images(state_dir, until, true) : result<core::unique_fd>(turn.error());
    if (!kept) {
        return error{errc::start_failed, kept.error().message};
    }
    auto key = find_fetched(context, reference, request.reference);
    if (!key) {
        auto fetched = fetcher(context, reference, request, until).run();
        if (!fetched) {
            return fetched;
        }
        key = *fetched;
    }
    if (auto done = put_image_name(state_dir, reference.full(), *key, until); !done) {
        return error{errc::start_failed, done.error().message};
    }
    ::unlink(lock_path.c_str());
    return *key;
}

} // namespace sandboxd::launcher::blocking
