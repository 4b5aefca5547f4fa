// runtime/model/text/pre_tokenizer.cpp -- "pre_tokenizer": cuts text into
// pieces.
#include "runtime/model/text/pre_tokenizer.hpp"

#include "runtime/core/text/utf8.hpp"
#include "runtime/model/text/byte_level.hpp"
#include "runtime/model/text/normalizer.hpp"
#include "runtime/model/text/patterns/old_categories.hpp"
#include "runtime/model/text/patterns/unicode.hpp"

#include <algorithm>

namespace shoal::model::text {

namespace {

/// Matches merge with the part before them; `extend` grows the last part.
template <class Extend>
std::vector<text_part>
merge(const std::vector<text_part>& parts, Extend extend) {
  std::vector<text_part> out;
  bool previous_match = false;
  for (const text_part& part : parts) {
    if (part.match && !previous_match && !out.empty())
      extend(out.back(), part);
    else
      out.push_back({part.first, part.last, false});
    previous_match = part.match;
  }
  return out;
}

std::vector<text_part> join_alike(const std::vector<text_part>& parts) {
  std::vector<text_part> out;
  bool previous_match = false;
  for (const text_part& part : parts) {
    if (part.match == previous_match && !out.empty())
      out.back().last = part.last;
    else
      out.push_back({part.first, part.last, false});
    previous_match = part.match;
  }
  return out;
}

/// Single characters that fulfil a condition are matches.
template <class Condition>
void find_characters(std::string_view text, Condition is,
                     std::vector<text_part>& into) {
  std::size_t done_to = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t first = at;
    if (!is(core::next_code(text, at)))
      continue;
    if (done_to < first)
      into.push_back({done_to, first, false});
    into.push_back({first, at, true});
    done_to = at;
  }
  if (done_to < text.size())
    into.push_back({done_to, text.size(), false});
}

/// Runs of word characters, of white space (the matches) and of others.
void find_words(std::string_view text, std::vector<text_part>& into) {
  enum class kind { word, space, other };
  std::optional<kind> last;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t first = at;
    const char32_t code = core::next_code(text, at);
    const kind is = is_word(code)    ? kind::word
                    : is_space(code) ? kind::space
                                     : kind::other;
    if (last == is)
      into.back().last = at;
    else
      into.push_back({first, at, is == kind::space});
    last = is;
  }
}

/// Cuts every piece into the parts that `parts_of` appends to its argument.
template <class PartsOf>
status cut(piece_list& list, split_behaviour behaviour, bool invert,
           PartsOf parts_of) {
  std::vector<piece> out;
  std::vector<text_part> parts;
  for (const piece& whole : list.pieces) {
    parts.clear();
    if (status found = parts_of(list.of(whole), parts); !found)
      return found;
    const bool as_it_is = behaviour == split_behaviour::isolated;
    if (!as_it_is)
      parts = split_parts(std::move(parts), behaviour, invert);
    for (const text_part& part : parts) {
      if (part.first < part.last)
        out.push_back({whole.first + part.first, whole.first + part.last,
                       whole.at_start && part.first == 0});
    }
  }
  list.pieces = std::move(out);
  return done{};
}

/// Rewrites every piece; `write` appends a piece to its last argument.
template <class Write>
void rewrite(piece_list& list, Write write) {
  std::string text;
  text.reserve(list.text.size() + list.text.size() / 4);
  for (piece& p : list.pieces) {
    const std::size_t first = text.size();
    write(p, list.of(p), text);
    p.first = first;
    p.last = text.size();
  }
  list.text = std::move(text);
}

struct splitting_visitor {
  piece_list& list;

  status operator()(const split_step& step) const {
    return cut(list, step.behaviour, step.invert,
               [&](std::string_view text, auto& parts) {
                 return step.pattern.find(text, parts);
               });
  }
  status operator()(const byte_level_step& step) const {
    if (step.add_prefix_space)
      rewrite(list, [](const piece&, std::string_view text, std::string& out) {
        if (text.front() != ' ')
          out.push_back(' ');
        out += text;
      });
    if (step.pattern) {
      if (status split = (*this)(split_step{*step.pattern}); !split)
        return split;
    }
    rewrite(list, [](const piece&, std::string_view text, std::string& out) {
      out += to_byte_level(text);
    });
    return done{};
  }
  status operator()(const metaspace_step& step) const {
    rewrite(list, [&](const piece& p, std::string_view text, std::string& out) {
      const bool wanted =
        step.scheme == prepend_scheme::always
        || (step.scheme == prepend_scheme::first && p.at_start);
      if (wanted && text.front() != ' ' && !text.starts_with(step.replacement))
        out += step.replacement;
      for (const char c : text) {
        if (c == ' ')
          out += step.replacement;
        else
          out.push_back(c);
      }
    });
    if (!step.split)
      return done{};
    const auto mark = regex::literal(step.replacement);
    return cut(list, split_behaviour::merged_with_next, false,
               [&](std::string_view text, auto& parts) {
                 return mark->find(text, parts);
               });
  }
  status operator()(const digits_step& step) const {
    return cut(list,
               step.individual ? split_behaviour::isolated
                               : split_behaviour::contiguous,
               false, [](std::string_view text, auto& parts) -> status {
                 find_characters(text, is_numeric, parts);
                 return done{};
               });
  }
  status operator()(whitespace_split_step) const {
    return cut(list, split_behaviour::removed, false,
               [](std::string_view text, auto& parts) -> status {
                 find_characters(text, is_space, parts);
                 return done{};
               });
  }
  status operator()(whitespace_step) const {
    return cut(list, split_behaviour::removed, false,
               [](std::string_view text, auto& parts) -> status {
                 find_words(text, parts);
                 return done{};
               });
  }
  status operator()(const punctuation_step& step) const {
    return cut(list, step.behaviour, false,
               [](std::string_view text, auto& parts) -> status {
                 find_characters(text, is_old_punctuation, parts);
                 return done{};
               });
  }
};

