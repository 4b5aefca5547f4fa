// apps/train/run_changes.cpp -- compares two runs as JSON, key by key.
#include "apps/train/run_changes.hpp"

#include "runtime/core/text/shown.hpp"
#include "runtime/files/json.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace shoal::apps {
namespace {

using json = nlohmann::ordered_json;

/// Number of changes that one line lists; more are counted. A model of another
/// kind differs in most of some 40 keys.
constexpr std::size_t listed_max = 8;
/// Bytes of a value in such a list: there may be many paths.
constexpr std::size_t value_bytes_max = 200;

json resolved(const runtime::run_config& run) {
  json all = model::parse_json<json>(runtime::to_json(run));
  all["training"]["global_batch_size"] = run.sequences_per_step();
  all["training"]["mixed_precision_param"] = run.mixed_precision_param;
  return all;
}

std::string text_of(const json& section, const std::string& key) {
  const auto found = section.find(key);
  return found == section.end()
           ? "none"
           : core::shown(model::json_text(*found), value_bytes_max);
}

} // namespace

change_kind kind_of(std::string_view section, std::string_view key) {
  if (section == "model") // its path is only where training began
    return key == "path" ? change_kind::free : change_kind::refused;
  if (section == "data" && key == "bytes_max")
    return change_kind::free;
  if (section == "data")
    return change_kind::text;
  if (section == "training" && key == "max_bad_steps")
    return change_kind::free;
  if (section == "training")
    return key == "steps" || key == "max_norm" || key == "mixed_precision_param"
             ? change_kind::told
             : change_kind::refused;
  if (section == "optimizer" && key == "name") // its moments have another
                                               // meaning
    return change_kind::refused;
  for (const std::string_view free :
       {"job", "parallelism", "fault_tolerance", "checkpoint", "metrics",
        "validation", "roles"})
    if (section == free)
      return change_kind::free;
  return change_kind::told;
}

std::vector<run_change>
changes(const runtime::run_config& before, const runtime::run_config& now) {
  const json old = resolved(before), fresh = resolved(now);
  std::vector<run_change> out;
  auto compare = [&](const std::string& section, const std::string& key) {
    const json none = json::object();
    const json& a = old.contains(section) ? old[section] : none;
    const json& b = fresh.contains(section) ? fresh[section] : none;
    const std::string name = section + "." + key;
    const bool seen =
      std::ranges::find(out, name, &run_change::key) != out.end();
    if (!seen && a.value(key, json()) != b.value(key, json()))
      out.push_back(
        {name, text_of(a, key), text_of(b, key), kind_of(section, key)});
  };
  for (const json* side : {&fresh, &old})
    for (const auto& section : side->items())
      if (section.value().is_object()) // [[roles]] may change
        for (const auto& key : section.value().items())
          compare(section.key(), key.key());
  return out;
}

std::string to_text(const std::vector<run_change>& all, change_kind kind) {
  std::string out;
  std::size_t count = 0;
  for (const run_change& c : all) {
    if (c.kind != kind || ++count > listed_max)
      continue;
    out += (out.empty() ? "" : "; ") + c.key + " was " + c.before + " and is "
           + c.now;
  }
  if (count > listed_max)
    out += "; and " + std::to_string(count - listed_max) + " more";
  return out;
}

bool rate_jumps(const runtime::run_config& before,
                const runtime::run_config& now, std::int64_t done) {
  runtime::run_config with = now;
  with.lr = before.lr;
  const double rate = learning_rate(before, done + 1);
  return std::abs(learning_rate(with, done + 1) - rate) > 1e-6 * std::abs(rate);
}

} // namespace shoal::apps
