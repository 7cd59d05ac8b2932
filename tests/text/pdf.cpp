#include "text/blocking/pdf.hpp"
#include "text/blocking/walls.hpp"
#include "text/extract.hpp"
#include "text/pdf_pages.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdio>
#include <unistd.h>

// Contract 3.3.3 b, and what a confined program may do.

namespace sandboxd::text {

namespace {

using namespace std::chrono_literals;

/// A PDF with one line of text per entry of each page.
std::string make_pdf(const std::vector<std::vector<std::string>>& pages, const std::string& info = {}) {
    std::vector<std::string> objects{"<< /Type /Catalog /Pages 2 0 R >>", "",
                                     "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"};
    std::string kids;
    for (const auto& lines : pages) {
        const auto page = objects.size() + 1;
        kids += std::to_string(page) + " 0 R ";
        objects.push_back(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> "
            ">> /Contents " +
            std::to_string(page + 1) + " 0 R >>");
        std::string body = "BT /F1 12 Tf 72 720 Td 14 TL\n";
        for (const auto& line : lines) {
            body += "(" + line + ") Tj T*\n";
        }
        body += "ET";
        objects.push_back("<< /Length " + std::to_string(body.size()) + " >>\nstream\n" + body +
                          "\nendstream");
    }
    objects[1] = "<< /Type /Pages /Kids [" + kids + "] /Count " + std::to_string(pages.size()) + " >>";
    if (!info.empty()) {
        objects.push_back("<< " + info + " >>");
    }
    std::string out = "%PDF-1.4\n";
    std::string table;
    for (std::size_t i = 0; i < objects.size(); ++i) {
        char entry[32];
        std::snprintf(entry, sizeof entry, "%010zu 00000 n \n", out.size());
        table += entry;
        out += std::to_string(i + 1) + " 0 obj\n" + objects[i] + "\nendobj\n";
    }
    const auto start = out.size();
    const auto size = std::to_string(objects.size() + 1);
    out += "xref\n0 " + size + "\n0000000000 65535 f \n" + table + "trailer << /Size " + size +
           " /Root 1 0 R" + (info.empty() ? "" : " /Info " + std::to_string(objects.size()) + " 0 R") +
           " >>\nstartxref\n" + std::to_string(start) + "\n%%EOF\n";
    return out;
}

blocking::confined_end confined(const std::vector<std::string>& argv, std::string_view input = {},
                                const blocking::allowance& most = {}) {
    auto end = blocking::run_confined(argv, input, most);
    BOOST_REQUIRE_MESSAGE(end.has_value(), (end ? "" : end.error().message));
    return std::move(*end);
}

blocking::confined_end shell(const std::string& script, const blocking::allowance& most = {}) {
    return confined({"/bin/sh", "-c", script}, "the input", most);
}

} // namespace

BOOST_AUTO_TEST_SUITE(pdf)

BOOST_AUTO_TEST_CASE(pages_and_metadata) {
    const auto text = blocking::extract(
        "a.pdf", make_pdf({{"Hello  world", "exam-", "ple line \\(two\\) & <b>"}, {}, {"Third page"}},
                          "/Title (T & <x> \"q\") /Author (Ann) /Subject (S) /Producer (P)"));
    BOOST_TEST(text.value() ==
               "Title: T & <x> \"q\"\nAuthor: Ann\nSubject: S\n\n--- Page 1 ---\nHello world\nexample "
               "line (two) & <b>\n\n--- Page 3 ---\nThird page");
    BOOST_TEST(blocking::extract("b.PDF", make_pdf({{"one"}})).value() == "--- Page 1 ---\none");
    BOOST_TEST(blocking::extract("c.pdf", make_pdf({{"x"}}, "/Author (B)")).value() ==
               "Author: B\n\n--- Page 1 ---\nx");
}

BOOST_AUTO_TEST_CASE(failures_name_their_cause) {
    const auto cause = [](const std::string& bytes) {
        return blocking::extract("x.pdf", bytes).error().message;
    };
    BOOST_TEST(cause(make_pdf({})) == "Failed to parse PDF: the PDF contains no pages");
    BOOST_TEST(cause(make_pdf({{}, {}})) == "Failed to parse PDF: the PDF has no extractable text");
    BOOST_TEST(cause("%PDF-1.4 garbage").starts_with("Failed to parse PDF: "));
    BOOST_TEST(cause("no PDF at all").starts_with("Failed to parse PDF: "));
    const auto absent = blocking::pdf_text_by("/nowhere/pdftotext", make_pdf({{"x"}}), {});
    BOOST_TEST(absent.error().message.find("package poppler-utils") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(cleaning) {
    BOOST_TEST(clean_pdf_text("a  b \n  d\n\n\n\ne-\nf g -\nh j exam-  \n  ple\n \n \nz") ==
               "a b\nd\n\nef g -\nh j example\n\nz");
    BOOST_TEST(clean_pdf_text("x-\n\ny 1-\n2 a--\nb é-\nè _-\n_ a-\nB “-\nq") ==
               "x-\n\ny 12 a--\nb éè __ aB “-\nq");
    BOOST_TEST(clean_pdf_text("a\fb") == "a\nb");
    BOOST_TEST(clean_pdf_text("-\nb") == "-\nb");
    BOOST_TEST(clean_pdf_text("") == "");
}

BOOST_AUTO_TEST_CASE(output_that_is_not_pdftotexts_is_refused) {
    BOOST_TEST(!pdf_pages("").has_value());
    BOOST_TEST(!pdf_pages("<html>\n<pre>\ntext").has_value());
    BOOST_TEST(pdf_pages("x\n<pre>\n</pre>\n</body>\n</html>\n").error().message ==
               "the PDF has no extractable text");
}

BOOST_AUTO_TEST_CASE(a_confined_program_reads_its_input_and_prints) {
    const auto end = confined({"/bin/cat"}, "bytes\0more");
    BOOST_TEST(end.out == "bytes");
    BOOST_TEST((end.exit_code == 0));
    BOOST_TEST((shell("read a; echo $a; exit 7").exit_code == 7));
    BOOST_TEST(shell("read a; echo $a").out == "the input\n");
    BOOST_TEST(shell("echo no >&2").complaints == "no\n");
}

BOOST_AUTO_TEST_CASE(its_walls) {
    // No program can be started from it (fork), no file written, no other identity had.
    BOOST_TEST((shell("/bin/true; echo reached").out.empty()));
    const std::string place = "/tmp/sandboxd-test-confined-" + std::to_string(::getpid());
    BOOST_TEST((shell("echo x > " + place).exit_code != 0));
    BOOST_TEST((::access(place.c_str(), F_OK) != 0));
    BOOST_TEST((confined({"/bin/dd", "of=/dev/shm/x"}).exit_code != 0));
    BOOST_TEST(confined({"/usr/bin/id", "-u"}).out ==
               (::getuid() == 0 ? "65534\n" : std::to_string(::getuid()) + "\n"));
    if (blocking::make_landlock_rules()) { // a kernel with Landlock
        BOOST_TEST(confined({"/bin/cat", "/proc/self/status"}).out.empty());
        BOOST_TEST(confined({"/bin/cat", "/etc/passwd"}).out.empty());
    }
}

BOOST_AUTO_TEST_CASE(its_limits) {
    blocking::allowance most;
    most.time = 300ms;
    const auto late = shell("while :; do :; done", most);
    BOOST_TEST(late.timed_out);
    BOOST_TEST(!late.exit_code.has_value());
    most.time = 60s;
    most.output = 100'000;
    const auto chatty = shell("while :; do echo 0123456789; done", most);
    BOOST_TEST(chatty.output_limited);
    BOOST_TEST(chatty.out.size() == 100'000U);
    most.memory = 64 * 1024 * 1024;
    BOOST_TEST((confined({"/usr/bin/tail", "-c", "100000000", "/dev/zero"}, {}, most).exit_code != 0));
    BOOST_TEST(blocking::run_confined({"/nowhere/program"}, {}, {}).has_error());
}

BOOST_AUTO_TEST_CASE(its_end_leaves_nothing) {
    // A program that closes its streams and goes on is ended all the same, by its time.
    blocking::allowance most;
    most.time = 300ms;
    const auto end = shell("exec >&- 2>&-; while :; do :; done", most);
    BOOST_TEST(end.out.empty());
    BOOST_TEST(!end.exit_code.has_value());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace sandboxd::text
