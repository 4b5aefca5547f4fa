// runtime/model/text/models/byte_trie.hpp -- the texts of tokens as a tree of
// their bytes.
//
// For all tokens that begin at one place of a text. Nodes are numbered breadth
// first, so the children of a node are neighbours, and one table holds where
// they begin.
//
// Threads: immutable.
// Cost:    9 bytes for each node; a step is a search in at most 256 bytes.
#pragma once

#include "runtime/model/text/models/vocabulary.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace shoal::model::text {

class byte_trie {
public:
  using node = std::uint32_t;
  static constexpr node root = 0;
  static constexpr node none = ~node{0};

  byte_trie() = default;
  explicit byte_trie(const vocabulary& tokens);

  /// @returns none if no token goes on with this byte.
  node child(node from, char byte) const;
  /// The token that ends here, or -1.
  token_id token(node at) const { return tokens_[at]; }
  /// The node of a text from the root, or none.
  node find(std::string_view text) const;

private:
  // Of each node; first_ has one more: the end of the last one's children.
  std::vector<node> first_ = {1, 1};
  std::vector<char> bytes_ = {0};
  std::vector<token_id> tokens_ = {-1};
};

} // namespace shoal::model::text
