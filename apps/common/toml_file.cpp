// apps/common/toml_file.cpp -- the only place that includes toml++.
#include "apps/common/toml_file.hpp"

#include <toml++/toml.h>

#include <fstream>
#include <sstream>

namespace shoal::apps {
namespace {

constexpr std::uintmax_t file_bytes_max = 1u << 20;

toml::table parse_text(std::string_view text, const std::string& name) {
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& e) {
    std::ostringstream what;
    what << name << ":" << e.source().begin.line << ": " << e.description();
    throw toml_error{what.str()};
  }
}

std::string text_of(const std::filesystem::path& file) {
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (std::filesystem::is_directory(status))
    throw toml_error{file.string() + ": is a folder, not a file"};
  if (std::filesystem::exists(status)
      && !std::filesystem::is_regular_file(status))
    throw toml_error{file.string() + ": is not a regular file"};
  const auto bytes = std::filesystem::file_size(file, error);
  if (error)
    throw toml_error{file.string() + ": " + error.message()};
  if (bytes > file_bytes_max)
    throw toml_error{file.string() + ": longer than 1 MiB"};
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  if (!in || !(bytes == 0 || text << in.rdbuf()))
    throw toml_error{file.string() + ": cannot be read"};
  return text.str();
}

std::string scalar(const toml::node& node) {
  if (auto text = node.value<std::string>(); text && node.is_string())
    return *text;
  std::ostringstream out;
  out.precision(17);
  node.visit([&](const auto& value) {
    if constexpr (toml::is_value<decltype(value)>)
      out << value.get();
  });
  return node.is_boolean() ? (*node.value<bool>() ? "true" : "false")
                           : out.str();
}

/// Joins keys of nested tables by dots: fabric.force.
void add(const toml::table& table, const std::string& prefix,
         std::map<std::string, std::vector<std::string>>& out) {
  for (const auto& [key, value] : table) {
    const std::string name = prefix + std::string(key.str());
    if (const toml::table* inner = value.as_table()) {
      add(*inner, name + ".", out);
      continue;
    }
    auto& values = out[name];
    if (const toml::array* list = value.as_array())
      for (const toml::node& item : *list)
        values.push_back(scalar(item));
    else
      values.push_back(scalar(value));
  }
}

} // namespace

toml_table toml_table::read(const std::filesystem::path& file) {
  return parse(text_of(file), file.string());
}

toml_table
toml_table::parse(std::string_view text, const std::string& file_name) {
  toml_table out;
  for (const auto& [name, node] : parse_text(text, file_name)) {
    const toml::table* table = node.as_table();
    if (table == nullptr)
      throw toml_error{file_name + ": '" + std::string(name.str())
                       + "' stands outside a table such as [node]"};
    add(*table, "", out.tables_[std::string(name.str())]);
  }
  return out;
}

std::vector<std::string> toml_table::names() const {
  std::vector<std::string> out;
  for (const auto& [name, keys] : tables_)
    out.push_back(name);
  return out;
}

const std::map<std::string, std::vector<std::string>>&
toml_table::values(const std::string& table) const {
  static const std::map<std::string, std::vector<std::string>> none;
  auto at = tables_.find(table);
  return at == tables_.end() ? none : at->second;
}

std::string toml_text_to_json(std::string_view text, const std::string& name) {
  std::ostringstream out;
  out << toml::json_formatter{parse_text(text, name)};
  return out.str();
}

std::string toml_to_json(const std::filesystem::path& file) {
  std::ostringstream out;
  out << toml::json_formatter{parse_text(text_of(file), file.string())};
  return out.str();
}

} // namespace shoal::apps
