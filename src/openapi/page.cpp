#include "openapi/page.hpp"

#include "core/base64.hpp"

#include <openssl/sha.h>

#include <array>
#include <stdexcept>

namespace sandboxd::embedded {
extern const std::string_view docs_page; // docs.html
} // namespace sandboxd::embedded

namespace sandboxd::openapi {

namespace {

/// What stands between <tag> and </tag>.
std::string_view inside(std::string_view html, std::string_view tag) {
    const std::string open = "<" + std::string(tag) + ">";
    const auto begin = html.find(open);
    const auto end = html.find("</" + std::string(tag) + ">", begin);
    if (begin == std::string_view::npos || end == std::string_view::npos) {
        throw std::logic_error("a page without " + open);
    }
    return html.substr(begin + open.size(), end - begin - open.size());
}

/// As a source expression of a policy: 'sha256-...'
std::string hash_source(std::string_view text) {
    std::array<unsigned char, SHA256_DIGEST_LENGTH> sum{};
    ::SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), sum.data());
    const std::string_view bytes(reinterpret_cast<const char*>(sum.data()), sum.size());
    return "'sha256-" + core::base64(bytes) + "'";
}

} // namespace

page strict_page(std::string_view html) {
    return {html, "default-src 'none'; script-src " + hash_source(inside(html, "script")) + "; style-src " +
                      hash_source(inside(html, "style")) +
                      "; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"};
}

const page& docs_page() {
    static const page made = strict_page(embedded::docs_page);
    return made;
}

} // namespace sandboxd::openapi
