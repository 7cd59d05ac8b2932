#include "text/extract.hpp"

#include "text/blocking/pdf.hpp"
#include "text/decode.hpp"
#include "text/file_kind.hpp"

namespace sandboxd::text {

bool is_quick(std::string_view path, std::size_t bytes) {
    return bytes <= quick_bytes && kind_of(path) != file_kind::pdf;
}

result<std::string> quick_extract(std::string_view path, std::string_view bytes) {
    if (kind_of(path) == file_kind::text) {
        return decode_text(bytes);
    }
    auto text = decode_unknown(bytes);
    if (!text) {
        return error{errc::invalid, "[Binary File]"};
    }
    return std::move(*text);
}

namespace blocking {

result<std::string> extract(std::string_view path, std::string_view bytes) {
    if (kind_of(path) != file_kind::pdf) {
        return quick_extract(path, bytes);
    }
    auto text = pdf_text(bytes);
    if (!text) {
        return error{errc::invalid, "Failed to parse PDF: " + text.error().message};
    }
    return text;
}

} // namespace blocking

} // namespace sandboxd::text
