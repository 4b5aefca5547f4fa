// apps/cli/option_sources.cpp -- variables and keys to words of a command line.
#include "apps/cli/option_sources.hpp"

#include "runtime/core/text/shown.hpp"
#include "runtime/files/home_folder.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string_view>

namespace shoal::apps {
namespace {

namespace fs = std::filesystem;
using words_type = std::vector<std::string>;

constexpr std::string_view config_flag = "--config";

fs::path default_config() {
  const auto config = runtime::xdg_folder("XDG_CONFIG_HOME", ".config");
  return config.empty() ? config : config / "shoal" / "shoal.toml";
}

/// The place of the command's name, and the value of --config before it.
struct line_head {
  std::size_t command; ///< the number of words: there is none
  std::string config;
};

line_head head_of(const words_type& words) {
  line_head out{words.size(), {}};
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("-")) {
      out.command = i;
      break;
    }
    if (words[i] == config_flag && i + 1 < words.size())
      out.config = words[++i];
    else if (words[i].starts_with(std::string(config_flag) + "="))
      out.config = words[i].substr(config_flag.size() + 1);
  }
  return out;
}

/// Up to "--", after which no word is an option.
words_type::const_iterator end_of_options(const words_type& words) {
  return std::ranges::find(words, "--");
}

bool asks_for_help(const words_type& words) {
  return std::any_of(
    words.begin(), end_of_options(words),
    [](const std::string& w) { return w == "--help" || w == "-h"; });
}

bool is_given(const CLI::Option& option, const words_type& words) {
  return std::any_of(
    words.begin(), end_of_options(words), [&](const std::string& word) {
      return word.starts_with("--")
             && option.check_lname(word.substr(2, word.find('=') - 2));
    });
}

/// Throws if the option does not accept them.
void check_values(CLI::Option& option, const words_type& values,
                  const std::string& source) {
  try {
    for (const std::string& value : values)
      option.add_result(value);
    option.run_callback();
  } catch (const CLI::Error& e) {
    throw usage_error{
      source + refusal(option, values.empty() ? "" : values.front(), e.what())};
  }
  option.clear();
}

/// One command line that is being filled in.
class filling {
public:
  filling(const CLI::App& command, const words_type& words) {
    for (const CLI::Option* o : command.get_options())
      if (is_given(*o, words))
        given_.insert(o);
    typed_ = given_;
  }

  /// Takes a value unless a source before this one, or a word, has given one.
  void offer(CLI::Option& option, const words_type& values,
             const std::string& source) {
    const auto in = [](const std::set<const CLI::Option*>& all) {
      return [&all](const CLI::Option* o) { return all.contains(o); };
    };
    if (given_.contains(&option)
        || std::ranges::any_of(option.get_excludes(), in(before_))
        || std::ranges::any_of(option.get_excludes(), in(typed_)))
      return;
    check_values(option, values, source);
    given_.insert(&option);
    taken_.push_back({&option, values, source});
  }

  /// Options of the next source give way to those that were offered before.
  void next_source() { before_ = given_; }

  /// Adds what was taken. Options without those that they need have no meaning.
  void add_to(filled_line& out) const {
    words_type more;
    for (const auto& [option, values, source] : taken_) {
      if (!std::ranges::all_of(option->get_needs(), [&](const CLI::Option* o) {
            return given_.contains(o);
          }))
        continue;
      const std::string flag = "--" + option->get_lnames().front();
      for (const std::string& value : values)
        if (value.empty())
          more.insert(more.end(), {flag, value});
        else
          more.push_back(flag + "=" + value);
      out.sources +=
        (out.sources.empty() ? "" : ", ") + source + " (" + flag + ")";
    }
    out.words.insert(end_of_options(out.words), more.begin(), more.end());
  }

private:
  struct taken {
    CLI::Option* option;
    words_type values;
    std::string source;
  };
  std::set<const CLI::Option*> typed_, before_, given_;
  std::vector<taken> taken_;
};

} // namespace

std::string variable_of(const std::string& flag) {
  std::string name("SHOAL_");
  for (char c : flag)
    name += c == '-' || c == '.' ? '_' : char(std::toupper(c));
  return name;
}

std::string refusal(const CLI::Option& option, const std::string& value,
                    const std::string& text) {
  const std::string flag = "--" + option.get_lnames().front() + ": ";
  if (text.starts_with(flag))
    return ": " + text.substr(flag.size());
  if (!text.starts_with("Could not convert"))
    return ": " + text;
  const std::string type = option.get_type_name();
  return " is '" + core::shown(value) + "', must be "
         + (option.get_items_expected_max() == 0 ? "true or false"
            : type == "FLOAT"                    ? "a number"
            : type == "INT"                      ? "a whole number"
                            : "a whole number of 0 or more");
}

configuration read_configuration(const std::vector<std::string>& words) {
  const line_head head = head_of(words);
  if (head.command == words.size() || asks_for_help(words))
    return {};
  std::error_code error;
  fs::path file = head.config;
  if (!file.empty() && !fs::exists(file, error))
    return {}; // the parser says so
  if (file.empty())
    if (const char* named = std::getenv("SHOAL_CONFIG"); named && *named)
      file = named;
  if (file.empty() && (file = default_config(), !fs::exists(file, error)))
    return {};
  return {toml_table::read(file), file.string()};
}

filled_line fill_in(CLI::App& app, std::vector<std::string> words,
                    const configuration& file) {
  filled_line out{std::move(words), {}};
  const line_head head = head_of(out.words);
  if (head.command == out.words.size() || asks_for_help(out.words))
    return out;
  const auto commands = app.get_subcommands([&](const CLI::App* c) {
    return c->get_name() == out.words[head.command];
  });
  if (commands.empty())
    return out;
  CLI::App* const command = commands.front();
  filling line(*command, out.words);
  const auto options = command->get_options([](const CLI::Option* o) {
    return !o->get_lnames().empty() && o->get_lnames().front() != "help";
  });
  for (CLI::Option* option : options) {
    const std::string variable = variable_of(option->get_lnames().front());
    if (const char* value = std::getenv(variable.c_str()); value && *value)
      line.offer(*option, {value}, variable);
  }
  line.next_source();
  for (const auto& [key, values] : file.table.values(command->get_name()))
    for (CLI::Option* option : options)
      if (key == option->get_lnames().front())
        line.offer(*option, values, file.file + ": " + key);
  line.add_to(out);
  return out;
}

} // namespace shoal::apps
