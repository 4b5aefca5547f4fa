// tests/fuzz/charsmap_fuzz.cpp -- any bytes as a precompiled table of characters.
//
// The first byte says how many of the last bytes are a text, the rest is the
// table. What is accepted must make UTF-8 of the text, within the limit, and the
// same each time.
#include "runtime/core/text/utf8.hpp"
#include "runtime/model/text/patterns/charsmap.hpp"
#include "runtime/model/text/patterns/regex.hpp"

#include <algorithm>
#include <cstdlib>

using namespace shoal::model::text;

extern "C" int
LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  std::string_view all(reinterpret_cast<const char*>(data), size);
  if (all.empty())
    return 0;
  const auto count = static_cast<unsigned char>(all.front());
  all.remove_prefix(1);
  const std::size_t cut = all.size() - std::min<std::size_t>(count, all.size());
  const auto made = charsmap::parse(all.substr(0, cut));
  if (!made)
    return 0;
  for (const std::string& text :
       {shoal::core::replace_broken(all.substr(cut)),
        std::string("a\u00e9e\u0301\r\n\u1100\u1161\U0001f600\u200d\u00a9")
          + '\0' + 'x'}) {
    const std::size_t bytes_max = grown_bytes_max(text.size());
    std::string once = text, again = text;
    const bool fits = bool(made->apply(once, bytes_max));
    if (fits != bool(made->apply(again, bytes_max)) || once != again
        || !shoal::core::is_utf8(once) || (fits && once.size() > bytes_max))
      std::abort();
  }
  return 0;
}
