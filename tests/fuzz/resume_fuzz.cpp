// tests/fuzz/resume_fuzz.cpp -- decisions from seals that the fuzzer chooses
// (wild_seals.hpp): each can be carried out, and is the same twice.
#include "tests/runtime/core/training/wild_seals.hpp"

using namespace shoal;

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::size_t at = 0;
  tests::check_decision(tests::wild_seals(
    [&](std::uint64_t n) { return at < size && n > 0 ? data[at++] % n : 0; }));
  return 0;
}
