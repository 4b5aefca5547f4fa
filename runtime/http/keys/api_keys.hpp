// runtime/http/keys/api_keys.hpp -- the keys that clients of the HTTP server show.
//
// File: a line for each key, "NAME SHA256HEX", and behind that its limits, if it has
// some: "requests_per_minute=60 tokens_per_minute=20000" (key_account.hpp says what
// they mean). Empty lines and lines that begin with '#' are comments. A key is 256
// random bits, so its hash tells nothing of it and needs no salt: who reads the file
// cannot use it.
//
// Threads: any; the values never change.
// Errors:  a failure that names file and line, never with the line's text.
// Cost:    find() hashes once and compares with every key in constant time.
#pragma once

#include "runtime/core/ids.hpp" // blob_digest
#include "runtime/core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::runtime {

inline constexpr std::size_t api_keys_max = 4096;
inline constexpr std::size_t api_key_name_max = 64;
inline constexpr std::string_view api_key_prefix = "sk-shoal-";

/// The most that a limit may be.
inline constexpr std::uint64_t key_limit_max = 1'000'000'000;

/// Of each key at each node; 0: as much as it likes.
struct key_limits {
  std::uint64_t requests_per_minute = 0;
  std::uint64_t tokens_per_minute = 0; ///< of prompts, and generated
  bool any() const { return requests_per_minute > 0 || tokens_per_minute > 0; }
  bool operator==(const key_limits&) const = default;
};

struct api_key {
  std::string name;
  core::blob_digest hash;
  key_limits limits;
};

class api_keys {
public:
  /// @param source  what the errors name
  static model::result<api_keys>
  parse(std::string_view text, const std::string& source);
  static model::result<api_keys> load(const std::filesystem::path& file);

  /// @returns null if the key is unknown
  const api_key* find(std::string_view key) const;
  bool has_name(std::string_view name) const;
  std::size_t size() const noexcept { return keys_.size(); }

private:
  std::vector<api_key> keys_;
};

/// Whether a key may have this name: letters, digits, '.', '_' and '-'. Names are in
/// logs and metrics, so one that begins as a key does may be a key, and is refused.
bool is_api_key_name(std::string_view name);

struct new_api_key {
  std::string key;  ///< for the client; it is nowhere else
  std::string line; ///< for the file, with its line end
};

/// Makes a key. Throws setup_error if the system has no random numbers.
/// @pre is_api_key_name(name), and no limit is above key_limit_max
new_api_key
make_api_key(const std::string& name, const key_limits& limits = {});

} // namespace shoal::runtime
