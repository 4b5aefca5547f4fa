// apps/remote/status_json.cpp -- fits foreign JSON to a pattern.
#include "apps/remote/status_json.hpp"

#include "runtime/core/cluster/membership.hpp" // members_max
#include "runtime/core/text/hex.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/files/json.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shoal::apps {
namespace {

using json = status_json;
using core::shown;

/// Numbers are cut to this, the wire's limit for operations and so for all
/// other numbers: sums of a few of them fit 64 bits, and each fits a double.
constexpr std::uint64_t number_max = std::uint64_t{1} << 56;

/// The required form of a value: a scalar gives kind and default, a list the
/// pattern of its elements. A key that ends in '?' is left out if the answer
/// lacks it. A default of -1 marks a number that may be negative, 0.5 one with
/// a fraction or null.
const json& pattern() {
  static const json stage = {
    {"id", ""}, {"first_layer", 0u}, {"last_layer", -1}};
  static const json keeper = {{"id", ""}, {"refuses", false}};
  static const json job = {
    {"id", ""},
    {"name", ""},
    {"state", ""},
    {"ending", false},
    {"priority", -1},
    {"changed", 0u},
    {"step", 0u},
    {"origin_step?", 0u},
    {"steps", 0u},
    {"loss", 0.5},
    {"tokens_per_s", 0.5},
    {"version?", 0u},
    {"plan?", ""},
    {"waiting?", ""},
    {"cause?", ""},
    {"user", ""},
    {"submitted_unix_ms", 0u},
    {"kind", "train"},
    {"places", json::array({json::array({stage})})},
    {"lr?", 0.5},
    {"checkpoint?", {{"step", 0u}, {"digest", ""}, {"unix_ms?", 0u}}},
    {"keepers?", json::array({keeper})},
    {"part_keepers?", json::array({keeper})}};
  static const json device = {{"kind", "cpu"},
                              {"name", ""},
                              {"threads", 1u},
                              {"host_threads", 0u},
                              {"mflops", 0u},
                              {"stream_mbps", 0u},
                              {"memory_bytes", 0u},
                              {"disk_bytes", 0u},
                              {"memory_for_jobs_bytes?", 0u},
                              {"host_memory_bytes", 0u},
                              {"memory_is_share", false}};
  static const json network = {
    {"name", ""}, {"latency_ns", 0u}, {"bytes_per_s", 0u}};
  static const json peer = {{"id", ""},
                            {"name", ""},
                            {"version", ""},
                            {"state", ""},
                            {"addresses", json::array({""})},
                            {"devices", json::array({device})},
                            {"incarnation", 1u},
                            {"host", ""},
                            {"voter", true},
                            {"witness", false},
                            {"roles", json::array({""})},
                            {"networks", json::array({network})}};
  static const json moved = {
    {"fabric", ""},
    {"sent_bytes", 0u},
    {"received_bytes", 0u},
    {"latency_ns", 0.5},
    {"bytes_per_s", 0.5},
    {"measured_ms_ago?", 0u},
    {"jobs",
     json::array({{{"job", ""}, {"sent_bytes", 0u}, {"received_bytes", 0u}}})}};
  static const json link = {
    {"peer", ""},
    {"fabric", ""},
    {"instead_of", json::array({{{"fabric", ""}, {"why", ""}}})},
    {"moved", json::array({moved})}};
  static const json other = {{"id", ""},
                             {"peers", json::array({""})},
                             {"members", 0u},
                             {"running", 0u},
                             {"gives_way?", ""}};
  static const json apart = {{"address", ""},
                             {"why", ""},
                             {"since_unix_ms", 0u},
                             {"latest_unix_ms", 0u}};
  static const json former = {
    {"id", ""}, {"name", ""}, {"how", ""}, {"unix_ms", 0u}};
  static const json pipeline = {
    {"pipeline", 0u}, {"ready", false}, {"streams", 0u},  {"running", 0u},
    {"waiting", 0u},  {"pages", 0u},    {"pages_max", 0u}};
  static const json served = {{"job", ""},
                              {"name", ""},
                              {"streams", 0u},
                              {"generated_tokens", 0u},
                              {"pipelines", json::array({pipeline})}};
  static const json all = {
    {"epoch", 0u},
    {"id", ""},
    {"self", ""},
    {"http?", ""},
    {"local_only?", false},
    {"name", ""},
    {"state", ""},
    {"waiting?", ""},
    {"revoked_by?", ""},
    {"beacons",
     {{"strange", 0u}, {"strange_last_minute", 0u}, {"strange_age_ms", 0u}}},
    {"peers", json::array({peer})},
    {"jobs", json::array({job})},
    {"other_shoals", json::array({other})},
    {"apart", json::array({apart})},
    {"former?", json::array({former})},
    {"cuts", json::array({json::array({""})})},
    {"links", json::array({link})},
    {"resources?",
     {{"cpu_seconds", 0.5},
      {"resident_bytes", 0u},
      {"store_bytes", 0u},
      {"store_room_bytes", 0u}}},
    {"serving?", json::array({served})}};
  return all;
}

json fit_number(const json& from, const json& like) {
  if (like.is_number_float())
    return from.is_number() && std::isfinite(from.get<double>()) ? from
                                                                 : json();
  if (like.is_number_unsigned())
    return from.is_number_unsigned()
             ? std::min(from.get<std::uint64_t>(), number_max)
             : like.get<std::uint64_t>();
  if (!from.is_number_integer()
      || (from.is_number_unsigned()
          && from.get<std::uint64_t>() > std::uint64_t(number_max)))
    return 0;
  return std::clamp<std::int64_t>(from.get<std::int64_t>(),
                                  std::numeric_limits<std::int32_t>::min(),
                                  std::numeric_limits<std::int32_t>::max());
}

/// Fits values to a pattern until there are too many of them.
class fitter {
public:
  json fit(const json& from, const json& like) {
    if (left_ > 0)
      --left_;
    else
      too_many_ = true;
    if (too_many_)
      return {};
    if (like.is_object())
      return fit_object(from, like);
    if (like.is_array()) {
      json out = json::array();
      if (from.is_array())
        for (std::size_t i = 0; i < from.size() && !too_many_; ++i)
          out.push_back(fit(from[i], like[0]));
      return out;
    }
    if (like.is_string())
      return from.is_string() ? json(
               shown(from.get_ref<const std::string&>(), status_text_bytes_max))
                              : like;
    if (like.is_boolean())
      return from.is_boolean() ? from : like;
    return fit_number(from, like);
  }
  bool too_many() const { return too_many_; }

private:
  json fit_object(const json& from, const json& like) {
    json out = json::object();
    for (const auto& [key, value] : like.items()) {
      const bool optional = key.ends_with('?');
      const std::string name = optional ? key.substr(0, key.size() - 1) : key;
      const auto found = from.is_object() ? from.find(name) : from.end();
      const bool there = from.is_object() && found != from.end();
      if (there || !optional)
        out[name] = fit(there ? *found : json(), value);
    }
    return out;
  }

