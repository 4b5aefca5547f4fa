// runtime/model/text/patterns/regex.cpp -- the patterns of tokenizer.json.
#include "runtime/model/text/patterns/regex.hpp"

#include "runtime/core/text/utf8.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace shoal::model::text {

namespace {

struct free_match {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct free_context {
  void operator()(pcre2_match_context* c) const { pcre2_match_context_free(c); }
};

std::string error_text(int code) {
  PCRE2_UCHAR buffer[256] = {};
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

std::string shown(std::string_view pattern) {
  constexpr std::size_t shown_bytes_max = 120;
  std::string text = "regular expression '";
  text += core::replace_broken(pattern.substr(0, shown_bytes_max));
  return text + (pattern.size() > shown_bytes_max ? "...'" : "'");
}

pcre2_match_context* make_limits() {
  pcre2_match_context* limits = pcre2_match_context_create(nullptr);
  if (limits != nullptr) {
    pcre2_set_match_limit(limits, regex_steps_max);
    pcre2_set_heap_limit(limits, regex_heap_kib_max);
  }
  return limits;
}

} // namespace

result<regex> regex::literal(std::string_view text) {
  if (text.empty())
    return failure{"the pattern is an empty text"};
  regex made;
  made.source_ = text;
  return made;
}

result<regex> regex::compile(std::string_view pattern) {
  if (pattern.empty())
    return failure{"the regular expression is empty"};
  if (pattern.size() > regex_bytes_max)
    return failure{shown(pattern) + ": longer than "
                   + std::to_string(regex_bytes_max) + " bytes"};
  auto translated = to_pcre2(pattern);
  if (!translated)
    return failure{shown(pattern) + ": " + translated.message()};
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_compile_context* context = pcre2_compile_context_create(nullptr);
  if (context == nullptr)
    return failure{shown(pattern) + ": out of memory"};
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  pcre2_code* code = pcre2_compile(
    reinterpret_cast<PCRE2_SPTR>(translated->data()), translated->size(),
    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error,
    &offset, context);
  pcre2_compile_context_free(context);
  if (code == nullptr)
    return failure{shown(pattern) + ": " + error_text(error)};
  regex made;
  made.source_ = pattern;
  made.code_ = std::shared_ptr<const void>(
    code, [code](const void*) { pcre2_code_free(code); });
  // Without a just-in-time compiler, matching interprets.
  (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  return made;
}

status regex::find(std::string_view text, std::vector<text_part>& into) const {
  std::size_t done_to = 0; // everything before it is appended
  auto add = [&](std::size_t first, std::size_t last) {
    if (done_to != first)
      into.push_back({done_to, first, false});
    into.push_back({first, last, true});
    done_to = last;
  };
  if (text.empty())
    return done{};
  if (is_literal()) {
    for (std::size_t at = text.find(source_); at != std::string_view::npos;
         at = text.find(source_, at + source_.size()))
      add(at, at + source_.size());
  } else {
    const auto* code = static_cast<const pcre2_code*>(code_.get());
    const std::unique_ptr<pcre2_match_data, free_match> data(
      pcre2_match_data_create(1, nullptr));
    const std::unique_ptr<pcre2_match_context, free_context> limits(
      make_limits());
    if (data == nullptr || limits == nullptr)
      return failure{shown(source_) + ": out of memory"};
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    const PCRE2_SIZE* at = pcre2_get_ovector_pointer(data.get());
    bool matched = false;
    std::size_t matched_to = 0;
    for (std::size_t from = 0; from <= text.size();) {
      int rc = pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK,
                           data.get(), limits.get());
      if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(code, subject, text.size(), from,
                         PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data.get(),
                         limits.get());
      if (rc == PCRE2_ERROR_NOMATCH)
        break;
      if (rc < 0)
        return failure{shown(source_) + ": on a text of "
                       + std::to_string(text.size())
                       + " bytes: " + error_text(rc)};
      const std::size_t first = at[0];
      const std::size_t last = at[1];
      if (last < first) // \K in a look-ahead; none of ours gets here
        return failure{shown(source_) + ": a match ends before it starts"};
      if (first == last && matched && matched_to == last) {
        // An empty match just after a match does not count.
        if (from < text.size())
          core::next_code(text, from);
        else
          ++from;
        continue;
      }
      add(first, last);
      matched = true;
      matched_to = last;
      from = last;
    }
  }
  if (done_to != text.size())
    into.push_back({done_to, text.size(), false});
  return done{};
}

failure grows_too_much(std::string_view step, std::size_t bytes_max) {
  return failure{"the step " + std::string(step)
                 + " of tokenizer.json makes more than "
                 + std::to_string(bytes_max)
                 + " bytes of a text (grown_bytes_max): repair the file or use "
                   "another tokenizer"};
}

status replace_all(const regex& pattern, std::string_view content,
                   std::size_t bytes_max, std::string& text, bool* cut_left) {
  std::vector<text_part> parts;
  if (status found = pattern.find(text, parts); !found)
    return found;
  if (parts.empty() || (parts.size() == 1 && !parts.front().match))
    return done{};
  std::size_t bytes = 0;
  for (const text_part& part : parts) {
    const std::size_t more =
      part.match ? content.size() : part.last - part.first;
    if (more > bytes_max - bytes)
      return grows_too_much("Replace", bytes_max);
    bytes += more;
  }
  std::string out;
  out.reserve(bytes);
  for (const text_part& part : parts)
    out += part.match ? content
                      : std::string_view(text).substr(part.first,
                                                      part.last - part.first);
  if (const text_part& first = parts.front();
      cut_left != nullptr && first.match && first.last != 0) {
    std::size_t one = 0;
    core::next_code(text, one);
    *cut_left = *cut_left || content.empty() || one != first.last;
  }
  text = std::move(out);
  return done{};
}

} // namespace shoal::model::text
