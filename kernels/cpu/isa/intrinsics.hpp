// kernels/cpu/isa/intrinsics.hpp -- instructions of AVX-512 and AMX by name.
//
// For functions that features.hpp guards. Each is compiled for the instructions
// that its macro names; call it only if usable_features() has them.
//
// Private to kernels/cpu.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns of its own headers (its bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

/// usable_features().vnni
#define SHOAL_VNNI                                                             \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))
/// usable_features().bf16
#define SHOAL_BF16                                                             \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
/// The same, with instructions that convert 64-bit numbers.
#define SHOAL_BF16_DQ                                                          \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
/// usable_features().amx
#define SHOAL_AMX __attribute__((target("amx-tile,amx-bf16")))
#endif
