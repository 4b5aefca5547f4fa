// tests/fuzz/corpus_fuzz.cpp -- any bytes as the blob of a corpus.
//
// A blob that is accepted is the one that serialise() makes of it.
#include "runtime/model/data/corpus.hpp"

#include <algorithm>
#include <cstdlib>

using namespace shoal::model;

extern "C" int
LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const auto blob = std::as_bytes(std::span(data, size));
  const auto parsed = parse_corpus(blob);
  if (parsed && !std::ranges::equal(serialise(*parsed), blob))
    std::abort();
  return 0;
}
