// tests/support/main.cpp -- the entry of every Boost.Test program.
#define BOOST_TEST_MODULE shoal
#include <boost/test/unit_test.hpp>
