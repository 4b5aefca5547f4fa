// transport/assert.hpp -- the assertion of this layer, on in every build.
//
// For bugs only: a broken precondition or invariant. A mistake of a peer or of
// the network is an error code, never an assertion.
#pragma once

#include <cstdio>
#include <cstdlib>

/// Prints file, line and expression and aborts unless `condition` holds.
#define SHOAL_ASSERT(condition)                                                \
  do {                                                                         \
    if (!(condition)) [[unlikely]] {                                           \
      std::fprintf(stderr, "%s:%d: assertion failed: %s\n", __FILE__,          \
                   __LINE__, #condition);                                      \
      std::abort();                                                            \
    }                                                                          \
  } while (false)
