// runtime/core/assert.hpp -- checks that stay on in every build.
//
// A failed check is a bug in this program, never an error of the outside world:
// it prints the place and the expression, and aborts. SHOAL_DASSERT is for hot
// loops and is active in debug builds.
#pragma once

#include <cstdio>
#include <cstdlib>

#define SHOAL_ASSERT(condition)                                                \
  do {                                                                         \
    if (!(condition)) [[unlikely]] {                                           \
      std::fprintf(stderr, "%s:%d: assertion failed: %s\n", __FILE__,          \
                   __LINE__, #condition);                                      \
      std::abort();                                                            \
    }                                                                          \
  } while (false)

#ifdef NDEBUG
#define SHOAL_DASSERT(condition)                                               \
  do {                                                                         \
  } while (false)
#else
#define SHOAL_DASSERT(condition) SHOAL_ASSERT(condition)
#endif
