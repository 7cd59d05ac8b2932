#include "certificate.hpp"

#include <memory>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace sandboxd::test {

namespace {

void extend(X509* certificate, int kind, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
    X509_EXTENSION* made = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
    X509_add_ext(certificate, made, -1);
    X509_EXTENSION_free(made);
}

std::string text_of(BIO* memory) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(memory, &data);
    return std::string(data, static_cast<std::size_t>(size));
}

} // namespace

pem_pair self_signed(const std::string& name) {
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&X509_free)> made(X509_new(), &X509_free);
    X509_set_version(made.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(made.get()), -60);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), 3600);
    X509_set_pubkey(made.get(), key.get());
    X509_NAME* subject = X509_get_subject_name(made.get());
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    X509_set_issuer_name(made.get(), subject);
    extend(made.get(), NID_basic_constraints, "critical,CA:TRUE");
    extend(made.get(), NID_subject_alt_name, "DNS:" + name);
    X509_sign(made.get(), key.get(), EVP_sha256());
    const std::unique_ptr<BIO, decltype(&BIO_free)> one(BIO_new(BIO_s_mem()), &BIO_free);
    const std::unique_ptr<BIO, decltype(&BIO_free)> two(BIO_new(BIO_s_mem()), &BIO_free);
    PEM_write_bio_X509(one.get(), made.get());
    PEM_write_bio_PrivateKey(two.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    pem_pair pair;
    pair.certificate = text_of(one.get());
    pair.key = text_of(two.get());
    return pair;
}

} // namespace sandboxd::test
