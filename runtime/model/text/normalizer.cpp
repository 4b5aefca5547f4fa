// runtime/model/text/normalizer.cpp -- "normalizer": rewrites text.
#include "runtime/model/text/normalizer.hpp"

#include "runtime/core/text/utf8.hpp"
#include "runtime/model/text/patterns/old_categories.hpp"

namespace shoal::model::text {

namespace {

status strip(const strip_step& step, std::string& text, bool& cut_left) {
  std::size_t first = 0;
  std::size_t last = text.size();
  for (std::size_t at = 0; step.left && at < text.size(); first = at) {
    if (!is_space(core::next_code(text, at)))
      break;
  }
  for (std::size_t at = last; step.right && at > first; last = at) {
    if (!is_space(core::previous_code(text, at)))
      break;
  }
  cut_left = cut_left || first > 0;
  text = text.substr(first, last - first);
  return done{};
}

/// What is_dropped() keeps, with what `become` makes of it.
template <class Condition, class Map>
void filter(std::string& text, bool& cut_left, Condition is_dropped,
            Map become) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const char32_t code = core::next_code(text, at);
    if (!is_dropped(code))
      core::append_code(out, become(code));
    else
      cut_left = cut_left || out.empty();
  }
  text = std::move(out);
}

char32_t itself(char32_t code) {
  return code;
}

/// Control characters that NMT's rules drop.
bool is_dropped_by_nmt(char32_t code) {
  return (code >= 0x01 && code <= 0x08) || code == 0x0b
         || (code >= 0x0e && code <= 0x1f) || code == 0x7f || code == 0x8f
         || code == 0x9f;
}

/// What they count as white space.
bool is_space_of_nmt(char32_t code) {
  return code == 0x09 || code == 0x0a || code == 0x0c || code == 0x0d
         || code == 0x1680 || (code >= 0x200b && code <= 0x200f)
         || code == 0x2028 || code == 0x2029 || code == 0x2581 || code == 0xfeff
         || code == 0xfffd;
}

/// The blocks that BERT takes for Chinese, as the package has them: of extension
/// E only a part.
bool is_chinese(char32_t code) {
  return (code >= 0x4e00 && code <= 0x9fff)
         || (code >= 0x3400 && code <= 0x4dbf)
         || (code >= 0x20000 && code <= 0x2a6df)
         || (code >= 0x2a700 && code <= 0x2b73f)
         || (code >= 0x2b740 && code <= 0x2b81f)
         || (code >= 0x2b920 && code <= 0x2ceaf)
         || (code >= 0xf900 && code <= 0xfaff)
         || (code >= 0x2f800 && code <= 0x2fa1f);
}

bool is_dropped_by_bert(char32_t code) {
  return code == 0 || code == 0xfffd || is_old_control(code);
}

std::string with_spaces_around_chinese(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t first = at;
    const bool apart = is_chinese(core::next_code(text, at));
    out.append(apart, ' ');
    out += text.substr(first, at - first);
    out.append(apart, ' ');
  }
  return out;
}

struct normalizing_visitor {
  std::string& text;
  std::size_t bytes_max;
  bool& cut_left;

  status operator()(normal_form form) const {
    auto normal = normalise(text, form);
    if (!normal)
      return normal.why();
    text = std::move(*normal);
    return done{};
  }
  status operator()(const prepend_step& step) const {
    if (text.empty())
      return done{};
    if (step.text.size() > bytes_max - text.size())
      return grows_too_much("Prepend", bytes_max);
    text.insert(0, step.text);
    return done{};
  }
  status operator()(const replace_step& step) const {
    return replace_all(step.pattern, step.content, bytes_max, text, &cut_left);
  }
  status operator()(lowercase_step) const {
    text = lower_case(text);
    return done{};
  }
  status operator()(const strip_step& step) const {
    return strip(step, text, cut_left);
  }
  status operator()(strip_accents_step) const {
    filter(text, cut_left, is_mark, itself);
    return done{};
  }
  status operator()(nmt_step) const {
    filter(text, cut_left, is_dropped_by_nmt,
           [](char32_t code) { return is_space_of_nmt(code) ? U' ' : code; });
    return done{};
  }
  status operator()(const bert_step& step) const {
    if (step.clean_text)
      filter(text, cut_left, is_dropped_by_bert,
             [](char32_t code) { return is_space(code) ? U' ' : code; });
    if (step.handle_chinese_chars)
      text = with_spaces_around_chinese(text);
    if (step.strip_accents) {
      if (status normal = (*this)(normal_form::nfd); !normal)
        return normal;
      filter(text, cut_left, is_old_nonspacing_mark, itself);
    }
    return step.lowercase ? (*this)(lowercase_step{}) : done{};
  }
  status operator()(const charsmap& map) const {
    return map.apply(text, bytes_max);
  }
};

} // namespace

