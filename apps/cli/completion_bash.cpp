// apps/cli/completion_bash.cpp -- completion for bash, without its helpers.
//
// Readline cuts words at = and :, so `--type=q8` arrives in three words. Names
// from the shoal are compared, never given to `compgen -W`, which would expand
// what stands in them.
#include "apps/cli/completion_table.hpp"

namespace shoal::apps {
namespace {

std::string what_for(const completed_value& v) {
  switch (v.kind) {
  case value_kind::none:
    return "none";
  case value_kind::free:
    return "free";
  case value_kind::path:
    return "path";
  case value_kind::folder:
    return "folder";
  case value_kind::jobs:
    return "jobs";
  case value_kind::peers:
    return "peers";
  case value_kind::models:
    return "models";
  case value_kind::words:
    break;
  }
  std::string out = "words";
  for (const std::string& word : v.words)
    out += " " + word;
  return out;
}

std::string flags_of(const std::vector<completed_option>& options) {
  std::string out;
  for (const completed_option& o : options)
    for (const std::string& flag : o.flags)
      if (flag.starts_with("--"))
        out += (out.empty() ? "" : " ") + flag;
  return out;
}

/// A line for what `key` ("train --out", "train 1") takes.
std::string case_line(const std::string& key, const completed_value& v) {
  return "    '" + key + "') what='" + what_for(v)
         + "' many=" + (v.many ? "1" : "") + " ;;\n";
}

std::string takes_lines(const std::string& command,
                        const std::vector<completed_option>& options) {
  std::string out;
  for (const completed_option& o : options)
    if (o.value.kind != value_kind::none)
      for (const std::string& flag : o.flags)
        out += case_line(command + " " + flag, o.value);
  return out;
}

constexpr char walk[] = R"sh(
# Completes the value of kind $what that begins with $word.
_shoal_value() {
  local each
  case $what in
    words*)
      for each in ${what#words}; do
        [[ $each == "$word"* ]] && COMPREPLY+=("$each")
      done ;;
    path | models)
      compopt -o filenames 2>/dev/null
      while IFS= read -r each; do COMPREPLY+=("$each"); done \
        < <(compgen -f -- "$word") ;;
    folder)
      compopt -o filenames 2>/dev/null
      while IFS= read -r each; do COMPREPLY+=("$each"); done \
        < <(compgen -d -- "$word") ;;
  esac
  case $what in
    jobs | peers | models)
      while IFS= read -r each; do
        [[ $each == "$word"* ]] && COMPREPLY+=("$each")
      done < <("${program/#\~/$HOME}" completion "$what" 2>/dev/null) ;;
  esac
}

_shoal() {
  local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]}
  local flags= commands= command= what=none many= left= place=0 each i
  COMPREPLY=()
  _shoal_flags ''
  [[ $word == = ]] && word=
  for ((i = 1; i < COMP_CWORD; ++i)); do
    each=${COMP_WORDS[i]}
    case $each in
      =) ;;
      -*)
        _shoal_takes "$command $each"
        left=
        [[ $what != none ]] && left=$((1 + ${many:-0} * 9999)) ;;
      *)
        if [[ -n $left && $left != 0 ]]; then
          left=$((left - 1))
        elif [[ -z $command ]]; then
          command=$each
        else
          place=$((place + 1))
        fi ;;
    esac
  done
  if [[ $word == -* ]]; then
    _shoal_flags "$command"
    what="words $flags"
  elif [[ -n $left && $left != 0 ]]; then
    : # the value of the flag before
  elif [[ -z $command ]]; then
    what="words $commands"
  else
    _shoal_takes "$command $((place + 1))"
    [[ $what == none ]] && _shoal_takes "$command many"
  fi
  _shoal_value
}
complete -F _shoal shoal
)sh";

} // namespace

std::string bash_completion(const completion_table& t) {
  std::string names;
  for (const completed_command& c : t.commands)
    names += (names.empty() ? "" : " ") + c.name;
  std::string out =
    "# bash completion for shoal, printed by `shoal completion bash`\n\n"
    "# Sets $flags to the options of a command.\n"
    "_shoal_flags() {\n  commands='"
    + names + "'\n  case $1 in\n    '') flags='" + flags_of(t.options)
    + "' ;;\n";
  for (const completed_command& c : t.commands)
    out += "    " + c.name + ") flags='" + flags_of(c.options) + "' ;;\n";
  out += "    *) flags= ;;\n  esac\n}\n\n"
         "# Sets $what to what a flag takes, or the word at a place.\n"
         "_shoal_takes() {\n  case $1 in\n"
         + takes_lines("", t.options);
  for (const completed_command& c : t.commands) {
    out += takes_lines(c.name, c.options);
    for (std::size_t i = 0; i < c.places.size(); ++i)
      out += case_line(c.name + " "
                         + (c.places[i].many ? "many" : std::to_string(i + 1)),
                       c.places[i]);
  }
  out += "    *) what=none many= ;;\n  esac\n}\n";
  return out + walk;
}

} // namespace shoal::apps
