#define BOOST_TEST_MODULE sandboxd
#include <boost/test/unit_test.hpp>
