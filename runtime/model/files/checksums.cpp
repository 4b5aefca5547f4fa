// runtime/model/files/checksums.cpp -- hashes of whole files, read in pieces.
#include "runtime/model/files/checksums.hpp"

#include "runtime/files/bytes_hash.hpp"
#include "runtime/files/file_io.hpp"
#include "runtime/files/json.hpp"
#include "runtime/files/posix.hpp"
#include "runtime/model/files/safetensors.hpp" // shards_max

#include <charconv>
#include <cstdio>
#include <vector>

namespace shoal::model {

namespace fs = std::filesystem;
namespace posix = runtime::posix;

namespace {

constexpr char algorithm[] = "xxh3-64";
constexpr std::size_t digits = 16;
/// Bytes that are read at once.
constexpr std::size_t piece_bytes = 1u << 20;

/// Kinds of weights that a checkpoint holds.
constexpr std::string_view kinds[] = {"model", "optimizer"};

std::string digits_of(std::uint64_t sum) {
  char text[digits + 1];
  std::snprintf(text, sizeof text, "%016llx", (unsigned long long)sum);
  return text;
}

/// @returns whether `text` is a checksum as digits_of() writes it
bool read_digits(std::string_view text, std::uint64_t& sum) {
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, sum, 16);
  return text.size() == digits && error == std::errc() && at == end
         && digits_of(sum) == text;
}

/// Hashes a file. @param told  gets its bytes so far
result<std::uint64_t> sum_of(const fs::path& file, const watch& told) {
  std::error_code error;
  const posix::descriptor fd = posix::open_regular(file, O_RDONLY, error);
  if (error)
    return file_failure(file, "cannot open", error);
  const std::uint64_t all = fs::file_size(file, error);
  runtime::bytes_hasher hasher;
  std::vector<std::byte> piece(piece_bytes);
  for (std::uint64_t seen = 0;;) {
    if (status on = tell(told, "checking " + file.filename().string(), seen,
                         error ? 0 : all);
        !on)
      return on.why();
    const ssize_t got = ::read(fd.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return file_failure(file, "cannot read", posix::last_error());
    if (got == 0)
      return hasher.hash();
    hasher.add({piece.data(), static_cast<std::size_t>(got)});
    seen += static_cast<std::uint64_t>(got);
  }
}

} // namespace

bool is_weights_file(std::string_view name, std::string_view kind) {
  constexpr std::string_view end = ".safetensors";
  constexpr std::string_view index = ".safetensors.index.json";
  if (!name.starts_with(kind))
    return false;
  const std::string_view rest = name.substr(kind.size());
  return rest == end || rest == index
         || (rest.starts_with("-") && rest.ends_with(end));
}

result<checksums>
parse_checksums(std::string_view text, std::string_view where) {
  const std::string source(where);
  const auto json = parse_json_object(text, where);
  if (!json)
    return json.why();
  if (!json->contains("algorithm") || !json->contains("files")
      || !(*json)["files"].is_object())
    return failure{source + ": is not an object with algorithm and files"};
  if ((*json)["algorithm"] != algorithm)
    return failure{source + ": algorithm is " + shown((*json)["algorithm"])
                   + "; expected \"" + algorithm + "\""};
  if ((*json)["files"].size() > 2 * shards_max)
    return failure{source + ": names more than "
                   + std::to_string(2 * shards_max) + " files"};
  checksums out;
  for (const auto& [name, value] : (*json)["files"].items()) {
    const std::string file =
      source + ": " + core::shown(name, json_shown_max) + ": ";
    if (name.empty() || name == "." || name == ".."
        || name.find('/') != std::string::npos || !core::is_shown(name))
      return failure{file + "is not the name of a file beside it"};
    const auto* const written = value.get_ptr<const std::string*>();
    if (written == nullptr || !read_digits(*written, out[name]))
      return failure{file + shown(value)
                     + " is not a checksum of 16 lowercase hexadecimal digits"};
  }
  return out;
}

std::string to_json(const checksums& sums) {
  nlohmann::ordered_json files = nlohmann::ordered_json::object();
  for (const auto& [name, sum] : sums)
    files[name] = digits_of(sum);
  nlohmann::ordered_json out;
  out["algorithm"] = algorithm;
  out["files"] = files;
  return json_text(out, 2) + "\n";
}

result<checksums> load_checksums(const fs::path& directory) {
  const fs::path path = directory / checksums_name;
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error)))
    return checksums{};
  const auto text = read_file(path, checksums_bytes_max);
  return text ? parse_checksums(*text, path.string())
              : result<checksums>(text.why());
}

status write_checksums(const fs::path& directory) {
  checksums sums;
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  for (const fs::directory_iterator end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    for (const std::string_view kind : kinds) {
      if (!is_weights_file(name, kind))
        continue;
      const auto sum = sum_of(entry->path(), {});
      if (!sum)
        return sum.why();
      sums[name] = *sum;
    }
  }
  if (error)
    return file_failure(directory, "cannot read", error);
  return write_file(directory / checksums_name, to_json(sums));
}

status check_checksums(const fs::path& directory, std::string_view kind,
                       const watch& told) {
  const auto sums = load_checksums(directory);
  if (!sums)
    return sums.why();
  for (const auto& [name, wanted] : *sums) {
    const fs::path file = directory / name;
    std::error_code error;
    if (!is_weights_file(name, kind) || !fs::is_regular_file(file, error))
      continue;
    const auto sum = sum_of(file, told);
    if (!sum)
      return sum.why();
    if (*sum != wanted)
      return failure{file.string() + ": is damaged: its checksum (" + algorithm
                     + ") is " + digits_of(*sum) + ", but "
                     + (directory / checksums_name).string() + " says "
                     + digits_of(wanted)
                     + " (if you have changed the file yourself, remove "
                     + checksums_name + ")"};
  }
  return done{};
}

} // namespace shoal::model
