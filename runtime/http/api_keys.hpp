// runtime/http/api_keys.hpp -- the keys that clients of the HTTP server show.
//
// File: a line for each key, "NAME SHA256HEX"; empty lines and lines that begin
// with '#' are comments. A key is 256 random bits, so its hash tells nothing of
// it and needs no salt: who reads the file cannot use it.
//
// Threads: any; the values never change.
// Errors:  a failure that names file and line, never with the line's text.
// Cost:    find() hashes once and compares with every key in constant time.
#pragma once

#include "runtime/core/ids.hpp" // blob_digest
#include "runtime/core/result.hpp"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::runtime {

inline constexpr std::size_t api_keys_max = 4096;
inline constexpr std::size_t api_key_name_max = 64;
inline constexpr std::string_view api_key_prefix = "sk-shoal-";

class api_keys {
public:
  /// @param source  what the errors name
  static model::result<api_keys>
  parse(std::string_view text, const std::string& source);
  static model::result<api_keys> load(const std::filesystem::path& file);

  /// @returns the name of the key, or nothing if it is unknown
  std::optional<std::string> find(std::string_view key) const;
  std::size_t size() const noexcept { return keys_.size(); }

private:
  struct entry {
    std::string name;
    core::blob_digest hash;
  };
  std::vector<entry> keys_;
};

/// Whether a key may have this name: letters, digits, '.', '_' and '-'.
bool is_api_key_name(std::string_view name);

struct new_api_key {
  std::string key;  ///< for the client; it is nowhere else
  std::string line; ///< for the file, with its line end
};

/// Makes a key. Throws setup_error if the system has no random numbers.
/// @pre is_api_key_name(name)
new_api_key make_api_key(const std::string& name);

} // namespace shoal::runtime
