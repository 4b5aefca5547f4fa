// apps/cli/cli_words.cpp -- looks up words, and finds similar ones.
#include "apps/cli/cli_words.hpp"

#include "apps/cli/help_format.hpp"
#include "runtime/core/text/nearest.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/discovery/host_list.hpp"
#include "runtime/jobs/other_names.hpp"
#include "runtime/model/config/config.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace shoal::apps {
namespace {

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::App* c : app.get_subcommands(
         [](const CLI::App* each) { return !each->get_name().empty(); }))
    out.push_back(c->get_name());
  return out;
}

/// Without the dashes; includes `help` if it exists.
std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> out;
  for (const CLI::Option* o : command.get_options())
    for (const std::string& name : o->get_lnames())
      out.push_back(name);
  return out;
}

/// Keys of the configuration file: the options of a command line.
std::vector<std::string> keys_of(const CLI::App& command) {
  auto out = options_of(command);
  std::erase_if(out, [](const std::string& o) {
    return o == "help" || o == "config" || o == "version";
  });
  return out;
}

std::vector<std::string_view> views(const std::vector<std::string>& words) {
  return {words.begin(), words.end()};
}

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

/// Names of all variables that have a meaning.
std::vector<std::string> variables_of(const CLI::App& app) {
  std::vector<std::string> out{"SHOAL_CONFIG"};
  for (const std::string& name : commands_of(app))
    for (const std::string& key : keys_of(*app.get_subcommand(name)))
      out.push_back(variable_of(key));
  return out;
}

constexpr std::string_view ours = "SHOAL_";

/// "'--training.steps'": keys of a run file that end with a name or, for a
/// section's name, its path; "" if there are none.
std::string
keys_called(const std::vector<std::string>& options, const std::string& name) {
  if (has(options, name + ".path"))
    return "'--" + name + ".path'";
  std::string out;
  for (const std::string& option : options)
    if (option.ends_with("." + name))
      out += (out.empty() ? "'--" : " or '--") + option + "'";
  return out;
}

/// Number of wrong letters in a name that still count as a typing error.
std::size_t typing_errors_max(std::size_t letters) {
  return letters < 6 ? 1 : 2;
}

} // namespace

std::string wrong_peer(const std::string& text) {
  std::string host, port;
  if (runtime::split_host_port(runtime::with_node_port(text), host, port))
    return {};
  return "'" + text
         + "' is not host[:port] or [IPv6 address][:port] with a port from 1 "
           "to 65535";
}

/// The option that a mistyped one stands for; "": none is near.
static std::string
meant_option(std::string_view name, const std::vector<std::string>& options) {
  constexpr std::string_view model = "model.";
  std::string_view near = core::meant(name, views(options));
  if (!near.starts_with(model) || !name.starts_with(model))
    return std::string(near);
  near.remove_prefix(model.size());
  name.remove_prefix(model.size());
  return std::string(model) + std::string(model::suggested_key(name, near));
}

/// What to give in place of an option that other trainers call so, in any section; "":
/// there is none.
static std::string
option_called_otherwise(const std::string& name,
                        const std::vector<std::string>& options) {
  const runtime::other_name* const o =
    runtime::key_called_otherwise(name.substr(name.rfind('.') + 1));
  if (o == nullptr || !has(options, std::string(o->key)))
    return {};
  return core::suggestion(o->key, "--")
         + (o->differs.empty()
              ? std::string()
              : " Its value differs: " + std::string(o->differs));
}

/// How a command does what an option of others does, that it lacks; "": not so.
static std::string
other_way(const std::string& command, const std::string& option) {
  struct way {
    const char* command;
    const char* option;
    const char* text;
  };
  static constexpr std::array<way, 2> ways{
    {{"chat", "peer",
      "a server of another machine is named by --url http://HOST:PORT/v1"},
     {"serve", "peer",
      "without a node on this machine, --join HOST --cluster-key FILE makes "
      "this "
      "process a peer of the shoal, which serves the model"}}};
  for (const way& w : ways)
    if (command == w.command && option == w.option)
      return w.text;
  return {};
}