result<regex> parse_pattern(const json_view& from) {
  const json_view literal = from["String"];
  const json_view expression = from["Regex"];
  if (literal.is_null() == expression.is_null()) {
    from.fail("is neither {\"String\": ...} nor {\"Regex\": ...}");
    return from.why();
  }
  const json_view& given = literal.is_null() ? expression : literal;
  const std::string_view text = given.string();
  if (!from.ok())
    return from.why();
  auto pattern =
    literal.is_null() ? regex::compile(text) : regex::literal(text);
  if (!pattern)
    given.fail(pattern.message());
  return pattern;
}

normalizer normalizer::parse(const json_view& from) {
  normalizer made;
  if (!from.is_null())
    made.add(from, 0);
  return made;
}

void normalizer::add(const json_view& from, int depth) {
  const std::string_view type = component_type(from, depth, steps_.size());
  if (!from.ok())
    return;
  if (type == "Sequence") {
    from["normalizers"].each(components_max, [&](const json_view& component) {
      add(component, depth + 1);
    });
  } else if (type == "NFC") {
    steps_.emplace_back(normal_form::nfc);
  } else if (type == "NFD") {
    steps_.emplace_back(normal_form::nfd);
  } else if (type == "NFKC") {
    steps_.emplace_back(normal_form::nfkc);
  } else if (type == "NFKD") {
    steps_.emplace_back(normal_form::nfkd);
  } else if (type == "Prepend") {
    steps_.emplace_back(prepend_step{std::string(from["prepend"].string())});
  } else if (type == "Replace") {
    auto pattern = parse_pattern(from["pattern"]);
    const std::string_view content = from["content"].string();
    if (pattern)
      steps_.emplace_back(replace_step{*pattern, std::string(content)});
  } else if (type == "Lowercase") {
    steps_.emplace_back(lowercase_step{});
  } else if (type == "Strip") {
    steps_.emplace_back(
      strip_step{from["strip_left"].boolean(), from["strip_right"].boolean()});
  } else if (type == "StripAccents") {
    steps_.emplace_back(strip_accents_step{});
  } else if (type == "Nmt") {
    steps_.emplace_back(nmt_step{});
  } else if (type == "BertNormalizer") {
    bert_step step;
    step.clean_text = from["clean_text"].boolean();
    step.handle_chinese_chars = from["handle_chinese_chars"].boolean();
    step.lowercase = from["lowercase"].boolean();
    step.strip_accents = from["strip_accents"].boolean(step.lowercase);
    steps_.emplace_back(step);
  } else if (type == "Precompiled") {
    const json_view given = from["precompiled_charsmap"];
    const std::string_view text = given.string();
    if (!from.ok())
      return;
    auto map = charsmap::parse_base64(text);
    if (!map)
      return given.fail(map.message());
    steps_.emplace_back(std::move(*map));
  } else {
    from["type"].fail("the normalizer \"" + std::string(type)
                      + "\" is not supported");
  }
}

status normalizer::apply(std::string& text, bool& cut_left) const {
  const std::size_t bytes_max = grown_bytes_max(text.size());
  for (const normalizer_step& step : steps_) {
    if (status applied =
          std::visit(normalizing_visitor{text, bytes_max, cut_left}, step);
        !applied)
      return applied;
    if (text.size() > bytes_max) // by a normal form, a few times at most
      return grows_too_much("of a normal form", bytes_max);
  }
  return done{};
}

} // namespace shoal::model::text
