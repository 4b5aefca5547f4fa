// apps/chat/chat_words.cpp -- one table of words, for reading and for the help.
#include "apps/chat/chat_words.hpp"

#include "runtime/core/text/nearest.hpp"
#include "runtime/core/text/shown.hpp"

#include <algorithm>
#include <vector>

namespace shoal::apps {
namespace {

struct word_text {
  chat_word word;
  std::string_view name;
  const char* value;
  const char* meaning;
};

constexpr word_text words[] = {
  {chat_word::help, "/help", "", "show this"},
  {chat_word::system, "/system", " [TEXT]",
   "what the model is told first; without TEXT nothing"},
  {chat_word::clear, "/clear", "", "forget the conversation"},
  {chat_word::retry, "/retry", "", "ask the last question again"},
  {chat_word::save, "/save", " FILE", "write the conversation to a file"},
  {chat_word::load, "/load", " FILE", "go on with a conversation in a file"},
  {chat_word::set, "/set", " [NAME [VALUE]]",
   "set temperature, top_p, max_tokens or seed; without VALUE as the model "
   "has it"},
  {chat_word::stats, "/stats", "", "how long and how fast it was so far"},
  {chat_word::exit, "/exit", "", "end (also Ctrl-D)"},
};

std::string trimmed(std::string_view text) {
  constexpr std::string_view space = " \t\n";
  text.remove_prefix(std::min(text.find_first_not_of(space), text.size()));
  return std::string(text.substr(0, text.find_last_not_of(space) + 1));
}

} // namespace

chat_line read_chat_line(std::string_view line) {
  if (line.starts_with("//"))
    return {chat_word::none, std::string(line.substr(1))};
  if (!line.starts_with('/'))
    return {chat_word::none, std::string(line)};
  const auto end = std::min(line.find_first_of(" \t\n"), line.size());
  const std::string_view name = line.substr(0, end);
  std::vector<std::string_view> names;
  for (const word_text& w : words) {
    if (w.name == name)
      return {w.word, trimmed(line.substr(end))};
    names.push_back(w.name);
  }
  return {chat_word::unknown, "there is no " + core::shown(name, 80)
                                + core::did_you_mean(name, names)
                                + "; /help lists what there is"};
}

std::string chat_help() {
  constexpr std::size_t column = 24;
  std::string out;
  for (const word_text& w : words) {
    std::string left = std::string(w.name) + w.value;
    left.resize(std::max(column, left.size() + 2), ' ');
    out += left + w.meaning + "\n";
  }
  return out
         + "A backslash at the end of a line goes on in the next one; lines "
           "between\n\"\"\" and \"\"\" are one question. Ctrl-C stops an "
           "answer.\n";
}

} // namespace shoal::apps
