// tests/runtime/core/main.cpp -- the runner of core_test.
#define BOOST_TEST_MODULE core
#include <boost/test/unit_test.hpp>
