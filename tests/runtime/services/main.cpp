// tests/runtime/services/main.cpp -- entry point of the tests of the services.
#define BOOST_TEST_MODULE services
#include <boost/test/unit_test.hpp>
