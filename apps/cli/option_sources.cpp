// apps/cli/option_sources.cpp -- variables and keys of a file to values of options.
#include "apps/cli/option_sources.hpp"

#include "apps/cli/help_format.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/files/home_folder.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>
#include <stdexcept>

namespace shoal::apps {
namespace {

namespace fs = std::filesystem;
using options = std::set<const CLI::Option*>;

fs::path default_config() {
  const auto config = runtime::xdg_folder("XDG_CONFIG_HOME", ".config");
  return config.empty() ? config : config / "shoal" / "shoal.toml";
}

/// No shell has replaced the ~ of a path in a file or a service's environment.
std::string at_home(const std::string& path) {
  const fs::path home = runtime::home_folder();
  return path.starts_with("~/") && !home.empty()
           ? (home / path.substr(2)).string()
           : path;
}

bool is_path(const CLI::Option& option) {
  const std::string type = value_of(option);
  return type == "FILE" || type == "PATH" || type == "DIR";
}

void add_values(CLI::Option& option, const std::vector<std::string>& values,
                const std::string& source) {
  try {
    for (const std::string& value : values)
      option.add_result(is_path(option) ? at_home(value) : value);
    option.run_callback();
  } catch (const CLI::Error& e) {
    throw usage_error{
      source + refusal(option, values.empty() ? "" : values.front(), e.what())};
  }
}

/// Whether the values say that a flag is not set.
bool is_unset(const CLI::Option& option,
              const std::vector<std::string>& values) {
  if (option.get_items_expected_max() > 0 || values.size() != 1)
    return false;
  try {
    return CLI::detail::to_flag_value(values.front()) <= 0;
  } catch (const std::logic_error&) {
    return false; // add_values() refuses it
  }
}

bool any_in(const std::set<CLI::Option*>& some, const options& all) {
  return std::ranges::any_of(
    some, [&](const CLI::Option* o) { return all.contains(o); });
}

/// The options of one command that have a value, and the values that sources offer for
/// the others.
class filling {
public:
  explicit filling(const CLI::App& command) {
    for (const CLI::Option* o : command.get_options())
      if (o->count() > 0)
        given_.insert(o);
    known_ = before_ = given_;
  }

  /// Takes values unless a source before this one has given some.
  void offer(CLI::Option& option, const std::vector<std::string>& values,
             const std::string& source) {
    if (known_.contains(&option) || any_in(option.get_excludes(), before_))
      return;
    known_.insert(&option);
    if (is_unset(option, values))
      return;
    given_.insert(&option);
    taken_.push_back({&option, values, source});
  }

  /// Options of the next source give way to those that were offered before.
  void next_source() { before_ = given_; }

  /// Sets what was taken. Options without those that they need have no meaning.
  std::vector<option_source> set() const {
    std::vector<option_source> out;
    for (const auto& [option, values, source] : taken_) {
      if (!std::ranges::all_of(option->get_needs(), [&](const CLI::Option* o) {
            return given_.contains(o);
          }))
        continue;
      add_values(*option, values, source);
      out.push_back({option->get_lnames().front(), source});
    }
    return out;
  }

private:
  struct taken {
    CLI::Option* option;
    std::vector<std::string> values;
    std::string source;
  };
  options known_;  ///< those with a value, also "not set"
  options given_;  ///< those that are set
  options before_; ///< the same, by sources before this one
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

configuration read_configuration(const fs::path& named) {
  std::error_code error;
  fs::path file = named;
  if (file.empty())
    if (const char* variable = std::getenv("SHOAL_CONFIG");
        variable && *variable)
      file = at_home(variable);
  if (file.empty() && (file = default_config(), !fs::exists(file, error)))
    return {};
  return {toml_table::read(file), file.string()};
}

std::vector<option_source>
fill_in(CLI::App& command, const configuration& file) {
  filling line(command);
  const auto all = command.get_options([](const CLI::Option* o) {
    return !o->get_lnames().empty() && o->get_lnames().front() != "help";
  });
  for (CLI::Option* option : all) {
    const std::string variable = variable_of(option->get_lnames().front());
    if (const char* value = std::getenv(variable.c_str()); value && *value)
      line.offer(*option, {value}, variable);
  }
  line.next_source();
  for (const auto& [key, values] : file.table.values(command.get_name()))
    for (CLI::Option* option : all)
      if (key == option->get_lnames().front())
        line.offer(*option, values, file.file + ": " + key);
  return line.set();
}

} // namespace shoal::apps
