// runtime/model/text/models/vocabulary.cpp -- texts of tokens and their ids.
#include "runtime/model/text/models/vocabulary.hpp"

#include "runtime/files/json.hpp"

#include <cstdio>

namespace shoal::model::text {

std::string in_quotes(std::string_view text) {
  return shown(nlohmann::json(text));
}

vocabulary read_vocabulary(const json_view& from, std::size_t bytes_max) {
  vocabulary made;
  if (!from.raw().is_object() || from.raw().empty()) {
    from.fail("is not an object with tokens");
    return made;
  }
  if (from.raw().size() > vocabulary_tokens_max) {
    from.fail("has more than " + std::to_string(vocabulary_tokens_max)
              + " tokens");
    return made;
  }
  const std::size_t count = from.raw().size();
  const std::size_t id_max = count + id_gap_max;
  std::vector<const std::string*> owner(id_max + 1, nullptr);
  made.reserve(count);
  for (const auto& [token, value] : from.raw().items()) {
    if (token.size() > bytes_max) {
      from.fail("the token " + in_quotes(token) + " has more than "
                + std::to_string(bytes_max) + " bytes");
      return made;
    }
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > id_max) {
      from.fail("the id of " + in_quotes(token)
                + " is not a whole number up to " + std::to_string(id_max));
      return made;
    }
    const auto id = value.get<std::size_t>();
    if (owner[id] != nullptr) {
      from.fail(in_quotes(token) + " and " + in_quotes(*owner[id])
                + " have the same id " + std::to_string(id));
      return made;
    }
    const auto at = made.emplace(token, static_cast<token_id>(id)).first;
    owner[id] = &at->first;
  }
  return made;
}

byte_tokens byte_tokens_of(const vocabulary& tokens) {
  byte_tokens out;
  for (unsigned byte = 0; byte != out.size(); ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", byte);
    const auto it = tokens.find(std::string_view(text));
    out[byte] = it == tokens.end() ? -1 : it->second;
  }
  return out;
}

} // namespace shoal::model::text
