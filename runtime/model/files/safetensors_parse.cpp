// runtime/model/files/safetensors_parse.cpp -- checks the header of a file.
#include "runtime/files/json.hpp"
#include "runtime/model/files/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>

namespace shoal::model {

namespace {

using json = nlohmann::json;

/// Longest name, and most dimensions, of one tensor.
constexpr std::size_t name_bytes_max = 1024;
constexpr std::size_t dimensions_max = 16;

struct type_info {
  const char* name;
  std::uint64_t bits;
  stored_type type;
};

constexpr type_info types[] = {
  {"F32", 32, stored_type::f32},      {"F16", 16, stored_type::f16},
  {"BF16", 16, stored_type::bf16},    {"F64", 64, stored_type::other},
  {"I64", 64, stored_type::other},    {"I32", 32, stored_type::other},
  {"I16", 16, stored_type::other},    {"I8", 8, stored_type::other},
  {"U64", 64, stored_type::other},    {"U32", 32, stored_type::other},
  {"U16", 16, stored_type::other},    {"U8", 8, stored_type::other},
  {"BOOL", 8, stored_type::other},    {"F8_E4M3", 8, stored_type::other},
  {"F8_E5M2", 8, stored_type::other}, {"C64", 64, stored_type::other}};

std::uint64_t little_endian_u64(const std::byte* from) {
  std::uint64_t value = 0;
  for (int i = 7; i >= 0; --i)
    value = value << 8 | std::to_integer<std::uint64_t>(from[i]);
  return value;
}

/// Parses the header; finds duplicate names.
json parse_unique(std::string_view text, std::string& fault) {
  std::set<std::string> seen;
  auto watch = [&](int depth, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::key && depth == 1
        && !seen.insert(value.get_ref<const std::string&>()).second)
      fault = "tensor "
              + core::shown(value.get_ref<const std::string&>(), json_shown_max)
              + ": comes twice";
    return true;
  };
  json header = parse_json(text, watch);
  if (!header.is_object())
    fault = nests_too_deep(text) ? "the header is nested too deep"
                                 : "the header is not a JSON object";
  return header;
}

/// Fills everything of `t` from its entry. @returns the error, or "".
std::string read_entry(const json& entry, std::uint64_t data_first,
                       std::uint64_t data_bytes, stored_tensor& t) {
  if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape")
      || !entry.contains("data_offsets"))
    return "lacks dtype, shape or data_offsets";
  const json& dtype = entry["dtype"];
  const json& shape = entry["shape"];
  const json& offsets = entry["data_offsets"];
  if (!dtype.is_string() || !shape.is_array() || !offsets.is_array())
    return "dtype, shape or data_offsets is of the wrong kind";
  t.type_name =
    core::shown(dtype.get_ref<const std::string&>(), json_shown_max);
  auto type = std::ranges::find_if(
    types, [&](const type_info& i) { return t.type_name == i.name; });
  if (type == std::end(types))
    return "unknown dtype " + t.type_name;
  t.type = type->type;

  if (shape.size() > dimensions_max)
    return "has more than " + std::to_string(dimensions_max) + " dimensions";
  t.count = 1;
  for (const json& n : shape) {
    if (!n.is_number_unsigned())
      return "shape is not a list of whole numbers";
    t.shape.push_back(n.get<std::uint64_t>());
    if (__builtin_mul_overflow(t.count, t.shape.back(), &t.count))
      return "shape is too large";
  }
  if (offsets.size() != 2 || !offsets[0].is_number_unsigned()
      || !offsets[1].is_number_unsigned())
    return "data_offsets is not a pair of whole numbers";
  const auto first = offsets[0].get<std::uint64_t>();
  const auto last = offsets[1].get<std::uint64_t>();
  if (first > last || last > data_bytes)
    return "data_offsets " + json_text(offsets) + " lie outside the "
           + std::to_string(data_bytes) + " bytes of data";
  std::uint64_t bits = 0;
  if (__builtin_mul_overflow(t.count, type->bits, &bits)
      || bits / 8 != last - first)
    return "has " + std::to_string(last - first) + " bytes, but " + t.type_name
           + " of shape " + json_text(shape) + " needs others";
  t.first = data_first + first;
  t.last = data_first + last;
  return {};
}

