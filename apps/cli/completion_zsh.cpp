// apps/cli/completion_zsh.cpp -- completion for zsh, by its _arguments.
#include "apps/cli/completion_table.hpp"

namespace shoal::apps {
namespace {

/// Text within single quotes, inside a specification of _arguments.
std::string in_zsh_quotes(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\')
      out += '\\';
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return out;
}

/// ":FILE:_files"; "" for a flag.
std::string action_for(const completed_value& v) {
  const std::string begin = ":" + in_zsh_quotes(v.placeholder) + ":";
  switch (v.kind) {
  case value_kind::none:
    return "";
  case value_kind::free:
    return begin + " ";
  case value_kind::path:
    return begin + "_files";
  case value_kind::folder:
    return begin + "_files -/";
  case value_kind::jobs:
    return begin + "_shoal_names jobs";
  case value_kind::peers:
    return begin + "_shoal_names peers";
  case value_kind::models:
    return begin + "_shoal_models";
  case value_kind::words:
    break;
  }
  std::string words;
  for (const std::string& word : v.words)
    words += (words.empty() ? "" : " ") + in_zsh_quotes(word);
  // The placeholder would be the words once more.
  return ":value:(" + words + ")";
}

/// A line for each name of an option.
std::string specs_for(const completed_option& o, const std::string& indent) {
  std::string out;
  for (const std::string& flag : o.flags) {
    const bool valued = o.value.kind != value_kind::none;
    out += indent + "'" + (o.value.many ? "*" : "") + flag
           + (valued && flag.starts_with("--") ? "=" : "") + "["
           + in_zsh_quotes(o.meaning) + "]" + action_for(o.value) + "' \\\n";
  }
  return out;
}

constexpr char names[] = R"sh(
# Names that the local node knows: jobs, peers, models.
_shoal_names() {
  local -a names
  names=(${(f)"$(_call_program names shoal completion $1 2>/dev/null)"})
  compadd -a names
}

_shoal_models() {
  _shoal_names models
  _files
}
)sh";

} // namespace

std::string zsh_completion(const completion_table& t) {
  std::string out = "#compdef shoal\n"
                    "# zsh completion for shoal, printed by `shoal completion "
                    "zsh`\n";
  out += names;
  out += "\n_shoal_commands() {\n  local -a commands\n  commands=(\n";
  for (const completed_command& c : t.commands)
    out += "    '" + c.name + ":" + in_zsh_quotes(c.meaning) + "'\n";
  out += "  )\n  _describe command commands\n}\n\n"
         "_shoal() {\n"
         "  local context state state_descr line curcontext=$curcontext\n"
         "  typeset -A opt_args\n  _arguments -C \\\n";
  for (const completed_option& o : t.options)
    out += specs_for(o, "    ");
  out += "    '1:command:_shoal_commands' \\\n    '*::argument:->rest'\n"
         "  [[ $state == rest ]] || return\n  case $words[1] in\n";
  for (const completed_command& c : t.commands) {
    out += "    " + c.name + ")\n      _arguments \\\n";
    for (const completed_option& o : c.options)
      out += specs_for(o, "        ");
    for (std::size_t i = 0; i < c.places.size(); ++i)
      out += "        '" + (c.places[i].many ? "*" : std::to_string(i + 1))
             + action_for(c.places[i]) + "' \\\n";
    out += "        && return ;;\n";
  }
  // `compinit` runs the file itself at the first completion.
  return out
         + "  esac\n}\n\n"
           "if [[ $funcstack[1] == _shoal ]]; then\n  _shoal \"$@\"\n"
           "else\n  compdef _shoal shoal\nfi\n";
}

} // namespace shoal::apps
