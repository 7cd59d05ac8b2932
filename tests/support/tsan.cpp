// What ThreadSanitizer reports wrongly, linked into every stress program: Asio counts the references of an
// executor with a release decrement and an acquire fence, and the sanitizer knows no fences.
extern "C" const char* __tsan_default_suppressions();

extern "C" const char* __tsan_default_suppressions() {
    return "race:boost::asio::execution::detail::any_executor_base::destroy_shared\n";
}
