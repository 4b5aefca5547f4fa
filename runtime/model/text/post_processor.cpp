// runtime/model/text/post_processor.cpp -- "post_processor": tokens around a
// text.
#include "runtime/model/text/post_processor.hpp"

namespace shoal::model::text {

void post_processor::add_template(const json_view& from, std::size_t id_limit) {
  const json_view pieces = from["single"];
  const std::size_t count = pieces.array(template_pieces_max);
  std::vector<token_id> before;
  std::vector<token_id> behind;
  bool text_seen = false;
  for (std::size_t i = 0; i < count && from.ok(); ++i) {
    const json_view text = pieces[i]["Sequence"];
    const json_view special = pieces[i]["SpecialToken"];
    if (text.is_null() == special.is_null())
      return pieces[i].fail("is neither a Sequence nor a SpecialToken");
    if (special.is_null()) {
      if (text["id"].string() != "A" || text_seen)
        return pieces[i].fail("a template for one text has it once, as \"A\"");
      text_seen = true;
      continue;
    }
    const std::string_view name = special["id"].string();
    const json_view ids = from["special_tokens"][name]["ids"];
    const std::size_t ids_count = ids.array(template_pieces_max);
    for (std::size_t j = 0; j < ids_count && from.ok(); ++j)
      (text_seen ? behind : before)
        .push_back(static_cast<token_id>(ids[j].number(id_limit - 1)));
  }
  if (from.ok() && !text_seen)
    return pieces.fail("has no place for the text");
  before_.insert(before_.begin(), before.begin(), before.end());
  behind_.insert(behind_.end(), behind.begin(), behind.end());
  decides_ = true;
}

void post_processor::add_pair(const json_view& from, std::size_t id_limit) {
  auto id = [&](const json_view& pair) {
    if (pair.array(2) != 2) {
      pair.fail("is not a token and its id");
      return token_id{0};
    }
    return static_cast<token_id>(pair[1u].number(id_limit - 1));
  };
  before_.insert(before_.begin(), id(from["cls"]));
  behind_.push_back(id(from["sep"]));
  decides_ = true;
}

void post_processor::add(const json_view& from, std::size_t id_limit,
                         int depth) {
  const std::string_view type = from["type"].string();
  if (depth > nesting_max)
    from.fail("nested too deep");
  if (!from.ok())
    return;
  if (type == "Sequence") {
    from["processors"].each(components_max, [&](const json_view& component) {
      add(component, id_limit, depth + 1);
    });
  } else if (type == "TemplateProcessing") {
    add_template(from, id_limit);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    add_pair(from, id_limit);
  } else if (type != "ByteLevel") {
    from["type"].fail("the post_processor \"" + std::string(type)
                      + "\" is not supported");
  }
}

post_processor
post_processor::parse(const json_view& from, std::size_t id_limit) {
  post_processor made;
  if (!from.is_null())
    made.add(from, id_limit, 0);
  return made;
}

post_processor post_processor::around(std::vector<token_id> before,
                                      std::vector<token_id> behind) {
  post_processor made;
  made.before_ = std::move(before);
  made.behind_ = std::move(behind);
  return made;
}

void post_processor::apply(std::vector<token_id>& tokens) const {
  tokens.insert(tokens.begin(), before_.begin(), before_.end());
  tokens.insert(tokens.end(), behind_.begin(), behind_.end());
}

} // namespace shoal::model::text
