#include "docker/tar.hpp"

#include <array>
#include <cstdio>
#include <cstring>

namespace sandboxd::docker {

namespace {

constexpr std::size_t block = 512;

void put(std::string& header, std::size_t offset, std::string_view text) {
    std::memcpy(header.data() + offset, text.data(), text.size());
}

void put_octal(std::string& header, std::size_t offset, int digits, unsigned long long value) {
    std::array<char, 24> text{};
    std::snprintf(text.data(), text.size(), "%0*llo", digits, value);
    put(header, offset, text.data());
}

std::string header_of(const tar_file& file) {
    std::string header(block, '\0');
    put(header, 0, std::string_view(file.name).substr(0, 100));
    put_octal(header, 100, 7, file.mode);
    put_octal(header, 108, 7, 0);
    put_octal(header, 116, 7, 0);
    put_octal(header, 124, 11, file.content.size());
    put_octal(header, 136, 11, 0);
    put(header, 148, "        ");
    header[156] = '0';
    put(header, 257, std::string_view("ustar\00000", 8));
    unsigned sum = 0;
    for (const char c : header) {
        sum += static_cast<unsigned char>(c);
    }
    put_octal(header, 148, 6, sum);
    header[154] = '\0';
    return header;
}

} // namespace

std::string make_tar(const std::vector<tar_file>& files) {
    std::string archive;
    for (const auto& file : files) {
        archive += header_of(file);
        archive += file.content;
        archive.resize((archive.size() + block - 1) / block * block, '\0');
    }
    archive.append(2 * block, '\0');
    return archive;
}

} // namespace sandboxd::docker
