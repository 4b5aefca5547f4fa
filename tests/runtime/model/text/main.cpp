// tests/runtime/model/text/main.cpp -- the entry of text_test.
#define BOOST_TEST_MODULE text
#include <boost/test/unit_test.hpp>