  std::size_t left_ = status_values_max;
  bool too_many_ = false;
};

} // namespace

model::result<status_json> parse_status(std::string_view text) {
  const json from = model::parse_json<json>(text);
  if (!from.is_object() || !from.contains("peers") || !from.contains("jobs"))
    return model::failure{"its answer is no status: it may be of another "
                          "version (see `shoal --version` there)"};
  fitter by;
  json out = by.fit(from, pattern());
  if (by.too_many())
    return model::failure{"its answer has more than "
                          + std::to_string(status_values_max)
                          + " values: it is no true status"};
  return out;
}

const std::string& text_of(const status_json& from, const char* key) {
  return from[key].get_ref<const std::string&>();
}

core::view view_of(const status_json& status) {
  core::view v;
  v.number = status["epoch"].get<std::uint64_t>();
  for (const json& p : status["peers"]) {
    core::member m;
    if (!core::from_hex(p["id"].get_ref<const std::string&>(), m.id.peer)
        || v.members.size() == core::cluster::members_max)
      continue;
    m.id.incarnation = p["incarnation"].get<std::uint64_t>();
    m.name = p["name"].get<std::string>();
    m.host = p["host"].get<std::string>();
    m.witness = p["witness"].get<bool>();
    for (const json& role : p["roles"])
      m.roles.push_back(role.get<std::string>());
    for (const json& n : p["networks"])
      if (m.networks.size() < core::networks_max)
        m.networks.push_back(
          {n["name"].get<std::string>(),
           core::nanoseconds(std::min<std::uint64_t>(
             n["latency_ns"].get<std::uint64_t>(), core::limits::latency_max)),
           std::min(n["bytes_per_s"].get<std::uint64_t>(),
                    core::limits::bytes_max)});
    if (p["state"] == "leaving")
      m.state = core::member_state::leaving;
    for (const json& d : p["devices"]) {
      auto number = [&d](const char* key, std::uint64_t most) {
        return std::min(d[key].get<std::uint64_t>(), most);
      };
      m.device.kind = d["kind"].get<std::string>();
      m.device.name = d["name"].get<std::string>();
      // As the wire bounds them (fields() in runtime/core/view.hpp).
      m.device.threads = std::uint32_t(number("threads", 65536));
      m.device.host_threads = std::uint32_t(number("host_threads", 65536));
      m.device.mflops = number("mflops", std::uint64_t{1} << 40);
      m.device.stream_mbps = number("stream_mbps", std::uint64_t{1} << 40);
      m.device.memory_bytes = number("memory_bytes", std::uint64_t{1} << 48);
      m.device.host_memory_bytes =
        number("host_memory_bytes", std::uint64_t{1} << 48);
      m.device.memory_is_share = d["memory_is_share"].get<bool>();
      m.device.disk_bytes = number("disk_bytes", std::uint64_t{1} << 48);
    }
    v.members.push_back(m);
  }
  const auto id_of = [](const core::member& m) { return m.id.peer; };
  std::ranges::sort(v.members, {}, id_of);
  v.members.erase(
    std::unique(v.members.begin(), v.members.end(),
                [&](const core::member& a, const core::member& b) {
                  return id_of(a) == id_of(b);
                }),
    v.members.end());
  return v;
}

} // namespace shoal::apps
