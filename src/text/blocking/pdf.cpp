#include "text/blocking/pdf.hpp"

#include "core/utf8.hpp"
#include "text/pdf_pages.hpp"

#include <unistd.h>

namespace sandboxd::text::blocking {

namespace {

/// pdftotext's own code for wrong arguments: here only the range of pages can be wrong, when there is none.
constexpr int no_such_pages = 99;
constexpr int not_permitted = 3;

error failed(std::string cause) {
    return {errc::invalid, std::move(cause)};
}

/// The first complaint on one line.
std::string first_line(std::string_view complaints) {
    constexpr std::size_t shown = 200;
    return core::to_utf8(std::string(complaints.substr(0, complaints.find('\n')).substr(0, shown)));
}

error cause_of(const confined_end& end, const allowance& most) {
    if (end.timed_out) {
        return failed("the extraction took longer than " + std::to_string(most.time.count() / 1000) + " s");
    }
    if (end.output_limited) {
        return failed("the PDF holds more than " + std::to_string(most.output) + " bytes of text");
    }
    if (end.exit_code == no_such_pages) {
        return failed("the PDF contains no pages");
    }
    if (end.complaints.find("Incorrect password") != std::string::npos || end.exit_code == not_permitted) {
        return failed("the PDF is encrypted");
    }
    if (!end.exit_code) {
        return failed("pdftotext was ended by a signal or a limit");
    }
    const auto said = first_line(end.complaints);
    return failed(said.empty() ? "pdftotext ended with code " + std::to_string(*end.exit_code) : said);
}

} // namespace

result<std::string> pdf_text_by(const std::string& program, std::string_view bytes, const allowance& most) {
    if (::access(program.c_str(), X_OK) != 0) {
        return failed("pdftotext is not installed on the host of the service (Debian has it in the package "
                      "poppler-utils)");
    }
    const std::vector<std::string> argv{program, "-q",   "-htmlmeta", "-enc", "UTF-8",
                                        "-eol",  "unix", "-",         "-"};
    auto end = run_confined(argv, bytes, most);
    if (!end) {
        return failed(end.error().message);
    }
    if (end->timed_out || end->output_limited || end->exit_code != 0) {
        return cause_of(*end, most);
    }
    return pdf_pages(core::to_utf8(std::move(end->out)));
}

result<std::string> pdf_text(std::string_view bytes, const allowance& most) {
    for (const char* place : {"/usr/bin/pdftotext", "/usr/local/bin/pdftotext"}) {
        if (::access(place, X_OK) == 0) {
            return pdf_text_by(place, bytes, most);
        }
    }
    return pdf_text_by("/usr/bin/pdftotext", bytes, most);
}

} // namespace sandboxd::text::blocking
