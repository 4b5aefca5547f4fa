// apps/chat/chat_words.hpp -- lines that begin with a slash.
//
// Two slashes begin a question with one slash: "//etc is what?".
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace shoal::apps {

enum class chat_word {
  help,
  system,
  clear,
  retry,
  save,
  load,
  set,
  stats,
  exit,
  unknown, ///< `rest` says so
  none,    ///< a question: `rest`
};

struct chat_line {
  chat_word word = chat_word::none;
  std::string rest; ///< what follows the word, without spaces around it
};

chat_line read_chat_line(std::string_view line);

/// What `/help` shows.
std::string chat_help();

} // namespace shoal::apps
