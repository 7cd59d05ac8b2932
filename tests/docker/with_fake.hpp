#pragma once

#include "docker/engine.hpp"
#include "fake_engine.hpp"
#include "support/run.hpp"

#include <boost/test/unit_test.hpp>

namespace sandboxd::test {

using namespace std::chrono_literals;

/// A client of a fake Engine, on a context of the test's thread.
struct with_fake {
    fake_engine fake;
    boost::asio::io_context context;
    std::shared_ptr<docker::engine> engine;

    /// Call after the fake is scripted.
    docker::engine& connect(docker::engine_options options = docker::engine_options()) {
        docker::endpoint where;
        where.path = fake.path();
        engine = docker::create_engine(context.get_executor(), where, std::move(options)).value();
        return *engine;
    }

    template <class T>
    T get(task<T> work) {
        return test::get(context, std::move(work));
    }

    ~with_fake() {
        engine.reset();
        context.restart();
        context.run_for(60s);
        BOOST_TEST(context.stopped()); // nothing is left waiting
    }
};

inline int code(const docker::engine_error& e) {
    return static_cast<int>(e.code);
}
inline int code(errc e) {
    return static_cast<int>(e);
}

} // namespace sandboxd::test
