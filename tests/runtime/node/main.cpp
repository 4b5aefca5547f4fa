// tests/runtime/node/main.cpp -- the test runner of the node.
#define BOOST_TEST_MODULE node
#include <boost/test/unit_test.hpp>
