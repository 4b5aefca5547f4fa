// tests/conformance/main.cpp -- the entry point of conformance_test.
#define BOOST_TEST_MODULE conformance
#include <boost/test/unit_test.hpp>
