// apps/cli/completion_table.cpp -- reads the options of all commands.
#include "apps/cli/completion_table.hpp"

#include "apps/cli/help_format.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace shoal::apps {
namespace {

/// A menu of completions has one line for each, beside its flag.
constexpr std::size_t meaning_bytes_max = 60;

/// The first words of a help text, up to the end of a thought.
std::string short_meaning(std::string_view text) {
  for (const std::string_view end : {"; ", ". ", " (", "\n"})
    text = text.substr(0, text.find(end));
  if (text.size() > meaning_bytes_max) {
    text = text.substr(0, meaning_bytes_max);
    text = text.substr(0, text.rfind(' '));
    while (text.ends_with(',') || text.ends_with(' '))
      text.remove_suffix(1);
    return std::string(text) + " ...";
  }
  return std::string(text);
}

value_kind kind_of(const std::string& placeholder) {
  static constexpr std::pair<std::string_view, value_kind> kinds[] = {
    {"FILE", value_kind::path},  {"PATH", value_kind::path},
    {"DIR", value_kind::folder}, {"JOB", value_kind::jobs},
    {"PEER", value_kind::peers}, {"MODEL", value_kind::models},
    {"TEXT", value_kind::free},
  };
  for (const auto& [name, kind] : kinds)
    if (placeholder == name)
      return kind;
  return value_kind::free;
}

completed_value value_for(const CLI::Option& o) {
  completed_value out;
  if (o.get_items_expected_max() == 0)
    return out;
  out.placeholder = value_of(o);
  out.kind = kind_of(out.placeholder);
  out.many = o.get_expected_max() == CLI::detail::expected_max_vector_size;
  if (out.placeholder.find('|') == std::string::npos)
    return out;
  out.kind = value_kind::words;
  std::string_view rest = out.placeholder;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('|'), rest.size());
    if (rest.substr(0, end) != "N") // any number
      out.words.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return out;
}

completed_option option_for(const CLI::Option& o) {
  completed_option out{{}, short_meaning(o.get_description()), value_for(o)};
  for (const std::string& name : o.get_snames())
    out.flags.push_back("-" + name);
  for (const std::string& name : o.get_lnames())
    out.flags.push_back("--" + name);
  return out;
}

} // namespace

completion_table completions_of(const CLI::App& app) {
  completion_table out;
  for (const CLI::Option* o : app.get_options())
    out.options.push_back(option_for(*o));
  for (const CLI::App* c : app.get_subcommands(
         [](const CLI::App* each) { return !each->get_name().empty(); })) {
    completed_command command{
      c->get_name(), short_meaning(c->get_description()), {}, {}};
    for (const CLI::Option* o : c->get_options()) {
      if (o->get_positional())
        command.places.push_back(value_for(*o));
      if (!o->get_lnames().empty())
        command.options.push_back(option_for(*o));
    }
    out.commands.push_back(std::move(command));
  }
  return out;
}

} // namespace shoal::apps
