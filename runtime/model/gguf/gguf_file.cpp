// runtime/model/gguf/gguf_file.cpp -- parses a file, strictly.
#include "runtime/model/gguf/gguf_file.hpp"

#include "runtime/core/text/shown.hpp"
#include "runtime/model/files/safetensors.hpp" // tensors_max

#include <bit>
#include <cstring>
#include <optional>

namespace shoal::model::gguf {

static_assert(std::endian::native == std::endian::little);

block_size size_of(block_type type) {
  switch (type) {
  case block_type::f32:
    return {1, 4};
  case block_type::f16:
  case block_type::bf16:
    return {1, 2};
  case block_type::q4_0:
    return {32, 18};
  case block_type::q8_0:
    return {32, 34};
  case block_type::q4_k:
    return {256, 144};
  case block_type::q5_k:
    return {256, 176};
  case block_type::q6_k:
    return {256, 210};
  }
  return {};
}

std::string name_of(block_type type) {
  switch (type) {
  case block_type::f32:
    return "F32";
  case block_type::f16:
    return "F16";
  case block_type::bf16:
    return "BF16";
  case block_type::q4_0:
    return "Q4_0";
  case block_type::q8_0:
    return "Q8_0";
  case block_type::q4_k:
    return "Q4_K";
  case block_type::q5_k:
    return "Q5_K";
  case block_type::q6_k:
    return "Q6_K";
  }
  return "type " + std::to_string(std::uint32_t(type));
}

/// Reads a file from its beginning; the first fault stays.
class parser {
public:
  parser(std::span<const std::byte> bytes, std::string_view where)
    : bytes_(bytes), where_(where) {}

  result<file> run() {
    file out;
    out.where_ = where_;
    if (text_of(4) != "GGUF")
      return failure{where_ + ": is no GGUF file"};
    const auto version = number<std::uint32_t>();
    if (version != 2 && version != 3)
      return failure{where_ + ": is of version " + std::to_string(version)
                     + " of GGUF; 2 and 3 can be read"};
    const auto tensors = number<std::uint64_t>();
    const auto keys = number<std::uint64_t>();
    if (tensors > tensors_max || keys > keys_max)
      return failure{where_ + ": claims " + std::to_string(tensors)
                     + " tensors and " + std::to_string(keys) + " keys"};
    for (std::uint64_t i = 0; i < keys && !wrong_; ++i)
      read_key(out);
    std::vector<claim> claims;
    for (std::uint64_t i = 0; i < tensors && !wrong_; ++i)
      read_tensor(claims);
    if (wrong_)
      return failure{where_ + ": " + *wrong_};
    if (auto placed = place(claims, out); !placed)
      return placed.why();
    return out;
  }

private:
  /// A tensor as it is described, before its data's place is known.
  struct claim {
    tensor is;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };

  void fail(std::string why) {
    if (!wrong_)
      wrong_ = std::move(why);
  }

  std::span<const std::byte> take(std::uint64_t count) {
    if (wrong_ || count > bytes_.size() - at_) {
      fail("is truncated" + (inside_.empty() ? "" : " in " + inside_));
      return {};
    }
    const auto out = bytes_.subspan(at_, count);
    at_ += count;
    return out;
  }

  template <class T>
  T number() {
    T out{};
    if (const auto from = take(sizeof(T)); !from.empty())
      std::memcpy(&out, from.data(), sizeof(T));
    return out;
  }

  std::string_view text_of(std::uint64_t count) {
    const auto from = take(count);
    return {reinterpret_cast<const char*>(from.data()), from.size()};
  }
  std::string_view text() { return text_of(number<std::uint64_t>()); }

  std::string name() {
    const std::string_view out = text();
    if (out.empty() || out.size() > name_bytes_max)
      fail("has a name of " + std::to_string(out.size()) + " bytes"
           + (inside_.empty() ? "" : " after " + inside_));
    return core::shown(out, name_bytes_max);
  }

  void read_key(file& out) {
    const std::string key = name();
    inside_ = "key " + key;
    value v = read_value(number<std::uint32_t>());
    if (!wrong_ && !out.keys_.emplace(key, std::move(v)).second)
      fail(inside_ + " occurs twice");
  }

  value read_value(std::uint32_t type) {
    constexpr std::uint32_t list = 9;
    if (type == list)
      return read_list();
    return read_one(type);
  }

  value read_one(std::uint32_t type) {
    switch (type) {
    case 0:
      return std::uint64_t(number<std::uint8_t>());
    case 1:
      return std::int64_t(number<std::int8_t>());
    case 2:
      return std::uint64_t(number<std::uint16_t>());
    case 3:
      return std::int64_t(number<std::int16_t>());
    case 4:
      return std::uint64_t(number<std::uint32_t>());
    case 5:
      return std::int64_t(number<std::int32_t>());
    case 6:
      return double(number<float>());
    case 7:
      return number<std::uint8_t>() != 0;
    case 8:
      return text();
    case 10:
      return number<std::uint64_t>();
    case 11:
      return number<std::int64_t>();
    case 12:
      return number<double>();
    default:
      fail(inside_ + " has type " + std::to_string(type)
           + ", which is not known");
      return false;
    }
  }