std::string
unknown_word(const CLI::App& app, int argc, const char* const* argv) {
  const auto commands = commands_of(app);
  const CLI::App* command = nullptr;
  if (argc < 2)
    return "give a command; `shoal --help` lists them";
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--")
      return {};
    if (!command && !word.starts_with("-")) {
      if (!has(commands, word)) {
        const std::string meant = core::did_you_mean(word, views(commands));
        return "there is no command '" + core::shown(word) + "'"
               + (meant.empty() ? ";" : meant) + " `shoal --help` lists them";
      }
      command = app.get_subcommand(word);
      continue;
    }
    if (!word.starts_with("--") || word.size() < 3)
      continue;
    const std::string name = word.substr(2, word.find('=') - 2);
    const auto options = options_of(command ? *command : app);
    if (!command && name == "config" && word.find('=') == std::string::npos)
      ++i; // its value is no command
    const std::string way = command && !has(options, name)
                              ? other_way(command->get_name(), name)
                              : "";
    if (!way.empty())
      return "`shoal " + command->get_name() + "` has no option --" + name
             + ": " + way;
    if (!has(options, name) && command)
      if (const std::string keys = keys_called(options, name); !keys.empty())
        return "`shoal " + command->get_name() + "` has no option --"
               + core::shown(name) + "; did you mean " + keys + "?";
    if (const std::string meant = option_called_otherwise(name, options);
        !has(options, name) && !meant.empty())
      return "`shoal " + command->get_name() + "` has no option --"
             + core::shown(name) + meant;
    if (!has(options, name))
      return (command ? "`shoal " + command->get_name() + "`"
                      : std::string("shoal"))
             + " has no option --" + core::shown(name)
             + core::suggestion(meant_option(name, options), "--");
  }
  return {};
}

/// Of a word such as "-f": that there are no such options, and those that may be
/// meant, if they are few; empty: it is no such word.
static std::string
letter_option(const std::string& word, const std::string& command,
              const std::vector<std::string>& options) {
  constexpr std::size_t meant_max = 3;
  if (word.size() != 2 || word[0] != '-'
      || std::isalpha(static_cast<unsigned char>(word[1])) == 0)
    return {};
  std::size_t count = 0;
  std::string meant;
  for (const std::string& option : options)
    if (option[0] == word[1] && option.find('.') == std::string::npos) {
      meant += (meant.empty() ? "did you mean '--" : " or '--") + option + "'";
      ++count;
    }
  return "`" + command + "` has no option " + word + ": only -h is one letter; "
         + (count == 0 || count > meant_max
              ? "`" + command + " --help` lists all"
              : meant + "?");
}

std::string stray_word(const CLI::App& app) {
  const std::vector<std::string> left = app.remaining(true);
  const auto chosen = app.get_subcommands();
  if (left.empty() || chosen.empty())
    return {};
  const CLI::App& command = *chosen.front();
  const std::string name = "shoal " + command.get_name();
  const auto options = options_of(command);
  const auto meant = std::ranges::find_if(
    left, [&](const std::string& word) { return has(options, word); });
  if (std::string why = letter_option(left.front(), name, options);
      !why.empty())
    return why;
  if (meant == left.end())
    return "`" + name + "` takes no '" + core::shown(left.front()) + "'; `"
           + name + " --help` lists what it takes";
  const bool valued =
    command.get_option("--" + *meant)->get_items_expected_max() > 0;
  std::string values;
  for (const std::string& word : left)
    if (valued && word != *meant)
      values += " " + core::shown(word);
  return "`" + name + "` takes no '" + *meant + "'; did you mean '" + name
         + " --" + *meant + values + "'?";
}

/// "one of a, b, c" for a choice, "N (1 to 64)", "FILE (run file)"; of a word
/// without a flag only "run file".
static std::string what_it_takes(const CLI::Option& option) {
  const std::string value = value_of(option), bounds = bounds_of(option);
  if (!bounds.empty())
    return value + " (" + bounds + ")";
  if (value.find('|') != std::string::npos)
    return "one of " + CLI::detail::find_and_replace(value, "|", ", ");
  const std::string& help = option.get_description();
  const std::string meaning =
    CLI::detail::trim_copy(help.substr(0, help.find_first_of("(;:")));
  if (option.get_lnames().empty() || meaning.empty())
    return meaning.empty() ? value : meaning;
  return value + " (" + meaning + ")";
}

/// Names the flag that has taken a word meant for the argument `name`: one that may
/// have several values takes all words up to the next flag. Empty: there is none.
static std::string
taken_before(const CLI::App& command, const std::string& name) {
  for (const CLI::Option* o : command.get_options())
    if (!o->get_lnames().empty() && o->results().size() > 1)
      return " ('" + core::shown(o->results().back()) + "' was taken by "
             + o->get_name() + ": put " + name + " first)";
  return {};
}

