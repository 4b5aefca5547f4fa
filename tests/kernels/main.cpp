// tests/kernels/main.cpp -- the entry of kernels_test.
#define BOOST_TEST_MODULE kernels
#include <boost/test/unit_test.hpp>
