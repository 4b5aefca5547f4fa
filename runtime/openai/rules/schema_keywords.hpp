// runtime/openai/rules/schema_keywords.hpp -- what keywords of a JSON schema say, alone
// and together.
//
// Errors: bad_schema, thrown.
// Private to runtime/openai/rules.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::openai {

/// Keeps the order of properties.
using schema = nlohmann::ordered_json;

struct bad_schema {
  std::string path; ///< in the schema, such as "/properties/age"
  std::string why;
};

/// What it costs to read a schema: references repeat parts, and that multiplies.
class schema_work {
public:
  /// @throws bad_schema beyond most
  void spend(std::size_t steps, const std::string& path) {
    done_ += steps;
    if (done_ > most)
      throw bad_schema{path, "the schema is too much work: its references "
                             "repeat too many parts"};
  }
  /// A step is a schema, or 8 values or 64 bytes that are copied: some 2 KB of the
  /// grammar's trees.
  static constexpr std::size_t most = 200'000;

private:
  std::size_t done_ = 0;
};

/// The path of a part of the schema at `path`: what it has under `key`, and there
/// under `name`. Long ones are cut, so that paths take no more memory than schemas.
std::string below(const std::string& path, std::string_view key,
                  const std::string& name = {});

/// What it costs to copy a schema or a value, in steps.
std::size_t steps_to_copy(const schema& value);

/// Keywords that say nothing about a value.
bool is_annotation(const std::string& key);
/// @throws bad_schema if `s` is no schema, or has a keyword that is not understood
void check_keywords(const schema& s, const std::string& path);

/// The types that a value may have: what `type` says, else those that the other
/// keywords are about; none: any.
std::vector<std::string> types_of(const schema& s, const std::string& path);
bool has_type(const schema& value, const std::vector<std::string>& types);

/// The value of `key`, a number of elements or characters.
std::optional<std::uint32_t>
count_of(const schema& s, const std::string& key, const std::string& path);
std::vector<std::string> required_of(const schema& s, const std::string& path);

/// The text of $ref, which begins with "#".
std::string reference_of(const schema& s, const std::string& path);
const schema&
resolve(const schema& root, const std::string& to, const std::string& path);

/// A schema that allows what both allow.
schema
merged(const schema& root, const schema& a, const schema& b,
       const std::string& path, schema_work& work, std::size_t depth = 0);
/// `s` without allOf: all of its parts, merged.
schema merged_all_of(const schema& root, const schema& s,
                     const std::string& path, schema_work& work);

/// Checks that no value that is written by one of these schemas is allowed by another.
/// @param around what stands beside them
void check_exclusive(const schema& root, const schema& of, const schema& around,
                     const std::string& path, schema_work& work);

/// @pre text is UTF-8
std::u32string code_points(const std::string& text);

} // namespace shoal::openai
