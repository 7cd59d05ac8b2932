#pragma once

#include "text/blocking/confined.hpp"

#include <string>
#include <string_view>

namespace sandboxd::text::blocking {

/// The text of a PDF, as contract 3.3.3 b has it, by `pdftotext` in a process of its own (confined.hpp): a
/// PDF is hostile input. errc::invalid with a cause for a person ("the PDF has no pages", or that the program
/// is not installed and which package brings it).
[[nodiscard]] result<std::string> pdf_text(std::string_view bytes, const allowance& most = {});

/// The same with a program of the caller's choice, an absolute path; tests name one that is not there.
[[nodiscard]] result<std::string> pdf_text_by(const std::string& program, std::string_view bytes,
                                              const allowance& most);

} // namespace sandboxd::text::blocking
