// runtime/model/text/normalizer.cpp -- "normalizer": rewrites text.
#include "runtime/model/text/normalizer.hpp"

#include "runtime/core/text/utf8.hpp"

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

struct applier {
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
    return replace_all(step.pattern, step.content, bytes_max, text);
  }
  status operator()(lowercase_step) const {
    text = lower_case(text);
    return done{};
  }
  status operator()(const strip_step& step) const {
    return strip(step, text, cut_left);
  }
  status operator()(strip_accents_step) const {
    text = without_marks(text);
    return done{};
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
  const std::string_view type = from["type"].string();
  if (depth > nesting_max || steps_.size() >= components_max)
    from.fail("too many components, or nested too deep");
  if (!from.ok())
    return;
  if (type == "Sequence") {
    const json_view all = from["normalizers"];
    const std::size_t count = all.array(components_max);
    for (std::size_t i = 0; i < count && from.ok(); ++i)
      add(all[i], depth + 1);
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
  } else {
    from["type"].fail("the normalizer \"" + std::string(type)
                      + "\" is not supported");
  }
}

status normalizer::apply(std::string& text, bool& cut_left) const {
  const std::size_t bytes_max = grown_bytes_max(text.size());
  for (const normalizer_step& step : steps_) {
    if (status applied = std::visit(applier{text, bytes_max, cut_left}, step);
        !applied)
      return applied;
    if (text.size() > bytes_max) // by a normal form, a few times at most
      return grows_too_much("of a normal form", bytes_max);
  }
  return done{};
}

} // namespace shoal::model::text
