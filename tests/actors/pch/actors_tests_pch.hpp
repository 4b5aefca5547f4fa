// tests/actors/pch/actors_tests_pch.hpp -- precompiled for this folder.
#include "../../support/pch/tests_pch.hpp"

#include <caf/all.hpp>
