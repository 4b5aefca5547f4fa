// runtime/model/text/token_decoder.cpp -- "decoder": joins the texts of tokens.
#include "runtime/model/text/token_decoder.hpp"

#include "runtime/core/text/utf8.hpp"
#include "runtime/model/text/byte_level.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace shoal::model::text {

namespace {

using texts = std::vector<std::string>;

/// The byte of a token such as <0x0A>.
std::optional<char> byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>')
    return std::nullopt;
  unsigned value = 0;
  for (const char c : token.substr(3, 2)) {
    unsigned digit = 0;
    if (c >= '0' && c <= '9')
      digit = static_cast<unsigned>(c - '0');
    else if (c >= 'A' && c <= 'F')
      digit = static_cast<unsigned>(c - 'A' + 10);
    else if (c >= 'a' && c <= 'f')
      digit = static_cast<unsigned>(c - 'a' + 10);
    else if (c != '+' || value != 0 || &c != token.data() + 3)
      return std::nullopt; // Rust reads "+A" as 10
    value = value * 16 + digit;
  }
  return static_cast<char>(value);
}

std::string stripped(const strip_decoding& step, const std::string& text) {
  std::u32string codes;
  for (std::size_t at = 0; at < text.size();)
    codes.push_back(core::next_code(text, at));
  std::size_t first = 0;
  while (first < codes.size() && first < step.start
         && codes[first] == step.content)
    ++first;
  std::size_t last = codes.size();
  while (last > first && codes.size() - last < step.stop
         && codes[last - 1] == step.content)
    --last;
  std::string out;
  for (std::size_t i = first; i < last; ++i)
    core::append_code(out, codes[i]);
  return out;
}

std::string
with_spaces(const metaspace_step& step, std::string_view text, bool first) {
  std::string out;
  const bool nothing = first && step.scheme != prepend_scheme::never;
  while (!text.empty()) {
    if (text.starts_with(step.replacement)) {
      if (!nothing)
        out.push_back(' ');
      text.remove_prefix(step.replacement.size());
    } else {
      out.push_back(text.front());
      text.remove_prefix(1);
    }
  }
  return out;
}

void replace_each(std::string& text, std::string_view from,
                  std::string_view with) {
  std::string out;
  std::size_t done_to = 0;
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, done_to)) {
    out.append(text, done_to, at - done_to);
    out += with;
    done_to = at + from.size();
  }
  if (done_to != 0)
    text = out.append(text, done_to);
}

