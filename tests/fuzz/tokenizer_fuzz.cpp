// tests/fuzz/tokenizer_fuzz.cpp -- any bytes as a tokenizer.json.
//
// Up to a NUL byte the input is the file, after it a text. An accepted
// tokenizer must encode the text or give the reason why not, return ids of its
// own, the same ones again, and decode them to UTF-8, as a whole or one by one.
#include "runtime/core/text/text_range.hpp"
#include "runtime/core/text/utf8.hpp"
#include "runtime/model/text/hf_tokenizer.hpp"

#include <algorithm>
#include <cstdlib>

using namespace shoal::model::text;

extern "C" int
LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::size_t nul = std::min(all.find('\0'), size);
  const auto made = hf_tokenizer::parse(all.substr(0, nul), all.substr(0, nul));
  if (!made)
    return 0;
  if (const auto bytes = made->token_bytes();
      bytes && bytes->size() != made->id_count())
    std::abort();
  encoder each(*made);
  for (const std::string_view text :
       {all.substr(std::min(nul + 1, size)), std::string_view("ab  a<s>\n")}) {
    const auto ids = each.encode(text);
    if (const auto again = each.encode(text);
        bool(again) != bool(ids) || (ids && *again != *ids))
      std::abort(); // from its cache
    const std::string mended = shoal::core::replace_broken(text);
    const shoal::core::text_range whole[] = {{0, mended.size()}};
    (void)each.encode(mended, false, whole);
    if (!ids)
      continue;
    decode_stream stream(*made, false);
    for (const token_id id : *ids) {
      if (id < 0 || static_cast<std::size_t>(id) >= made->id_count())
        std::abort();
      if (!shoal::core::is_utf8(stream.push(id)))
        std::abort();
    }
    if (!shoal::core::is_utf8(stream.finish())
        || !shoal::core::is_utf8(made->decode(*ids)))
      std::abort();
  }
  return 0;
}
