#include "core/strand.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>

#include <memory>

namespace sandboxd::core {

namespace asio = boost::asio;

asio::any_io_executor make_strand(const asio::any_io_executor& inner) {
    using plain = asio::io_context::executor_type;
    using small = asio::strand<plain>;
    static_assert(sizeof(small) <= sizeof(std::shared_ptr<void>) + sizeof(void*)); // what is kept in place
    if (const auto* const own = inner.target<plain>()) {
        return small(*own);
    }
    return asio::make_strand(inner);
}

} // namespace sandboxd::core
