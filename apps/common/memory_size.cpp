// apps/common/memory_size.cpp -- parses and prints amounts of memory.
#include "apps/common/memory_size.hpp"

#include "runtime/core/text/shown.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <string_view>

namespace shoal::apps {
namespace {

struct unit {
  std::string_view name;
  double bytes;
};
constexpr double kib = 1024;
constexpr std::array<unit, 14> units{{{"K", kib},
                                      {"k", kib},
                                      {"KiB", kib},
                                      {"KB", 1e3},
                                      {"kB", 1e3},
                                      {"M", kib* kib},
                                      {"MiB", kib* kib},
                                      {"MB", 1e6},
                                      {"G", kib* kib* kib},
                                      {"GiB", kib* kib* kib},
                                      {"GB", 1e9},
                                      {"T", kib* kib* kib* kib},
                                      {"TiB", kib* kib* kib* kib},
                                      {"TB", 1e12}}};

} // namespace

model::result<std::uint64_t>
parse_memory(const std::string& text, std::uint64_t have) {
  if (text.empty())
    return std::uint64_t{0};
  const std::string is = "is '" + core::shown(text) + "', ";
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || !std::isfinite(value) || value < 0)
    return model::failure{
      is + "which is not a number with a unit, such as "
      + (have > 0 ? "8GiB, 512MiB or 50%" : "8GiB or 512MiB")};
  const std::string_view name(rest, std::size_t(end - rest));
  double factor = 0;
  if (name == "%" && have > 0)
    factor = double(have) / 100;
  for (const unit& u : units)
    if (name == u.name)
      factor = u.bytes;
  if (factor == 0)
    return model::failure{
      is + (name.empty() ? "which has no unit" : "whose unit is not known")
      + ": write 8GiB, 512MiB" + (have > 0 ? ", 8GB or 50%" : " or 8GB")};
  const double bytes = value * factor;
  if (bytes < 1)
    return model::failure{
      is + (have > 0 ? "which is no memory at all" : "which is nothing at all")
      + ": give at least what a model needs, such as "
        "1GiB"};
  if (have > 0 && bytes > double(have))
    return model::failure{is + "but this machine has " + memory_text(have)
                          + " for this process: give less, such as 50%"};
  constexpr double most = 1e18; // fits 64 bits; larger than any machine
  if (bytes > most)
    return model::failure{is + "which no machine has"};
  return std::uint64_t(bytes);
}

std::string memory_text(std::uint64_t bytes) {
  static constexpr const char* names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = double(bytes);
  std::size_t at = 0;
  for (; value >= kib && at + 1 < std::size(names); ++at)
    value /= kib;
  char out[32];
  std::snprintf(out, sizeof out, at == 0 ? "%.0f %s" : "%.1f %s", value,
                names[at]);
  return out;
}

} // namespace shoal::apps
