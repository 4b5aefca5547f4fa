// tests/runtime/wire/main.cpp -- the test runner of the codec.
#define BOOST_TEST_MODULE wire
#include <boost/test/unit_test.hpp>
