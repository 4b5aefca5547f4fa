// runtime/model/text/models/byte_trie.cpp -- builds it level by level.
#include "runtime/model/text/models/byte_trie.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace shoal::model::text {

byte_trie::byte_trie(const vocabulary& tokens) {
  std::vector<std::pair<std::string_view, token_id>> texts;
  texts.reserve(tokens.size());
  for (const auto& [text, id] : tokens)
    if (!text.empty())
      texts.emplace_back(text, id);
  std::ranges::sort(texts);
  struct range { // of texts that begin with the node's text
    std::size_t first = 0;
    std::size_t last = 0;
  };
  first_.clear();
  std::vector<range> level = {{0, texts.size()}};
  for (std::size_t depth = 0; !level.empty(); ++depth) {
    std::vector<range> below;
    for (range of : level) {
      first_.push_back(static_cast<node>(bytes_.size()));
      // The text that ends here is the first of them; its node has its token.
      if (of.first != of.last && texts[of.first].first.size() == depth)
        ++of.first;
      while (of.first != of.last) {
        const char byte = texts[of.first].first[depth];
        std::size_t end = of.first;
        while (end != of.last && texts[end].first[depth] == byte)
          ++end;
        const auto& [text, id] = texts[of.first];
        bytes_.push_back(byte);
        tokens_.push_back(text.size() == depth + 1 ? id : -1);
        below.push_back({of.first, end});
        of.first = end;
      }
    }
    level = std::move(below);
  }
  first_.push_back(static_cast<node>(bytes_.size()));
}

byte_trie::node byte_trie::child(node from, char byte) const {
  const node first = first_[from];
  const std::size_t count = first_[from + 1] - first;
  if (count == 0)
    return none;
  const void* at =
    std::memchr(bytes_.data() + first, static_cast<unsigned char>(byte), count);
  return at == nullptr
           ? none
           : static_cast<node>(static_cast<const char*>(at) - bytes_.data());
}

byte_trie::node byte_trie::find(std::string_view text) const {
  node at = root;
  for (const char byte : text) {
    at = child(at, byte);
    if (at == none)
      break;
  }
  return at;
}

} // namespace shoal::model::text
