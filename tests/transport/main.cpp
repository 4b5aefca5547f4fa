// tests/transport/main.cpp -- the entry point of transport_test.
#define BOOST_TEST_MODULE transport
#include <boost/test/unit_test.hpp>