std::string word_piece_text(const word_piece_decoding& step,
                            std::string_view token, bool first) {
  std::string text(token);
  if (!first) {
    if (token.starts_with(step.prefix))
      text.erase(0, step.prefix.size());
    else
      text.insert(0, 1, ' ');
  }
  if (!step.cleanup)
    return text;
  // One after the other: what an earlier one makes, a later one finds.
  constexpr std::pair<std::string_view, std::string_view> rules[] = {
    {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
    {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
    {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, with] : rules)
    replace_each(text, from, with);
  return text;
}

std::string
replaced(const replace_step& step, std::size_t bytes_max, std::string text) {
  (void)replace_all(step.pattern, step.content, bytes_max, text);
  return text;
}

std::size_t bytes_of(const texts& all) {
  std::size_t bytes = 0;
  for (const std::string& text : all)
    bytes += text.size();
  return bytes;
}

void end_run(std::string& run, texts& out) {
  if (run.empty())
    return;
  if (core::is_utf8(run))
    out.push_back(run);
  else
    out.insert(out.end(), run.size(), std::string(core::replacement_character));
  run.clear();
}

struct whole_applier {
  std::size_t bytes_max; ///< of all texts together

  texts operator()(byte_level_decoding, const texts& all) const {
    std::string bytes;
    for (const std::string& text : all)
      append_from_byte_level(text, bytes);
    return {core::replace_broken(bytes)};
  }
  texts operator()(byte_fallback_decoding, texts all) const {
    texts out;
    std::string run;
    for (std::string& text : all) {
      if (const auto byte = byte_of(text)) {
        run.push_back(*byte);
        continue;
      }
      end_run(run, out);
      out.push_back(std::move(text));
    }
    end_run(run, out);
    return out;
  }
  texts operator()(fuse_decoding, const texts& all) const {
    std::string one;
    for (const std::string& text : all)
      one += text;
    return {std::move(one)};
  }
  texts operator()(const strip_decoding& step, texts all) const {
    for (std::string& text : all)
      text = stripped(step, text);
    return all;
  }
  texts operator()(const replace_step& step, texts all) const {
    std::size_t bytes = bytes_of(all);
    for (std::string& text : all) {
      const std::size_t others = bytes - text.size();
      text = replaced(step, bytes_max - std::min(bytes_max, others),
                      std::move(text));
      bytes = others + text.size();
    }
    return all;
  }
  texts operator()(const word_piece_decoding& step, texts all) const {
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = word_piece_text(step, all[i], i == 0);
    return all;
  }
  texts operator()(const metaspace_step& step, texts all) const {
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = with_spaces(step, all[i], i == 0);
    return all;
  }
};

bool fuses(const decoder_step& step) {
  return std::holds_alternative<fuse_decoding>(step)
         || std::holds_alternative<byte_level_decoding>(step);
}

/// The same at the start of a text of which `text` is the first part.
std::string start_stripped(const strip_decoding& step, std::string_view text) {
  std::size_t at = 0;
  for (std::size_t n = 0; n != step.start && at != text.size(); ++n) {
    std::size_t next = at;
    if (core::next_code(text, next) != step.content)
      break;
    at = next;
  }
  return std::string(text.substr(at));
}

/// What the steps before one have done to the texts.
struct passed_steps {
  bool fused = false; ///< there is one text, which comes in parts
  bool bytes = false; ///< a run of bytes is one text, which comes in parts

  void add(const decoder_step& step) {
    fused = fused || fuses(step);
    bytes = bytes || std::holds_alternative<byte_fallback_decoding>(step);
  }
  /// Whether a step does the same to a text in parts as to the whole.
  bool allow_parts(const decoder_step& step) const {
    if (std::holds_alternative<word_piece_decoding>(step))
      return !fused && !bytes;
    const auto* strip = std::get_if<strip_decoding>(&step);
    return !fused || fuses(step) || (strip != nullptr && strip->stop == 0);
  }
};

} // namespace

token_decoder token_decoder::parse(const json_view& from) {
  token_decoder made;
  if (!from.is_null())
    made.add(from, 0);
  made.given_ = !from.is_null();
  return made;
}

void token_decoder::add(const json_view& from, int depth) {
  const std::string_view type = component_type(from, depth, steps_.size());
  if (!from.ok())
    return;
  if (type == "Sequence") {
    from["decoders"].each(components_max, [&](const json_view& component) {
      add(component, depth + 1);
    });
  } else if (type == "ByteLevel") {
    steps_.emplace_back(byte_level_decoding{});
  } else if (type == "ByteFallback") {
    steps_.emplace_back(byte_fallback_decoding{});
  } else if (type == "Fuse") {
    steps_.emplace_back(fuse_decoding{});
  } else if (type == "Strip") {
    strip_decoding step;
    const std::string_view content = from["content"].string();
    step.start = from["start"].number(strip_characters_max);
    step.stop = from["stop"].number(strip_characters_max);
    std::size_t at = 0;
    if (!content.empty())
      step.content = core::next_code(content, at);
    if (content.empty() || at != content.size())
      from["content"].fail("is not one character");
    steps_.emplace_back(step);
  } else if (type == "Replace") {
    auto pattern = parse_pattern(from["pattern"]);
    const std::string_view content = from["content"].string();
    if (pattern)
      steps_.emplace_back(replace_step{*pattern, std::string(content)});
  } else if (type == "Metaspace") {
    steps_.emplace_back(parse_metaspace(from));
  } else if (type == "WordPiece") {
    steps_.emplace_back(word_piece_decoding{
      std::string(from["prefix"].string()), from["cleanup"].boolean()});
  } else {
    from["type"].fail("the decoder \"" + std::string(type)
                      + "\" is not supported");
  }
}

std::string token_decoder::decode(std::vector<std::string> tokens) const {
  const whole_applier apply{grown_bytes_max(bytes_of(tokens))};
  for (const decoder_step& step : steps_)
    tokens = std::visit(
      [&](const auto& s) { return apply(s, std::move(tokens)); }, step);
  std::string out;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!given_ && i > 0)
      out.push_back(' ');
    out += tokens[i];
  }
  return out;
}

bool token_decoder::is_by_token() const {
  passed_steps before;
  for (const decoder_step& step : steps_) {
    if (!before.allow_parts(step))
      return false;
    before.add(step);
  }
  return given_;
}

std::string
token_decoder::token_bytes(const std::string& token, bool first) const {
  std::string text = token;
  bool fused = false, is_byte = false;
  for (const decoder_step& step : steps_) {
    if (is_byte && !core::is_utf8(text)) // later steps see whole characters
      break;
    if (const auto* strip = std::get_if<strip_decoding>(&step)) {
      if (!fused)
        text = stripped(*strip, text);
      else if (first) // else of the start only
        text = start_stripped(*strip, text);
    } else if (const auto* replace = std::get_if<replace_step>(&step)) {
      text = replaced(*replace, grown_bytes_max(text.size()), text);
    } else if (const auto* meta = std::get_if<metaspace_step>(&step)) {
      text = with_spaces(*meta, text, first);
    } else if (const auto* word = std::get_if<word_piece_decoding>(&step)) {
      text = word_piece_text(*word, text, first);
    } else if (std::holds_alternative<byte_level_decoding>(step)) {
      std::string bytes;
      append_from_byte_level(text, bytes);
      text = std::move(bytes);
      is_byte = true;
    } else if (std::holds_alternative<byte_fallback_decoding>(step)) {
      if (const auto byte = byte_of(text)) {
        text = std::string(1, *byte);
        is_byte = true;
      }
    }
    fused = fused || fuses(step);
  }
  return text;
}

