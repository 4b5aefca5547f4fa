// runtime/http/keys/api_keys.cpp -- the file of keys, and what makes one.
#include "runtime/http/keys/api_keys.hpp"

#include "runtime/core/assert.hpp"
#include "runtime/core/setup_error.hpp"
#include "runtime/core/text/hex.hpp"
#include "runtime/files/file.hpp"
#include "runtime/files/sha256.hpp"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <set>
#include <span>
#include <utility>

namespace shoal::runtime {
namespace {

constexpr std::size_t key_bytes = 32; ///< too many to be guessed
/// A line: name, digest, two limits, line end; some comments beside them.
constexpr std::size_t file_bytes_max = api_keys_max * 256;

core::blob_digest hash(std::string_view text) {
  return sha256(std::as_bytes(std::span(text.data(), text.size())));
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const auto first = text.find_first_not_of(blanks);
  if (first == text.npos)
    return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

constexpr std::string_view limit_names[] = {"requests_per_minute",
                                            "tokens_per_minute"};

/// Reads "NAME=N NAME=N". @returns what is wrong with it, or ""
std::string read_limits(std::string_view text, key_limits& into) {
  std::uint64_t* const values[] = {&into.requests_per_minute,
                                   &into.tokens_per_minute};
  while (!text.empty()) {
    const auto end = std::min(text.find_first_of(" \t"), text.size());
    const std::string_view word = text.substr(0, end);
    text = trimmed(text.substr(end));
    const auto sign = word.find('=');
    const auto* const name =
      std::ranges::find(limit_names, word.substr(0, sign));
    std::uint64_t value = 0;
    const std::string_view digits =
      sign == word.npos ? std::string_view() : word.substr(sign + 1);
    const auto read =
      std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (name == std::end(limit_names) || read.ec != std::errc()
        || read.ptr != digits.data() + digits.size() || value < 1
        || value > key_limit_max)
      return "has something behind the hash that is neither "
             "requests_per_minute=N nor tokens_per_minute=N, with N from 1 to "
             + std::to_string(key_limit_max);
    std::uint64_t& limit = *values[name - limit_names];
    if (limit != 0)
      return "gives " + std::string(*name) + " twice";
    limit = value;
  }
  return {};
}

} // namespace

bool is_api_key_name(std::string_view name) {
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyz"
                                       "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789._-";
  return !name.empty() && name.size() <= api_key_name_max
         && name.find_first_not_of(allowed) == name.npos
         && !name.starts_with(api_key_prefix);
}

model::result<api_keys>
api_keys::parse(std::string_view text, const std::string& source) {
  api_keys keys;
  std::set<std::string_view> names;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.starts_with('#'))
      continue;
    // Never the text itself: someone may have put a key into the file.
    const auto wrong = [&](const std::string& what) {
      return model::failure{source + ": line " + std::to_string(number) + " "
                            + what};
    };
    const auto space = line.find_first_of(" \t");
    const std::string_view name = line.substr(0, space);
    const std::string_view rest =
      space == line.npos ? std::string_view() : trimmed(line.substr(space));
    const auto behind = std::min(rest.find_first_of(" \t"), rest.size());
    const std::string_view digest = rest.substr(0, behind);
    api_key e{std::string(name), {}, {}};
    if (!is_api_key_name(name) || !core::from_hex(digest, e.hash))
      return wrong(
        "is not \"NAME SHA256\": a name of letters, digits, '.', '_' "
        "and '-' that does not begin as keys do, and the 64 hexadecimal digits "
        "of a key's SHA-256");
    if (const std::string what =
          read_limits(trimmed(rest.substr(behind)), e.limits);
        !what.empty())
      return wrong(what);
    if (!names.insert(name).second)
      return wrong("has a name that an earlier line has, too");
    if (keys.keys_.size() == api_keys_max)
      return wrong("is one more than " + std::to_string(api_keys_max)
                   + " keys");
    keys.keys_.push_back(std::move(e));
  }
  return keys;
}

model::result<api_keys> api_keys::load(const std::filesystem::path& file) {
  std::vector<std::byte> bytes;
  if (const auto error = read_file(file, file_bytes_max, bytes))
    return model::failure{file.string()
                          + ": cannot read the API keys: " + error.message()};
  return parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
               file.string());
}

bool api_keys::has_name(std::string_view name) const {
  return std::ranges::any_of(
    keys_, [&](const api_key& key) { return key.name == name; });
}

const api_key* api_keys::find(std::string_view key) const {
  const core::blob_digest wanted = hash(key);
  const api_key* found = nullptr;
  for (const api_key& e : keys_) // all of them, so that no time tells which
    if (CRYPTO_memcmp(e.hash.data(), wanted.data(), wanted.size()) == 0)
      found = &e;
  return found;
}

new_api_key make_api_key(const std::string& name, const key_limits& limits) {
  SHOAL_ASSERT(is_api_key_name(name)
               && limits.requests_per_minute <= key_limit_max
               && limits.tokens_per_minute <= key_limit_max);
  std::array<std::uint8_t, key_bytes> random{};
  if (RAND_bytes(random.data(), int(random.size())) != 1)
    throw setup_error("cannot make an API key: the system has no random "
                      "numbers");
  new_api_key made;
  made.key = std::string(api_key_prefix) + core::to_hex(random);
  made.line = name + " " + core::to_hex(hash(made.key));
  const std::uint64_t values[] = {limits.requests_per_minute,
                                  limits.tokens_per_minute};
  for (std::size_t i = 0; i < std::size(values); ++i)
    if (values[i] > 0)
      made.line +=
        " " + std::string(limit_names[i]) + "=" + std::to_string(values[i]);
  made.line += "\n";
  OPENSSL_cleanse(random.data(), random.size());
  return made;
}

} // namespace shoal::runtime
