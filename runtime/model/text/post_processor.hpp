// runtime/model/text/post_processor.hpp -- "post_processor": tokens around a
// text.
//
// TemplateProcessing, ByteLevel (which changes offsets only), BertProcessing,
// RobertaProcessing and Sequence of them, for a single text. If none of them
// places tokens, add_bos_token and add_eos_token of tokenizer_config.json may.
//
// Errors: parse: an unknown type, or a token without ids, is named.
#pragma once

#include "runtime/model/text/models/json_view.hpp"
#include "runtime/model/text/models/vocabulary.hpp"

#include <vector>

namespace shoal::model::text {

/// Special tokens of one template.
inline constexpr std::size_t template_pieces_max = 64;

class post_processor {
public:
  /// null: nothing is added. Ids must be below `id_limit`.
  static post_processor parse(const json_view& from, std::size_t id_limit);

  /// The tokens before and after a text, from tokenizer_config.json.
  static post_processor
  around(std::vector<token_id> before, std::vector<token_id> behind);

  void apply(std::vector<token_id>& tokens) const;
  /// Whether a template defines the tokens around a text, even if there are
  /// none.
  bool decides() const { return decides_; }

private:
  void add(const json_view& from, std::size_t id_limit, int depth);
  void add_template(const json_view& from, std::size_t id_limit);
  void add_pair(const json_view& from, std::size_t id_limit);

  std::vector<token_id> before_;
  std::vector<token_id> behind_;
  bool decides_ = false;
};

} // namespace shoal::model::text
