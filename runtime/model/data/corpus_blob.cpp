// runtime/model/data/corpus_blob.cpp -- writes and checks a corpus as one blob.
//
//   magic      8 bytes "shoalc01"
//   vocab_size u32, files u32, train tokens u64, validation tokens u64
//   files x    { path bytes u16, path, validation u8, first u64, last u64 }
//   tokens     train, then validation: u8 if vocab_size <= 256, else u32
//
// Integers are little-endian. In each split the files follow one another
// without a gap.
#include "runtime/model/config/config.hpp"
#include "runtime/model/data/corpus.hpp"

#include <algorithm>
#include <cstring>

namespace shoal::model {

namespace {

constexpr std::string_view magic = "shoalc01";
constexpr std::size_t file_bytes_min = 2 + 1 + 8 + 8;

void put(std::vector<std::byte>& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i)
    out.push_back(static_cast<std::byte>(value >> (8 * i) & 0xff));
}

void put(std::vector<std::byte>& out, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

/// Takes values from the front of a blob; remembers if it was too short.
class cursor {
public:
  explicit cursor(std::span<const std::byte> blob) : rest_(blob) {}

  bool ok() const { return ok_; }
  std::size_t left() const { return rest_.size(); }
  std::span<const std::byte> take(std::size_t count) {
    if (count > rest_.size()) {
      ok_ = false;
      return {};
    }
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }
  std::uint64_t number(std::size_t bytes) {
    const auto from = take(bytes);
    std::uint64_t value = 0;
    for (std::size_t i = from.size(); i-- > 0;)
      value = value << 8 | std::to_integer<std::uint64_t>(from[i]);
    return value;
  }

private:
  std::span<const std::byte> rest_;
  bool ok_ = true;
};

/// Reads one split's tokens. @returns whether all are below vocab_size.
bool take_tokens(cursor& from, std::uint64_t count, const corpus& c,
                 std::vector<std::uint8_t>& u8,
                 std::vector<std::uint32_t>& u32) {
  const auto bytes =
    from.take(static_cast<std::size_t>(count) * (c.narrow() ? 1 : 4));
  if (c.narrow()) {
    u8.resize(bytes.size());
    if (!bytes.empty())
      std::memcpy(u8.data(), bytes.data(), bytes.size());
    return std::ranges::all_of(u8, [&](auto id) { return id < c.vocab_size; });
  }
  cursor each(bytes);
  u32.resize(bytes.size() / 4);
  for (std::uint32_t& id : u32)
    id = static_cast<std::uint32_t>(each.number(4));
  return std::ranges::all_of(u32, [&](auto id) { return id < c.vocab_size; });
}

/// Reads the table of files. @returns the error, or nullptr.
const char* take_files(cursor& from, std::uint64_t count, std::uint64_t train,
                       std::uint64_t validation, corpus& into) {
  std::uint64_t at[2] = {0, 0};
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto path = from.take(from.number(2));
    file_boundary file;
    file.relative.assign(reinterpret_cast<const char*>(path.data()),
                         path.size());
    const std::uint64_t side = from.number(1);
    file.first = from.number(8);
    file.last = from.number(8);
    if (!from.ok())
      return "is cut off in its table of files";
    if (side > 1 || file.first != at[side] || file.last < file.first
        || path.size() > corpus_path_bytes_max)
      return "has a table of files that does not agree with itself";
    file.validation = side == 1;
    at[side] = file.last;
    into.files.push_back(std::move(file));
  }
  if (at[0] != train || at[1] != validation)
    return "has files that do not cover its tokens";
  return nullptr;
}

} // namespace

std::vector<std::byte> serialise(const corpus& from) {
  std::vector<std::byte> out;
  const std::uint64_t tokens = from.train_size() + from.validation_size();
  out.reserve(32 + from.files.size() * 64 + tokens * (from.narrow() ? 1 : 4));
  put(out, magic);
  put(out, from.vocab_size, 4);
  put(out, from.files.size(), 4);
  put(out, from.train_size(), 8);
  put(out, from.validation_size(), 8);
  for (const file_boundary& file : from.files) {
    SHOAL_ASSERT(file.relative.size() <= corpus_path_bytes_max);
    put(out, file.relative.size(), 2);
    put(out, file.relative);
    put(out, file.validation ? 1 : 0, 1);
    put(out, file.first, 8);
    put(out, file.last, 8);
  }
  for (const auto* u8 : {&from.train_u8, &from.validation_u8}) {
    const auto bytes = std::as_bytes(std::span(*u8));
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  for (const auto* u32 : {&from.train_u32, &from.validation_u32}) {
    for (const std::uint32_t id : *u32)
      put(out, id, 4);
  }
  return out;
}

result<corpus> parse_corpus(std::span<const std::byte> blob) {
  auto fail = [](const char* what) {
    return failure{std::string("corpus blob: ") + what};
  };
  cursor from(blob);
  const auto head = from.take(magic.size());
  if (!from.ok() || std::memcmp(head.data(), magic.data(), magic.size()) != 0)
    return fail("is not a corpus");
  corpus all;
  all.vocab_size = static_cast<std::uint32_t>(from.number(4));
  const std::uint64_t files = from.number(4);
  const std::uint64_t train = from.number(8);
  const std::uint64_t validation = from.number(8);
  if (!from.ok())
    return fail("is cut off in its header");
  if (all.vocab_size == 0 || all.vocab_size > vocabulary_max)
    return fail("has an impossible vocab_size");
  if (files > 2 * corpus_files_max || // each may be on both sides
      files > from.left() / file_bytes_min)
    return fail("claims more files than it can hold");
  if (train > blob.size() || validation > blob.size())
    return fail("claims more tokens than it can hold");
  if (const char* wrong = take_files(from, files, train, validation, all))
    return fail(wrong);
  const bool ids_fit =
    take_tokens(from, train, all, all.train_u8, all.train_u32)
    && take_tokens(from, validation, all, all.validation_u8,
                   all.validation_u32);
  if (!from.ok() || from.left() != 0)
    return fail("has another size than its header says");
  if (!ids_fit)
    return fail("has a token that is not below its vocab_size");
  return all;
}

} // namespace shoal::model
