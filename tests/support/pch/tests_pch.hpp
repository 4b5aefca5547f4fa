// tests/support/pch/tests_pch.hpp -- precompiled for each test program: what nearly
// each file of it includes. Never included by name: files include what they use.
#include "../../../runtime/pch/std_pch.hpp"

#include <boost/test/unit_test.hpp>
