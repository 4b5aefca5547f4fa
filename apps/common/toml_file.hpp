// apps/common/toml_file.hpp -- reads the TOML files of this program.
//
// Two uses: the configuration file (flags of subcommands) and run files
// (sections of keys, passed on as JSON to runtime/run_config).
//
// Errors: toml_error, whose text has file and line.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::apps {

struct toml_error {
  std::string text;
};

/// Tables of scalars and lists of scalars, as text.
class toml_table {
public:
  /// Throws toml_error.
  static toml_table read(const std::filesystem::path& file);
  /// Throws toml_error; `name` appears in errors.
  static toml_table parse(std::string_view text, const std::string& name);

  std::vector<std::string> names() const; ///< of the tables

  /// Keys of a table; a scalar counts as one value.
  const std::map<std::string, std::vector<std::string>>&
  values(const std::string& table) const;

private:
  std::map<std::string, std::map<std::string, std::vector<std::string>>>
    tables_;
};

/// Converts TOML to JSON; `name` appears in errors. Throws toml_error.
std::string toml_text_to_json(std::string_view text, const std::string& name);

/// Converts a whole file to JSON. Throws toml_error.
std::string toml_to_json(const std::filesystem::path& file);

} // namespace shoal::apps
