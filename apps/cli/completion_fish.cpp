// apps/cli/completion_fish.cpp -- completion for fish, a line for each option.
#include "apps/cli/completion_table.hpp"

namespace shoal::apps {
namespace {

/// Within single quotes.
std::string in_fish_quotes(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\')
      out += '\\';
    out += c;
  }
  return out + "'";
}

/// What completes a value, as arguments of `complete`; files are off elsewhere.
std::string source_of(const completed_value& v) {
  switch (v.kind) {
  case value_kind::none:
  case value_kind::free:
    return "";
  case value_kind::path:
    return " -F";
  case value_kind::folder:
    return " -a '(__fish_complete_directories)'";
  case value_kind::jobs:
    return " -a '(__shoal_names jobs)'";
  case value_kind::peers:
    return " -a '(__shoal_names peers)'";
  case value_kind::models:
    return " -F -a '(__shoal_names models)'";
  case value_kind::words:
    break;
  }
  std::string words;
  for (const std::string& word : v.words)
    words += (words.empty() ? "" : " ") + word;
  return " -a " + in_fish_quotes(words);
}

std::string option_line(const std::string& when, const completed_option& o) {
  std::string out = "complete -c shoal -n " + in_fish_quotes(when);
  for (const std::string& flag : o.flags)
    out += flag.starts_with("--") ? " -l " + flag.substr(2)
                                  : " -s " + flag.substr(1);
  const std::string source = source_of(o.value);
  if (o.value.kind != value_kind::none)
    out += (source.starts_with(" -F") ? " -r" : " -x") + source;
  return out + (o.meaning.empty() ? "" : " -d " + in_fish_quotes(o.meaning))
         + "\n";
}

constexpr char head[] =
  R"sh(# fish completion for shoal, printed by `shoal completion fish`

# Prints the command on the line so far, if there is one.
function __shoal_command
    set -l words (commandline -opc)
    set -e words[1]
    while set -q words[1]
        switch $words[1]
            case --config
                set -e words[1]
            case '-*'
            case '*'
                echo $words[1]
                return
        end
        set -e words[1]
    end
end

function __shoal_is
    test "$(__shoal_command)" = "$argv[1]"
end

# Names that the local node knows: jobs, peers, models.
function __shoal_names
    set -l words (commandline -opc)
    eval (string escape -- $words[1]) completion $argv[1] 2>/dev/null
end

complete -c shoal -f
)sh";

} // namespace

std::string fish_completion(const completion_table& t) {
  const std::string first = "__shoal_is \"\"";
  std::string out = head;
  for (const completed_option& o : t.options)
    out += option_line(first, o);
  for (const completed_command& c : t.commands) {
    out += "\ncomplete -c shoal -n " + in_fish_quotes(first) + " -a " + c.name
           + " -d " + in_fish_quotes(c.meaning) + "\n";
    const std::string here = "__shoal_is " + c.name;
    for (const completed_value& v : c.places)
      if (const std::string source = source_of(v); !source.empty())
        out += "complete -c shoal -n " + in_fish_quotes(here) + source + "\n";
    for (const completed_option& o : c.options)
      out += option_line(here, o);
  }
  return out;
}

} // namespace shoal::apps
