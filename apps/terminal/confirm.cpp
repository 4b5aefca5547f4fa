// apps/terminal/confirm.cpp -- asks a question and reads the answer.
#include "apps/terminal/confirm.hpp"

#include "apps/terminal/exit_codes.hpp"

#include <unistd.h>

#include <fstream>
#include <iostream>

namespace shoal::apps {

int confirm(const irrevocable& act) {
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDERR_FILENO) != 1) {
    std::cerr << "shoal: " << act.action
              << " is not confirmed, and there is no terminal to ask on. "
              << act.what << " To go on, run `" << act.command << "`\n";
    return exit_usage;
  }
  std::cerr << act.what << "\nGo on? [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  if (answer == "y" || answer == "Y" || answer == "yes")
    return exit_done;
  std::cerr << "shoal: nothing was changed\n";
  return exit_failed;
}

std::string this_command() {
  std::ifstream words("/proc/self/cmdline", std::ios::binary);
  std::string out = "shoal", word;
  std::getline(words, word, '\0'); // the program
  while (std::getline(words, word, '\0'))
    out += " " + shell_word(word);
  return out;
}

std::string shell_word(const std::string& word) {
  constexpr const char* plain = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_-./:,@%+=";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos)
    return word;
  std::string out = "'";
  for (char c : word)
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string shell_path(const std::string& path) {
  return shell_word(path.starts_with('-') ? "./" + path : path);
}

} // namespace shoal::apps
