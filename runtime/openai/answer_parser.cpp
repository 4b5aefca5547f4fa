// runtime/openai/answer_parser.cpp -- states of an answer, one after the other.
#include "runtime/openai/answer_parser.hpp"

#include "runtime/files/json.hpp"

#include <algorithm>
#include <utility>

namespace shoal::openai {
namespace {

constexpr std::string_view think_begin = "<think>", think_end = "</think>";
constexpr std::string_view hermes_end = "</tool_call>";
constexpr std::string_view args_mark = "[ARGS]";
constexpr std::string_view spaces = " \t\r\n";

/// Where `mark` begins; else where a part of it begins that the text ends with;
/// else the size of the text.
std::size_t find_or_part(std::string_view text, std::string_view mark) {
  if (const std::size_t at = text.find(mark); at != text.npos)
    return at;
  for (std::size_t size = std::min(text.size(), mark.size() - 1); size > 0;
       --size)
    if (text.ends_with(mark.substr(0, size)))
      return text.size() - size;
  return text.size();
}

/// Reads JSON that may not be complete.
class json_reader {
public:
  explicit json_reader(std::string_view text) : text_(text) {}
  enum class outcome { done, more, wrong };

  std::size_t at = 0;

  outcome sign(char c) {
    skip_spaces();
    if (at == text_.size())
      return outcome::more;
    if (text_[at] != c)
      return outcome::wrong;
    ++at;
    return outcome::done;
  }
  char peek() {
    skip_spaces();
    return at < text_.size() ? text_[at] : '\0';
  }
  outcome string(std::string& into) {
    if (const outcome o = sign('"'); o != outcome::done)
      return o;
    for (std::size_t end = at; end < text_.size(); ++end)
      if (text_[end] == '\\')
        ++end;
      else if (text_[end] == '"') {
        const auto parsed =
          model::parse_json(text_.substr(at - 1, end + 2 - at));
        if (!parsed.is_string())
          return outcome::wrong;
        into = parsed.get<std::string>();
        at = end + 1;
        return outcome::done;
      }
    return outcome::more;
  }
  /// Skips a value of any kind.
  outcome value() {
    const char first = peek();
    if (first == '"') {
      std::string ignored;
      return string(ignored);
    }
    std::size_t depth = 0;
    bool quoted = false;
    for (std::size_t i = at; i < text_.size(); ++i) {
      const char c = text_[i];
      if (quoted) {
        i += c == '\\' ? 1 : 0;
        quoted = c != '"';
      } else if (c == '"')
        quoted = true;
      else if (c == '{' || c == '[')
        ++depth;
      else if ((c == '}' || c == ']') && depth > 0) {
        if (--depth == 0) {
          at = i + 1;
          return outcome::done;
        }
      } else if (depth == 0 && (c == ',' || c == '}' || c == ']')) {
        at = i;
        return outcome::done;
      }
    }
    return outcome::more;
  }
  void skip_spaces() {
    while (at < text_.size() && spaces.find(text_[at]) != spaces.npos)
      ++at;
  }

private:
  std::string_view text_;
};

/// The head of {"name": ..., "arguments": {...}}, in any order of keys.
struct call_head {
  json_reader::outcome is = json_reader::outcome::more;
  std::string name;
  std::size_t arguments = 0; ///< where they begin
  std::size_t bytes = 0;     ///< of the head; of the whole, if it is known
  bool whole = false;        ///< the name comes behind the arguments, or alone
  std::size_t arguments_end = 0;
};

call_head head_of(std::string_view text) {
  using outcome = json_reader::outcome;
  call_head out;
  json_reader in(text);
  const auto read = [&]() -> outcome {
    if (const outcome o = in.sign('{'); o != outcome::done)
      return o;
    for (;;) {
      std::string key;
      if (const outcome o = in.string(key); o != outcome::done)
        return o;
      if (const outcome o = in.sign(':'); o != outcome::done)
        return o;
      if (in.peek() == '\0')
        return outcome::more;
      if (key == "name") {
        if (const outcome o = in.string(out.name); o != outcome::done)
          return o;
        if (out.name.empty())
          return outcome::wrong;
      } else {
        const bool arguments =
          (key == "arguments" || key == "parameters") && in.peek() == '{';
        if (arguments) {
          out.arguments = out.bytes = in.at;
          if (!out.name.empty())
            return outcome::done;
        }
        if (const outcome o = in.value(); o != outcome::done)
          return o;
        if (arguments)
          out.arguments_end = in.at;
      }
      const char next = in.peek();
      if (next == '\0')
        return outcome::more;
      ++in.at;
      if (next == '}') {
        out.whole = true;
        out.bytes = in.at;
        return out.name.empty() ? outcome::wrong : outcome::done;
      }
      if (next != ',')
        return outcome::wrong;
    }
  };
  out.is = read();
  return out;
}

} // namespace

answer_parser::answer_parser(answer_format format, std::uint64_t seed)
  : format_(format), seed_(seed),
    state_(format.begins_thinking ? state::thinking : state::begin) {
}

answer_parser::piece answer_parser::push(std::string_view text) {
  text_ += text;
  while (step(false)) {
  }
  return std::exchange(out_, {});
}

answer_parser::piece answer_parser::finish() {
  while (step(true)) {
  }
  return std::exchange(out_, {});
}

bool answer_parser::first_call_over() const noexcept {
  if (calls_ != 1)
    return calls_ > 1;
  const bool closing = format_.calls == call_format::hermes || in_call_;
  return state_ != state::arguments && (state_ != state::behind || !closing);
}

std::string answer_parser::take(std::size_t bytes) {
  std::string out = text_.substr(0, bytes);
  text_.erase(0, bytes);
  return out;
}

bool answer_parser::step(bool last) {
  switch (state_) {
  case state::begin:
    return begin(last);
  case state::thinking:
    return think(last);
  case state::content:
    return read_content(last);
  case state::head:
    return read_head(last);
  case state::arguments:
    return read_arguments();
  case state::behind:
    return end_call(last);
  }
  return false;
}

std::string_view answer_parser::marker() const {
  switch (format_.calls) {
  case call_format::hermes:
    return "<tool_call>";
  case call_format::llama:
    return "<|python_tag|>";
  case call_format::mistral:
    return "[TOOL_CALLS]";
  case call_format::none:
    break;
  }
  return {};
}

bool answer_parser::begin(bool last) {
  const std::size_t at =
    std::min(text_.find_first_not_of(spaces), text_.size());
  const std::string_view rest = std::string_view(text_).substr(at);
  if (rest.empty() && !last)
    return false;
  if (format_.thinks) {
    if (rest.starts_with(think_begin)) {
      take(at + think_begin.size());
      state_ = state::thinking;
      return true;
    }
    if (!last && think_begin.starts_with(rest))
      return false;
  }
  if (format_.calls == call_format::llama && rest.starts_with('{')) {
    taken_ = take(at);
    state_ = state::head;
    return true;
  }
  state_ = state::content;
  return true;
}

/// White space at both ends is none of the thought's.
bool answer_parser::think(bool last) {
  std::size_t end = find_or_part(text_, think_end);
  const bool ends = std::string_view(text_).substr(end).starts_with(think_end);
  if (!ends && last)
    end = text_.size();
  std::string thought = std::exchange(held_spaces_, {}) + take(end);
  if (!told_thought_)
    thought.erase(0,
                  std::min(thought.find_first_not_of(spaces), thought.size()));
  const std::size_t trimmed = thought.find_last_not_of(spaces) + 1;
  if (!ends)
    held_spaces_ = thought.substr(trimmed);
  thought.resize(trimmed);
  told_thought_ = told_thought_ || !thought.empty();
  out_.reasoning += thought;
  if (!ends)
    return false;
  take(think_end.size());
  held_spaces_.clear();
  format_.thinks = false;
  state_ = state::begin;
  // The answer begins behind the line ends.
  told_thought_ = true;
  return true;
}

void answer_parser::tell_content(std::string text) {
  out_.content += text;
}

bool answer_parser::read_content(bool last) {
  if (told_thought_) { // white space between thought and answer
    const std::size_t at =
      std::min(text_.find_first_not_of(spaces), text_.size());
    take(at);
    if (text_.empty())
      return false;
    told_thought_ = false;
  }
  const std::string_view mark = marker();
  std::size_t end = mark.empty() ? text_.size() : find_or_part(text_, mark);
  const bool calls =
    !mark.empty() && std::string_view(text_).substr(end).starts_with(mark);
  if (!calls && last)
    end = text_.size();
  // White space before a call is none of the content's.
  std::string content = std::exchange(held_spaces_, {}) + take(end);
  if (!mark.empty() && !(last && !calls)) {
    const std::size_t trimmed = content.find_last_not_of(spaces) + 1;
    held_spaces_ = content.substr(trimmed);
    content.resize(trimmed);
  }
  tell_content(std::move(content));
  if (!calls)
    return false;
  taken_ = std::exchange(held_spaces_, {}) + take(mark.size());
  in_list_ = false;
  state_ = state::head;
  return true;
}

/// What was taken for a call's begin is content.
void answer_parser::no_call() {
  tell_content(std::exchange(taken_, {}));
  // All of the rest up to another marker.
  state_ = state::content;
  if (format_.calls != call_format::hermes)
    format_.calls = call_format::none;
}

std::string answer_parser::id_of(std::size_t call) const {
  constexpr std::string_view letters =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  // splitmix64, as kernels/inference/sampling.hpp has it.
  std::uint64_t z = seed_ + 0x9e3779b97f4a7c15 * (call + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  z ^= z >> 31;
  std::string out; // nine letters, which mistral's templates ask for
  for (int i = 0; i < 9; ++i, z /= letters.size())
    out += letters[z % letters.size()];
  return format_.calls == call_format::mistral ? out : "call_" + out;
}

void answer_parser::begin_call(std::string name) {
  tool_call& c = out_.calls.emplace_back();
  c.index = calls_;
  c.id = id_of(calls_);
  c.name = std::move(name);
  ++calls_;
  taken_.clear();
  depth_ = 0;
  quoted_ = escaped_ = false;
}

bool answer_parser::read_head(bool last) {
  using outcome = json_reader::outcome;
  const std::size_t at =
    std::min(text_.find_first_not_of(spaces), text_.size());
  if (at == text_.size()) {
    if (last && !text_.empty())
      taken_ += take(at);
    if (last)
      no_call();
    return last && !text_.empty();
  }
  if (format_.calls == call_format::mistral && !in_list_) {
    if (text_[at] == '[') {
      taken_ += take(at + 1);
      in_list_ = true;
      return true;
    }
    if (text_[at] != '{') { // a name, then its arguments
      const std::size_t brace = text_.find('{', at);
      if (brace == text_.npos) {
        if (!last && text_.size() < call_head_bytes_max)
          return false;
        no_call();
        return true;
      }
      std::string name = text_.substr(at, brace - at);
      if (const std::size_t args = name.find(args_mark); args != name.npos)
        name.resize(args);
      name.resize(name.find_last_not_of(spaces) + 1);
      if (name.empty() || name.find_first_of(" \n[]{}\"") != name.npos) {
        no_call();
        return true;
      }
      take(brace);
      begin_call(std::move(name));
      in_call_ = false;
      state_ = state::arguments;
      return true;
    }
  }
  in_call_ = true;
  call_head head = head_of(text_);
  if (head.is == outcome::more && !last && text_.size() < call_head_bytes_max)
    return false;
  if (head.is != outcome::done) {
    no_call();
    return true;
  }
  begin_call(std::move(head.name));
  if (!head.whole) {
    take(head.arguments);
    state_ = state::arguments;
    return true;
  }
  tool_call& c = out_.calls.back();
  c.arguments =
    head.arguments_end > 0
      ? text_.substr(head.arguments, head.arguments_end - head.arguments)
      : "{}";
  take(head.bytes - 1); // its last brace is behind the arguments
  state_ = state::behind;
  return true;
}

/// The bytes up to the brace that closes the outermost one.
std::size_t answer_parser::to_closing_brace(bool& found) {
  std::size_t i = 0;
  for (; i < text_.size() && !found; ++i) {
    const char c = text_[i];
    if (escaped_)
      escaped_ = false;
    else if (quoted_ && c == '\\')
      escaped_ = true;
    else if (c == '"')
      quoted_ = !quoted_;
    else if (!quoted_ && (c == '{' || c == '['))
      ++depth_;
    else if (!quoted_ && (c == '}' || c == ']'))
      found = --depth_ == 0;
  }
  return i;
}

bool answer_parser::read_arguments() {
  bool over = false;
  const std::size_t i = to_closing_brace(over);
  if (i == 0)
    return false;
  if (out_.calls.empty() || out_.calls.back().index + 1 != calls_) {
    tool_call& c = out_.calls.emplace_back();
    c.index = calls_ - 1;
  }
  out_.calls.back().arguments += take(i);
  if (over)
    state_ = state::behind;
  return over;
}

/// Skips to where the next call or content begins.
bool answer_parser::end_call(bool last) {
  const auto first = [&] {
    take(std::min(text_.find_first_not_of(spaces), text_.size()));
    return text_.empty() ? '\0' : text_[0];
  };
  if (format_.calls == call_format::hermes) {
    const std::size_t end = find_or_part(text_, hermes_end);
    take(end);
    if (!text_.starts_with(hermes_end))
      return false;
    take(hermes_end.size());
    told_thought_ = true; // white space up to the next call
    state_ = state::content;
    return true;
  }
  if (in_call_) { // other keys, and its brace
    depth_ = std::max<std::size_t>(depth_, 1);
    bool found = false;
    take(to_closing_brace(found));
    in_call_ = !found;
    return found;
  }
  const char c = first();
  if (c == '\0' || last)
    return false;
  if (format_.calls == call_format::llama) {
    if (c == ';') {
      take(1);
      return true;
    }
    state_ = c == '{' ? state::head : state::content;
    if (c != '{')
      format_.calls = call_format::none;
    return true;
  }
  if (in_list_ && c == ',') {
    take(1);
    state_ = state::head;
    return true;
  }
  if (in_list_ && c == ']') {
    take(1);
    in_list_ = false;
    return true;
  }
  state_ = state::content;
  return true;
}

} // namespace shoal::openai