text_stream::text_stream(const token_decoder& decoder)
  : decoder_(&decoder), states_(decoder.steps_.size() + 1) {
  passed_steps before;
  for (const decoder_step& step : decoder.steps_) {
    fused_.push_back(before.fused);
    hold_ = hold_ || !before.allow_parts(step);
    before.add(step);
  }
}

std::string text_stream::push(std::string_view token) {
  std::string out;
  goes_on_ = false;
  if (hold_)
    held_.emplace_back(token);
  else
    pass(0, std::string(token), grown_bytes_max(token.size()), out);
  return out;
}

std::string text_stream::finish() {
  if (hold_)
    return decoder_->decode(std::exchange(held_, {}));
  std::string out;
  end(0, out);
  return out;
}

/// The part of the held-back bytes that is certain; at the end, all of it.
std::string text_stream::bytes_of_run(std::size_t step, bool at_end) {
  const bool each = // ByteFallback replaces every byte, ByteLevel a broken part
    std::holds_alternative<byte_fallback_decoding>(decoder_->steps_[step]);
  std::string& run = states_[step].pending;
  std::string out;
  std::string_view rest = run;
  while (!rest.empty()) {
    const core::character c = core::first_character(rest);
    if (c.is == core::character::kind::cut_off && !at_end)
      break;
    if (c.is == core::character::kind::whole)
      out += rest.substr(0, c.bytes);
    else
      for (std::size_t i = 0; i < (each ? c.bytes : 1); ++i)
        out += core::replacement_character;
    rest.remove_prefix(c.bytes);
  }
  run = std::string(rest);
  return out;
}

/// Passes a text to a step, and its result to the next step.
void text_stream::pass(std::size_t step, std::string text,
                       std::size_t bytes_max, std::string& out) {
  if (step == decoder_->steps_.size()) {
    if (!decoder_->given_ && states_[step].started)
      out.push_back(' ');
    states_[step].started = true;
    out += text;
    return;
  }
  state& own = states_[step];
  const decoder_step& what = decoder_->steps_[step];
  if (std::holds_alternative<byte_level_decoding>(what)) {
    append_from_byte_level(text, own.pending);
    text = bytes_of_run(step, false);
  } else if (std::holds_alternative<byte_fallback_decoding>(what)) {
    if (const auto byte = byte_of(text)) {
      own.pending.push_back(*byte);
      text = bytes_of_run(step, false);
      if (text.empty())
        return;
      goes_on_ = std::exchange(own.started, true);
    } else {
      goes_on_ = std::exchange(own.started, false);
      if (!own.pending.empty())
        pass(step + 1, bytes_of_run(step, true), bytes_max, out);
      goes_on_ = false;
    }
  } else if (const auto* strip = std::get_if<strip_decoding>(&what)) {
    if (!fused_[step]) {
      text = stripped(*strip, text);
    } else if (own.cutting) {
      std::size_t at = 0;
      while (at < text.size() && own.cutting) {
        std::size_t next = at;
        own.cutting = own.cut < strip->start
                      && core::next_code(text, next) == strip->content;
        own.cut += own.cutting;
        at = own.cutting ? next : at;
      }
      text.erase(0, at);
    }
  } else if (const auto* replace = std::get_if<replace_step>(&what)) {
    text = replaced(*replace, bytes_max, std::move(text));
  } else if (const auto* space = std::get_if<metaspace_step>(&what)) {
    own.first = goes_on_ ? own.first : !own.started;
    own.started = true;
    text = with_spaces(*space, text, own.first);
  } else if (const auto* word = std::get_if<word_piece_decoding>(&what)) {
    text = word_piece_text(*word, text, !own.started);
    own.started = true;
  }
  pass(step + 1, std::move(text), bytes_max, out);
}

void text_stream::end(std::size_t step, std::string& out) {
  if (step == decoder_->steps_.size())
    return;
  if (!states_[step].pending.empty()) {
    std::string rest = bytes_of_run(step, true);
    const std::size_t bytes_max = grown_bytes_max(rest.size());
    goes_on_ = std::exchange(states_[step].started, false);
    pass(step + 1, std::move(rest), bytes_max, out);
  }
  end(step + 1, out);
}

} // namespace shoal::model::text
