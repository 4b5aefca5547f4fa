// apps/cli/help_format.cpp -- wraps help texts in columns.
#include "apps/cli/help_format.hpp"

#include "runtime/model/config/default_sizes.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace shoal::apps {
namespace {

constexpr std::size_t width = 80;  ///< of a terminal, without line end
constexpr std::size_t column = 30; ///< start of descriptions

/// Words separated by spaces, in lines of at most `width`; all lines except the
/// first begin at `indent`.
std::string
wrapped(std::string_view text, std::size_t used, std::size_t indent) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
    const auto word = text.substr(0, end);
    const bool first = out.empty();
    if (!first && used + 1 + word.size() >= width) {
      out += "\n" + std::string(indent, ' ');
      used = indent;
    } else if (!first) {
      out += ' ';
      ++used;
    }
    out += word;
    used += word.size();
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

/// The part between the first '[' or '{' of a validator's description and its
/// end.
std::string between(const std::string& text, char open, char close) {
  const auto begin = text.find(open);
  const auto end = text.rfind(close);
  return begin == std::string::npos || end == std::string::npos || end < begin
           ? std::string{}
           : text.substr(begin + 1, end - begin - 1);
}

} // namespace

std::string value_of(const CLI::Option& o) {
  const std::string type = o.get_type_name();
  const std::string choice =
    CLI::detail::find_and_replace(between(type, '{', '}'), ",", "|");
  std::string name = type.substr(0, type.find(':'));
  if (name == "INT" || name == "UINT")
    name = "N";
  else if (name == "FLOAT")
    name = "X";
  if (choice.empty())
    return name;
  return bounds_of(o).empty() ? choice : name + "|" + choice;
}

std::string bounds_of(const CLI::Option& o) {
  const std::string type = o.get_type_name();
  return type.find(" in [") == std::string::npos
           ? std::string{}
           : CLI::detail::find_and_replace(between(type, '[', ']'), " - ",
                                           " to ");
}

std::string default_of(const CLI::Option& o) {
  std::string text = o.get_default_str();
  for (const auto& [open, close] : {std::pair{'"', '"'}, std::pair{'[', ']'}})
    if (text.size() >= 2 && text.front() == open && text.back() == close)
      text = text.substr(1, text.size() - 2);
  return text;
}

namespace {

class help_format : public CLI::Formatter {
public:
  help_format() { column_width(column); }

private:
  std::string make_option_opts(const CLI::Option* o) const override {
    if (o->get_type_size() == 0) // a flag
      return {};
    return o->get_positional() ? dots_of(o) : values_of(o);
  }

  static std::string dots_of(const CLI::Option* o) {
    const bool list =
      o->get_expected_max() == CLI::detail::expected_max_vector_size;
    return list ? "..." : "";
  }

  /// What follows the name of an option that is no flag.
  static std::string values_of(const CLI::Option* o) {
    const std::string value = value_of(*o);
    return (value.empty() ? "" : " " + value) + dots_of(o);
  }

  std::string make_option_desc(const CLI::Option* o) const override {
    std::string text = o->get_description();
    std::string more = o->get_type_size() == 0 ? "" : bounds_of(*o);
    if (o->get_type_size() != 0 && o->get_required())
      more += more.empty() ? "required" : "; required";
    else if (const std::string usual = default_of(*o);
             o->get_type_size() != 0 && !usual.empty()
             && text.find("default") == std::string::npos)
      more += (more.empty() ? "default: " : "; default: ") + usual;
    return more.empty() ? text : text + " (" + more + ")";
  }

  std::string
  make_option(const CLI::Option* o, bool positional) const override {
    std::string left = "  " + make_option_name(o, positional);
    if (!positional)
      left += o->get_type_size() == 0 ? "" : values_of(o);
    else if (!value_of(*o).empty()
             && value_of(*o).find('|') != std::string::npos)
      left += " " + value_of(*o);
    if (left.size() + 1 > column)
      left += "\n" + std::string(column, ' ');
    else
      left.resize(column, ' ');
    return left + wrapped(make_option_desc(o), column, column) + "\n";
  }

  std::string
  make_group(std::string group, bool positional,
             std::vector<const CLI::Option*> options) const override {
    // The base class adds an empty line after each group.
    const bool first = positional || group == "Options";
    std::string out = (first ? "\n" : "") + group + ":\n", alike;
    for (const CLI::Option* o : options) {
      if (!o->get_description().empty()) {
        out += make_option(o, positional);
        continue;
      }
      const std::string usual = default_of(*o);
      alike += (alike.empty() ? "" : ", ") + make_option_name(o, positional)
               + (usual.empty() ? "" : " (" + usual + ")");
    }
    if (!alike.empty())
      out +=
        "  "
        + wrapped("as in config.json, each with its default: " + alike, 2, 4)
        + "\n  " + wrapped(model::default_sizes_text, 2, 4) + "\n";
    return out;
  }

  std::string make_subcommand(const CLI::App* sub) const override {
    std::string left = "  " + sub->get_name();
    left.resize(std::max(left.size() + 2, subcommand_column), ' ');
    return left
           + wrapped(sub->get_description(), subcommand_column,
                     subcommand_column)
           + "\n";
  }

  std::string make_description(const CLI::App* app) const override {
    return wrapped_lines(app->get_description()) + "\n";
  }

  std::string make_footer(const CLI::App* app) const override {
    const std::string footer = app->get_footer();
    return footer.empty() ? footer : wrapped_lines(footer) + "\n";
  }

  /// Wraps each line separately.
  static std::string wrapped_lines(std::string_view text) {
    std::string out;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      out += wrapped(text.substr(0, end), 0, 0) + "\n";
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return out;
  }

  static constexpr std::size_t subcommand_column = 14;
};

} // namespace

std::shared_ptr<CLI::FormatterBase> make_help_format() {
  return std::make_shared<help_format>();
}

} // namespace shoal::apps
