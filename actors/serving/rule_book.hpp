// actors/serving/rule_book.hpp -- the rules of the texts of one served model, compiled
// for its tokens.
//
// Rules are compiled on context::prompts(), once for all texts that have the same
// one; some are kept for those that come later. The texts of tokens are read when the
// first rule comes.
//
// Threads: the owner's.
// Errors:  a rule that cannot be used makes a text that is stuck: gateways have
//          compiled it, too, so that clients hear of it before.
#pragma once

#include "actors/serving/ruled_text.hpp"
#include "actors/training/later.hpp"
#include "runtime/core/result.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace shoal::runtime {
class context;
}

namespace shoal::actors {

class rule_book : public std::enable_shared_from_this<rule_book> {
public:
  using tokens = std::shared_ptr<const core::grammar::token_list>;
  /// Calls its argument with the texts of the model's tokens in a turn of the
  /// owner, or with null, if it has none.
  using token_source = std::function<void(std::function<void(tokens)>)>;
  using made = std::function<void(std::shared_ptr<ruled_text>)>;

  /// Rules that are kept compiled, beside those of texts that run.
  static constexpr std::size_t kept_max = 64;
  /// Nodes of their grammars: some 100 bytes each.
  static constexpr std::size_t kept_nodes_max = 1'000'000;

  rule_book(runtime::context& node, token_source source, poster post)
    : node_(node), source_(std::move(source)), post_(std::move(post)) {}

  /// Makes the text of a sequence, which is ready.
  void open(const core::serve_rule& rule, made done);
  /// Finds what may come next.
  void find_allowed(const std::shared_ptr<ruled_text>& text,
                    std::function<void()> done);

  /// Rules that are kept.
  [[nodiscard]] std::size_t kept() const noexcept { return kept_.size(); }

private:
  using masks = std::shared_ptr<core::grammar::token_masks>;
  using compiled = std::function<void(masks)>;

  void with_tokens(std::function<void()> then);
  void make(const core::serve_rule& rule, masks by, made done);
  void compile(const core::text_rule& rule, compiled then);
  void keep(const core::text_rule& rule, const masks& by);

  runtime::context& node_;
  token_source source_;
  poster post_;
  tokens tokens_;
  bool read_ = false; ///< tokens_ are what the source has
  std::vector<std::function<void()>> waiting_; ///< for tokens_
  std::map<core::text_rule, std::vector<compiled>> compiling_;
  std::map<core::text_rule, masks> kept_;
  std::deque<core::text_rule> order_; ///< of kept_: the oldest first
  std::size_t kept_nodes_ = 0;
  /// Memory of what is known of all rules.
  core::grammar::token_masks::shared_count mask_bytes_ =
    std::make_shared<std::atomic<std::size_t>>(0);
};

class weights_owner; // actors/serving/served_weights.hpp

struct model_tokens {
  runtime::context* node = nullptr;
  core::blob_digest manifest{};
  std::size_t vocabulary = 0; ///< ids of the model
  std::string folder;         ///< a name for one that is made for a moment
};
/// Reads them from the model's small files, which any member has.
rule_book::token_source
tokens_of(model_tokens of, weights_owner& owner, poster post);

} // namespace shoal::actors
