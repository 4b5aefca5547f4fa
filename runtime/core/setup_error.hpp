// runtime/core/setup_error.hpp -- an error that keeps a process from starting.
//
// Thrown while a node or a client is set up, never later. The text is one line
// that says what happened, to which thing, and what to do.
#pragma once

#include <stdexcept>

namespace shoal::runtime {

/// A resource cannot be set up: a key file, a data directory, an address.
class setup_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// The user's input is wrong in itself: a flag's value, or flags that exclude
/// each other. Any other setup_error comes from the environment.
class usage_error : public setup_error {
public:
  using setup_error::setup_error;
};

} // namespace shoal::runtime