std::string missing_word(const CLI::App& app, const CLI::ParseError& error) {
  const bool valueless =
    error.get_exit_code() == int(CLI::ExitCodes::ArgumentMismatch);
  const auto chosen = app.get_subcommands();
  if (chosen.empty()
      || (!valueless
          && error.get_exit_code() != int(CLI::ExitCodes::RequiredError)))
    return {};
  const CLI::App& command = *chosen.front();
  const std::string called = "`shoal " + command.get_name();
  const std::string text = error.what();
  for (const CLI::Option* o : command.get_options()) {
    const std::string name = o->get_name();
    const bool flag = !o->get_lnames().empty();
    if (valueless && text.starts_with(name + ": At Most 1 required"))
      return called + " " + name + "` was given more than once";
    if (valueless && text.starts_with(name + ": ")
        && text.ends_with(" missing"))
      return called + " " + name + "` needs a value: " + what_it_takes(*o)
             + "; " + called + " --help` tells more";
    if (!valueless && text == name + " is required")
      return called + "` needs " + name + (flag ? " " : ": ")
             + what_it_takes(*o) + (flag ? "" : taken_before(command, name))
             + "; " + called + " --help` tells more";
  }
  return {};
}

std::string wrong_word(const CLI::App& app, const CLI::ParseError& error) {
  const auto chosen = app.get_subcommands();
  const std::string text = error.what();
  constexpr std::string_view between = " excludes ";
  const auto at = text.find(between);
  if (!chosen.empty() && at != text.npos
      && error.get_exit_code() == int(CLI::ExitCodes::ExcludesError))
    return "`shoal " + chosen.front()->get_name() + "` takes "
           + text.substr(0, at) + " or " + text.substr(at + between.size())
           + ", not both";
  if (chosen.empty()
      || error.get_exit_code() != int(CLI::ExitCodes::ConversionError))
    return {};
  for (const CLI::Option* o : chosen.front()->get_options()) {
    const std::string begin = "Could not convert: " + o->get_name() + " = ";
    if (text.starts_with(begin))
      return o->get_name() + refusal(*o, text.substr(begin.size()), text);
  }
  return {};
}

std::string empty_word(const CLI::App& command) {
  static constexpr std::array texts{"prompt", "system"};
  for (const CLI::Option* o : command.get_options()) {
    const auto names = o->get_lnames();
    const bool is_text =
      !names.empty()
      && (std::ranges::find(texts, names.front()) != texts.end()
          || names.front().find('.') != std::string::npos); // of a run file
    if (o->get_items_expected_min() > 0 && !is_text
        && has(o->results(), std::string()))
      return "`shoal " + command.get_name() + "`: " + o->get_name()
             + " is empty; give it " + what_it_takes(*o)
             + (o->get_required() ? "" : ", or leave it out");
  }
  return {};
}

std::vector<std::string> unknown_variables(const CLI::App& app) {
  const auto known = variables_of(app);
  std::vector<std::string> out;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view text(*each);
    const std::string name(text.substr(0, text.find('=')));
    if (name.starts_with(ours) && !has(known, name))
      out.push_back(name);
  }
  return out;
}

std::string mistyped_variable(const CLI::App& app) {
  const auto known = variables_of(app);
  for (const std::string& name : unknown_variables(app)) {
    const auto meant = core::nearest(
      name, views(known), typing_errors_max(name.size() - ours.size()));
    if (!meant.empty())
      return "the variable " + core::shown(name)
             + " is not known; did you mean '" + std::string(meant) + "'?";
  }
  return {};
}

std::string unknown_key(const CLI::App& app, const configuration& file) {
  const auto commands = commands_of(app);
  for (const std::string& table : file.table.names()) {
    if (!has(commands, table))
      return file.file + ": [" + core::shown(table) + "] is no command's table"
             + core::did_you_mean(table, views(commands));
    const auto keys = keys_of(*app.get_subcommand(table));
    for (const auto& [key, values] : file.table.values(table))
      if (!has(keys, key))
        return file.file + ": [" + table + "] has no key '" + core::shown(key)
               + "'" + core::did_you_mean(key, views(keys));
  }
  return {};
}

} // namespace shoal::apps
