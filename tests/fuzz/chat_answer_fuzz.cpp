// tests/fuzz/chat_answer_fuzz.cpp -- any lines as the events of a chat's answer,
// and any bytes as a server's error.
#include "apps/chat/chat_answer.hpp"
#include "runtime/core/assert.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/core/text/utf8.hpp"
#include "runtime/files/json.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

using namespace shoal;

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto now = apps::chat_answer::clock::time_point();
  apps::chat_answer answer(now);
  std::string text, thoughts;
  for (std::string_view rest = bytes; !rest.empty();) {
    const auto end = std::min(rest.find('\n'), rest.size());
    now += std::chrono::milliseconds(1);
    const bool more = answer.put(rest.substr(0, end), now,
                                 [&](const std::string& piece, bool thought) {
                                   SHOAL_ASSERT(!piece.empty());
                                   (thought ? thoughts : text) += piece;
                                 });
    if (!more)
      break;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  SHOAL_ASSERT(answer.text() == text && answer.thoughts() == thoughts);
  SHOAL_ASSERT(core::is_utf8(text) && core::is_utf8(thoughts));
  SHOAL_ASSERT(core::is_shown(answer.finish()));
  SHOAL_ASSERT(core::is_shown(answer.error()));
  SHOAL_ASSERT(core::is_shown(apps::speed_text(answer)));
  SHOAL_ASSERT(answer.first_s() >= 0 && answer.tokens_per_s() >= 0);
  static_cast<void>(model::json_text(apps::chat_done(answer, "m")));
  SHOAL_ASSERT(core::is_shown(apps::error_in(bytes).text));
  return 0;
}