/// @returns an error about a tensor that overlaps the one before it, or leaves
/// a hole; "" if all tensors cover the data exactly.
std::string misplaced(std::vector<stored_tensor>& tensors,
                      std::uint64_t data_first, std::uint64_t data_last) {
  std::ranges::sort(tensors, [](const auto& a, const auto& b) {
    return std::tie(a.first, a.last) < std::tie(b.first, b.last);
  });
  std::uint64_t at = data_first;
  for (const stored_tensor& t : tensors) {
    if (t.first != at)
      return "tensor " + core::shown(t.name, json_shown_max)
             + (t.first < at ? ": overlaps the one before it"
                             : ": leaves a hole before it");
    at = t.last;
  }
  if (at != data_last)
    return "the file has " + std::to_string(data_last - at)
           + " bytes that belong to no tensor";
  return {};
}

} // namespace

std::uint64_t
header_end(std::span<const std::byte> begin, std::uint64_t file_bytes) {
  if (begin.size() < 8)
    return begin.size();
  const std::uint64_t header = little_endian_u64(begin.data());
  return header > header_bytes_max || header > file_bytes - 8 ? begin.size()
                                                              : 8 + header;
}

result<std::vector<stored_tensor>>
parse_safetensors(std::span<const std::byte> file, std::string_view where) {
  return parse_safetensors(file, file.size(), where);
}

result<std::vector<stored_tensor>>
parse_safetensors(std::span<const std::byte> file, std::uint64_t file_bytes,
                  std::string_view where) {
  auto fail = [&](const std::string& what) {
    return failure{std::string(where) + ": " + what};
  };
  if (is_lfs_pointer({reinterpret_cast<const char*>(file.data()),
                      std::min(file.size(), lfs_pointer_bytes_max)}))
    return fail(lfs_pointer_text);
  if (file.size() < 8)
    return fail("is shorter than the 8 bytes of its header's length");
  const std::uint64_t header_bytes = little_endian_u64(file.data());
  if (header_bytes > header_bytes_max)
    return fail("its header claims " + std::to_string(header_bytes)
                + " bytes; at most " + std::to_string(header_bytes_max)
                + " are allowed");
  if (header_bytes > file_bytes - 8 || header_bytes > file.size() - 8)
    return fail("is cut off: its header claims " + std::to_string(header_bytes)
                + " bytes, the file has " + std::to_string(file_bytes));
  std::string fault;
  const json header =
    parse_unique({reinterpret_cast<const char*>(file.data()) + 8,
                  static_cast<std::size_t>(header_bytes)},
                 fault);
  if (!fault.empty())
    return fail(fault);

  const std::uint64_t data_first = 8 + header_bytes;
  std::vector<stored_tensor> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__")
      continue;
    if (tensors.size() == tensors_max || name.size() > name_bytes_max)
      return fail("has too many tensors or too long names");
    stored_tensor t;
    t.name = name;
    fault = read_entry(entry, data_first, file_bytes - data_first, t);
    if (!fault.empty())
      return fail("tensor " + core::shown(name, json_shown_max) + ": " + fault);
    tensors.push_back(std::move(t));
  }
  fault = misplaced(tensors, data_first, file_bytes);
  if (!fault.empty())
    return fail(fault);
  return tensors;
}

namespace {

float from_half(std::uint16_t h) {
  const std::uint32_t sign = std::uint32_t(h & 0x8000u) << 16;
  std::uint32_t exponent = h >> 10 & 0x1fu;
  std::uint32_t fraction = h & 0x3ffu;
  if (exponent == 31) // infinity, NaN
    return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent != 0)
    return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

std::uint32_t little_endian_u32(const std::byte* b) {
  return std::to_integer<std::uint32_t>(b[0])
         | std::to_integer<std::uint32_t>(b[1]) << 8
         | std::to_integer<std::uint32_t>(b[2]) << 16
         | std::to_integer<std::uint32_t>(b[3]) << 24;
}

std::uint16_t little_endian_u16(const std::byte* b) {
  return static_cast<std::uint16_t>(std::to_integer<unsigned>(b[0])
                                    | std::to_integer<unsigned>(b[1]) << 8);
}

} // namespace

void widen(stored_type type, const std::byte* bytes, std::span<float> into) {
  SHOAL_ASSERT(type != stored_type::other);
  for (std::size_t i = 0; i < into.size(); ++i) {
    if (type == stored_type::f32)
      into[i] = std::bit_cast<float>(little_endian_u32(bytes + 4 * i));
    else if (type == stored_type::bf16)
      into[i] = std::bit_cast<float>(
        std::uint32_t(little_endian_u16(bytes + 2 * i)) << 16);
    else
      into[i] = from_half(little_endian_u16(bytes + 2 * i));
  }
}

} // namespace shoal::model