  value read_list() {
    const auto type = number<std::uint32_t>();
    const auto count = number<std::uint64_t>();
    // Each item has a byte at least.
    if (wrong_ || count > bytes_.size() - at_ || count > list_max) {
      fail(inside_ + " claims " + std::to_string(count)
           + " items, more than there can be");
      return false;
    }
    texts all;
    numbers values;
    for (std::uint64_t i = 0; i < count && !wrong_; ++i) {
      const value one = read_one(type);
      if (const auto* t = std::get_if<std::string_view>(&one))
        all.push_back(*t);
      else
        values.push_back(as_number(one));
    }
    if (type == 8)
      return all;
    return values;
  }

  static double as_number(const value& v) {
    if (const auto* u = std::get_if<std::uint64_t>(&v))
      return double(*u);
    if (const auto* i = std::get_if<std::int64_t>(&v))
      return double(*i);
    if (const auto* d = std::get_if<double>(&v))
      return *d;
    const auto* b = std::get_if<bool>(&v);
    return b != nullptr && *b ? 1 : 0;
  }

  void read_tensor(std::vector<claim>& to) {
    claim c;
    c.is.name = name();
    inside_ = "tensor " + c.is.name;
    const auto rank = number<std::uint32_t>();
    if (rank == 0 || rank > rank_max)
      return fail(inside_ + " has " + std::to_string(rank) + " dimensions");
    c.is.count = 1;
    for (std::uint32_t i = 0; i < rank && !wrong_; ++i) {
      const auto size = number<std::uint64_t>();
      if (!wrong_ && (size == 0 || size > bytes_.size() * 256 / c.is.count))
        return fail(inside_ + " is larger than the file");
      c.is.count *= size;
      c.is.shape.insert(c.is.shape.begin(), size);
    }
    const auto type = number<std::uint32_t>();
    c.offset = number<std::uint64_t>();
    if (wrong_)
      return;
    c.is.type = block_type(type);
    const block_size block = size_of(c.is.type);
    if (block.bytes == 0)
      return fail(inside_ + " has " + name_of(c.is.type)
                  + ", which cannot be read (F32, F16, BF16, Q8_0, Q4_0, Q4_K, "
                    "Q5_K and Q6_K can)");
    if (c.is.shape.back() % block.values != 0)
      return fail(inside_ + " has rows of " + std::to_string(c.is.shape.back())
                  + " values, which are no whole blocks of "
                  + name_of(c.is.type));
    c.bytes = c.is.count / block.values * block.bytes;
    to.push_back(std::move(c));
  }

  status place(std::vector<claim>& claims, file& out) {
    const auto aligned = out.whole("general.alignment", 32);
    if (!aligned)
      return aligned.why();
    if (!std::has_single_bit(*aligned) || *aligned > 1u << 20)
      return failure{where_ + ": key general.alignment: is "
                     + std::to_string(*aligned)};
    const std::uint64_t first = (at_ + *aligned - 1) / *aligned * *aligned;
    const std::uint64_t room =
      first > bytes_.size() ? 0 : bytes_.size() - first;
    for (claim& c : claims) {
      if (c.offset > room || c.bytes > room - c.offset)
        return failure{where_ + ": tensor " + c.is.name
                       + ": its data ends after the file: is it truncated?"};
      if (c.offset % *aligned != 0)
        return failure{where_ + ": tensor " + c.is.name
                       + ": its data is not aligned"};
      c.is.data = bytes_.subspan(first + c.offset, c.bytes);
      const std::string name = c.is.name;
      if (!out.tensors_.emplace(name, std::move(c.is)).second)
        return failure{where_ + ": tensor " + name + ": occurs twice"};
    }
    return done{};
  }

  std::span<const std::byte> bytes_;
  std::string where_;
  std::size_t at_ = 0;
  std::string inside_; ///< what is being read
  std::optional<std::string> wrong_;
};

result<file>
file::parse(std::span<const std::byte> bytes, std::string_view where) {
  return parser(bytes, where).run();
}

const value* file::find(std::string_view key) const {
  const auto at = keys_.find(key);
  return at == keys_.end() ? nullptr : &at->second;
}

const tensor* file::find_tensor(std::string_view name) const {
  const auto at = tensors_.find(name);
  return at == tensors_.end() ? nullptr : &at->second;
}

static failure is_not(const file& f, std::string_view key, const char* what) {
  return failure{f.where() + ": key " + std::string(key) + ": is no " + what};
}

result<std::uint64_t> file::whole(std::string_view key) const {
  const value* v = find(key);
  if (v == nullptr)
    return failure{where_ + ": key " + std::string(key) + ": is missing"};
  if (const auto* u = std::get_if<std::uint64_t>(v))
    return *u;
  if (const auto* i = std::get_if<std::int64_t>(v); i != nullptr && *i >= 0)
    return std::uint64_t(*i);
  return is_not(*this, key, "whole number");
}

result<std::uint64_t>
file::whole(std::string_view key, std::uint64_t usual) const {
  if (find(key) == nullptr)
    return usual;
  return whole(key);
}

result<double> file::real(std::string_view key, double usual) const {
  const value* v = find(key);
  if (v == nullptr)
    return usual;
  if (const auto* d = std::get_if<double>(v))
    return *d;
  return is_not(*this, key, "number");
}

result<std::string_view> file::text(std::string_view key) const {
  const value* v = find(key);
  if (v == nullptr)
    return failure{where_ + ": key " + std::string(key) + ": is missing"};
  if (const auto* t = std::get_if<std::string_view>(v))
    return *t;
  return is_not(*this, key, "text");
}

} // namespace shoal::model::gguf
