#pragma once

#include <boost/asio/any_io_executor.hpp>

namespace sandboxd::core {

/// A strand over `inner`. Over an io_context's own executor it is small enough that copies of it need no
/// memory and work for it goes to the context directly, which boost::asio::make_strand() of a type-erased
/// executor can't know: every step of a coroutine is one such copy or two.
[[nodiscard]] boost::asio::any_io_executor make_strand(const boost::asio::any_io_executor& inner);

} // namespace sandboxd::core