split_behaviour behaviour_of(const json_view& from) {
  const std::string_view name = from.string();
  if (name == "Removed")
    return split_behaviour::removed;
  if (name == "MergedWithPrevious")
    return split_behaviour::merged_with_previous;
  if (name == "MergedWithNext")
    return split_behaviour::merged_with_next;
  if (name == "Contiguous")
    return split_behaviour::contiguous;
  if (name != "Isolated")
    from.fail("is no known behavior");
  return split_behaviour::isolated;
}

} // namespace

std::vector<text_part> split_parts(std::vector<text_part> parts,
                                   split_behaviour behaviour, bool invert) {
  for (text_part& part : parts)
    part.match = part.match != invert;
  switch (behaviour) {
  case split_behaviour::isolated:
    break;
  case split_behaviour::removed:
    std::erase_if(parts, [](const text_part& part) { return part.match; });
    break;
  case split_behaviour::contiguous:
    return join_alike(parts);
  case split_behaviour::merged_with_previous:
    return merge(parts, [](text_part& last, const text_part& part) {
      last.last = part.last;
    });
  case split_behaviour::merged_with_next:
    std::ranges::reverse(parts);
    parts = merge(parts, [](text_part& last, const text_part& part) {
      last.first = part.first;
    });
    std::ranges::reverse(parts);
    break;
  }
  return parts;
}

static bool is_one_character(std::string_view text) {
  std::size_t one = 0;
  return !text.empty() && (core::next_code(text, one), one) == text.size();
}

metaspace_step parse_metaspace(const json_view& from) {
  metaspace_step step;
  step.replacement = from["replacement"].string();
  if (from.ok() && !is_one_character(step.replacement))
    from["replacement"].fail("is not one character");
  const json_view scheme = from["prepend_scheme"];
  if (!scheme.is_null()) {
    const std::string_view name = scheme.string();
    if (name == "first")
      step.scheme = prepend_scheme::first;
    else if (name == "never")
      step.scheme = prepend_scheme::never;
    else if (name != "always")
      scheme.fail("is none of \"first\", \"never\", \"always\"");
  }
  // The older key; files that have both agree, or are refused elsewhere too.
  if (!from["add_prefix_space"].boolean(true)) {
    if (!scheme.is_null() && step.scheme != prepend_scheme::never)
      from["add_prefix_space"].fail("contradicts prepend_scheme");
    step.scheme = prepend_scheme::never;
  }
  step.split = from["split"].boolean(true);
  return step;
}

pre_tokenizer pre_tokenizer::parse(const json_view& from) {
  pre_tokenizer made;
  if (!from.is_null())
    made.add(from, 0);
  return made;
}

void pre_tokenizer::add(const json_view& from, int depth) {
  const std::string_view type = component_type(from, depth, steps_.size());
  if (!from.ok())
    return;
  if (type == "Sequence") {
    from["pretokenizers"].each(components_max, [&](const json_view& component) {
      add(component, depth + 1);
    });
  } else if (type == "ByteLevel") {
    byte_level_step step;
    step.add_prefix_space = from["add_prefix_space"].boolean();
    if (from["use_regex"].boolean(true))
      step.pattern = *regex::compile(gpt2_pattern);
    steps_.emplace_back(std::move(step));
  } else if (type == "Split") {
    auto pattern = parse_pattern(from["pattern"]);
    const auto behaviour = behaviour_of(from["behavior"]);
    const bool invert = from["invert"].boolean(false);
    if (pattern)
      steps_.emplace_back(split_step{*pattern, behaviour, invert});
  } else if (type == "Metaspace") {
    steps_.emplace_back(parse_metaspace(from));
  } else if (type == "Digits") {
    steps_.emplace_back(digits_step{from["individual_digits"].boolean()});
  } else if (type == "WhitespaceSplit") {
    steps_.emplace_back(whitespace_split_step{});
  } else if (type == "Whitespace") {
    steps_.emplace_back(whitespace_step{});
  } else if (type == "BertPreTokenizer") {
    steps_.emplace_back(whitespace_split_step{});
    steps_.emplace_back(punctuation_step{});
  } else if (type == "Punctuation") {
    punctuation_step step;
    if (const json_view behaviour = from["behavior"]; !behaviour.is_null())
      step.behaviour = behaviour_of(behaviour);
    steps_.emplace_back(step);
  } else if (type == "CharDelimiterSplit") {
    const std::string_view delimiter = from["delimiter"].string();
    if (from.ok() && !is_one_character(delimiter))
      from["delimiter"].fail("is not one character");
    if (from.ok())
      steps_.emplace_back(
        split_step{*regex::literal(delimiter), split_behaviour::removed});
  } else {
    from["type"].fail("the pre_tokenizer \"" + std::string(type)
                      + "\" is not supported");
  }
}

status pre_tokenizer::apply(piece_list& pieces) const {
  const std::size_t bytes_max = grown_bytes_max(pieces.text.size());
  for (const pre_tokenizer_step& step : steps_) {
    if (status applied = std::visit(splitting_visitor{pieces}, step); !applied)
      return applied;
    if (pieces.text.size() > bytes_max) // eightfold by one step, at most
      return grows_too_much("ByteLevel or Metaspace", bytes_max);
  }
  return done{};
}

} // namespace shoal::model::text
