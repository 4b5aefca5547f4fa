// tests/runtime/model/main.cpp -- the entry of model_test.
#define BOOST_TEST_MODULE model
#include <boost/test/unit_test.hpp>
