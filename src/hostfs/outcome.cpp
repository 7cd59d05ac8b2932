#include "hostfs/outcome.hpp"

#include <cerrno>
#include <stdexcept>

namespace sandboxd::hostfs {

namespace {

std::string about(std::string_view what, std::string_view path) {
    return std::string(what) + ": '" + std::string(path) + "'";
}

} // namespace

std::string_view exception_of(refusal why) noexcept {
    switch (why) {
    case refusal::not_found:
        return "FileNotFoundError";
    case refusal::is_directory:
        return "IsADirectoryError";
    case refusal::not_a_directory:
        return "NotADirectoryError";
    case refusal::exists:
        return "FileExistsError";
    case refusal::bad_value:
        return "ValueError";
    case refusal::ask_sandbox:
    case refusal::timeout:
        return "";
    }
    return "";
}

void throw_exception_from_error(const native_failure& e, const boost::source_location& where) {
    throw std::runtime_error(e.message + " (" + where.to_string() + ")");
}

native_failure native_failure_of(boost::system::error_code failed, std::string_view path) {
    switch (failed.value()) {
    case ENOENT:
        return {refusal::not_found, about("No such file or directory", path)};
    case EISDIR:
        return {refusal::is_directory, about("Is a directory", path)};
    case ENOTDIR:
        return {refusal::not_a_directory, about("Not a directory", path)};
    case EEXIST:
        return {refusal::exists, about("File exists", path)};
    case ETIMEDOUT:
        return {refusal::timeout, "The file operation took too long"};
    case ELOOP:
    case EMLINK:
        return {refusal::ask_sandbox, about("A link is on the way", path)};
    case EACCES:
    case EPERM:
        return {refusal::ask_sandbox, about("Not permitted to the service", path)};
    case EFBIG:
        return {refusal::ask_sandbox, about("Over the limit of a native read", path)};
    case EXDEV:
        return {refusal::ask_sandbox, about("On another file system", path)};
    case ENAMETOOLONG:
        return {refusal::ask_sandbox, about("The name is too long for the service", path)};
    case EILSEQ:
        return {refusal::ask_sandbox, about("A name there is not UTF-8", path)};
    case EOPNOTSUPP:
        return {refusal::ask_sandbox, about("Neither a file nor a directory", path)};
    case E2BIG:
        return {refusal::ask_sandbox, about("More entries than the service lists", path)};
    default:
        return {refusal::ask_sandbox, about("The service can't do it (" + failed.message() + ")", path),
                true};
    }
}

error archive_error_of(boost::system::error_code failed, std::string_view path, std::string_view missing) {
    path = path.empty() ? "." : path; // the workspace itself
    switch (failed.value()) {
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
        return {errc::not_found, about("Not " + std::string(missing), path)};
    case ELOOP:
    case EMLINK:
        return {errc::invalid, about("A link, which may lead outside the workspace", path)};
    case EXDEV:
        return {errc::invalid, about("On another file system, outside the workspace", path)};
    case ENAMETOOLONG:
        return {errc::invalid, about("The name is too long", path)};
    case EOPNOTSUPP:
        return {errc::invalid, about("A FIFO, socket or device can't be read", path)};
    case EACCES:
    case EPERM:
        return {errc::denied, about("Not permitted to the service", path)};
    case ETIMEDOUT:
        return {errc::timeout, "Reading the workspace took too long"};
    default:
        return {errc::io, about("The workspace can't be read (" + failed.message() + ")", path)};
    }
}

} // namespace sandboxd::hostfs
