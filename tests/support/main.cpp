// tests/support/main.cpp -- the entry point of every Boost.Test program.
#define BOOST_TEST_MODULE shoal
#include <boost/test/unit_test.hpp>
