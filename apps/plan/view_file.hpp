// apps/plan/view_file.hpp -- a shoal that does not exist, described for
// planning.
//
//   [[members]]              # one or more groups of members that are alike
//   count = 128
//   name = "gpu"             # gpu-0, gpu-1, ...
//   per_host = 8
//   kind = "cuda"
//   tflops = 380.0
//   memory_gib = 180
//   networks = [{ name = "host", latency_us = 5, gb_per_s = 400 },
//               { name = "ib", latency_us = 8, gb_per_s = 45 }]
//
// Two tables hold all keys, member_keys() and network_keys(): files are read by
// them, and `shoal reference` prints them.
//
// Members of one host reach each other by "host", others by a network of the
// same name, or else with the values that planning assumes
// (core/planning/cost.hpp).
//
// Errors: a failure names the file and the key, such as members[1].tflops.
// Limits: view_members_max members.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/core/view.hpp"

#include <span>
#include <string>
#include <string_view>

namespace shoal::apps {

inline constexpr std::size_t view_members_max = 4096;

enum class view_key_kind { text, number, whole, list };

struct view_key {
  std::string_view name;
  view_key_kind kind;
  const char* usual;     ///< default, without quotes; null: required
  std::string_view unit; ///< empty: none
  std::string_view help;
  double low = 0; ///< for numbers
  double high = 0;
};
std::span<const view_key> member_keys();  ///< of each entry of [[members]]
std::span<const view_key> network_keys(); ///< of each network of a member

/// @param json the file as JSON (toml_text_to_json)
/// @param source names the file in errors
model::result<core::view>
parse_view(std::string_view json, const std::string& source);

} // namespace shoal::apps
