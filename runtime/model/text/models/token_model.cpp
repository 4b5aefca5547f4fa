// runtime/model/text/models/token_model.cpp -- which model a file has.
#include "runtime/model/text/models/token_model.hpp"

namespace shoal::model::text {

namespace {

/// The type, or what a file of before 2020 looks like, which leaves it out.
std::string_view type_of(const json_view& from) {
  if (const json_view type = from["type"]; !type.is_null())
    return type.string();
  if (from["vocab"].raw().is_array())
    return "Unigram";
  const bool words =
    from["merges"].is_null() && !from["max_input_chars_per_word"].is_null();
  return words ? "WordPiece" : "BPE";
}

} // namespace

token_model
token_model::parse(const json_view& from, std::vector<std::string>& notices) {
  token_model made;
  const std::string_view type = type_of(from);
  if (!from.ok())
    return made;
  if (type == "BPE")
    made.is_ = bpe::parse(from, notices);
  else if (type == "Unigram")
    made.is_ = unigram::parse(from);
  else if (type == "WordPiece")
    made.is_ = word_piece::parse(from);
  else
    from["type"].fail("the model " + in_quotes(type)
                      + " is not supported; \"BPE\", \"Unigram\" and "
                        "\"WordPiece\" are");
  return made;
}

status
token_model::encode(std::string_view piece, word_cache& cache,
                    std::vector<token_id>& into, banned_tokens banned) const {
  return std::visit(
    [&](const auto& model) { return model.encode(piece, cache, into, banned); },
    is_);
}

const vocabulary& token_model::tokens() const {
  return std::visit(
    [](const auto& model) -> const vocabulary& { return model.tokens(); }, is_);
}

} // namespace shoal::model::text
