// runtime/core/setup_error.hpp -- what a process cannot begin with.
//
// Thrown while a node or a client is set up, never later. The text is one line
// that says what happened, to which thing, and what to do.
#pragma once

#include <stdexcept>

namespace shoal::runtime {

/// Cannot be set up: a key file, a data directory, an address.
class setup_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// What the user has asked for is wrong in itself: a flag's value, or flags that
/// exclude each other. The rest of setup_error is what the world refuses.
class usage_error : public setup_error {
public:
  using setup_error::setup_error;
};

} // namespace shoal::runtime
