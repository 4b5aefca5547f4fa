// apps/plan/view_file.cpp -- reads the description of a shoal.
#include "apps/plan/view_file.hpp"

#include "runtime/core/assert.hpp"
#include "runtime/files/json.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace shoal::apps {
namespace {

using json = nlohmann::ordered_json;
using model::failure;

/// Reads keys of one table; keeps the first error.
class view_table {
public:
  /// A key that is not in `keys` is an error.
  view_table(const json& from, std::string path, std::span<const view_key> keys,
             std::string& error)
    : from_(from), path_(std::move(path)), keys_(keys), error_(error) {
    std::string known;
    for (const view_key& k : keys_)
      known += (known.empty() ? "" : ", ") + std::string(k.name);
    for (const auto& item : from_.items())
      if (std::ranges::count(keys_, std::string_view(item.key()),
                             &view_key::name)
          == 0)
        fail(item.key(), (path_.empty() ? "is no key of a view file, which has "
                                        : "is not known; there are ")
                           + known);
  }

  std::string text(std::string_view name) {
    const view_key& key = find(name);
    std::string usual(key.usual ? key.usual : "");
    const auto found = from_.find(std::string(name));
    if (found == from_.end()) {
      if (!key.usual)
        fail(name, "is missing");
      return usual;
    }
    if (!found->is_string() || found->get_ref<const std::string&>().empty()
        || found->get_ref<const std::string&>().size() > 64) {
      fail(name, "must be text of 1 to 64 characters");
      return usual;
    }
    return found->get<std::string>();
  }

  double number(std::string_view name) {
    const view_key& key = find(name);
    const double low = key.low, high = key.high;
    const auto found = from_.find(std::string(name));
    if (found == from_.end()) {
      if (!key.usual)
        fail(name, "is missing");
      return key.usual ? std::strtod(key.usual, nullptr) : low;
    }
    const bool whole = key.kind == view_key_kind::whole;
    const double x = found->is_number() ? found->get<double>() : low - 1;
    if (!(x >= low && x <= high) || (whole && !found->is_number_integer())) {
      char bounds[96];
      std::snprintf(bounds, sizeof bounds, "must be a %snumber from %g to %g",
                    whole ? "whole " : "", low, high);
      fail(name, bounds);
      return low;
    }
    return x;
  }

  const json* list(std::string_view name) {
    const auto found = from_.find(std::string(find(name).name));
    if (found == from_.end())
      return nullptr;
    if (!found->is_array()) {
      fail(name, "must be a list of tables");
      return nullptr;
    }
    return &*found;
  }

  void fail(std::string_view name, const std::string& what) {
    if (error_.empty())
      error_ =
        path_ + (path_.empty() ? "" : ".") + std::string(name) + " " + what;
  }

private:
  const view_key& find(std::string_view name) const {
    const auto at = std::ranges::find(keys_, name, &view_key::name);
    SHOAL_ASSERT(at != keys_.end());
    return *at;
  }

  const json& from_;
  std::string path_;
  std::span<const view_key> keys_;
  std::string& error_;
};

core::network_profile
network_of(const json& from, const std::string& path, std::string& error) {
  view_table t(from, path, network_keys(), error);
  core::network_profile out;
  out.name = t.text("name");
  out.latency = core::nanoseconds(1000 * t.number("latency_us"));
  out.bytes_per_s = std::uint64_t(1e9 * t.number("gb_per_s"));
  return out;
}

void add_group(core::view& v, const json& from, const std::string& path,
               std::string& error) {
  view_table t(from, path, member_keys(), error);
  const auto count = std::size_t(t.number("count"));
  const auto per_host = std::size_t(t.number("per_host"));
  const std::string name = t.text("name");
  core::member m;
  m.id.incarnation = 1;
  m.device.kind = t.text("kind");
  if (m.device.kind != "cpu" && m.device.kind != "cuda")
    t.fail("kind", "must be \"cpu\" or \"cuda\"");
  m.device.mflops = std::uint64_t(1e6 * t.number("tflops"));
  m.device.memory_bytes = std::uint64_t(1073741824.0 * t.number("memory_gib"));
  m.device.threads = std::uint32_t(t.number("threads"));
  m.device.host_threads = std::uint32_t(t.number("host_threads"));
  m.device.stream_mbps = std::uint64_t(1000 * t.number("stream_gb_per_s"));
  if (const json* networks = t.list("networks")) {
    if (networks->size() > core::networks_max)
      t.fail("networks", "has more than " + std::to_string(core::networks_max)
                           + " entries");
    else
      for (std::size_t n = 0; n < networks->size(); ++n)
        m.networks.push_back(
          network_of((*networks)[n],
                     path + ".networks[" + std::to_string(n) + "]", error));
  }
  if (v.members.size() + count > view_members_max)
    t.fail("count", "makes more than " + std::to_string(view_members_max)
                      + " members in all");
  if (!error.empty())
    return;
  const std::string host = path + "/"; // groups share no hosts
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = v.members.size();
    m.id.peer[0] = std::uint8_t(at >> 8);
    m.id.peer[1] = std::uint8_t(at);
    m.name = count == 1 ? name : name + "-" + std::to_string(i);
    m.host = host + std::to_string(i / per_host);
    v.members.push_back(m);
  }
}

constexpr view_key top_keys[] = {{"members", view_key_kind::list, nullptr, "",
                                  "groups of members that are alike"}};

} // namespace

std::span<const view_key> member_keys() {
  using enum view_key_kind;
  static constexpr view_key keys[] = {
    {"count", whole, "1", "", "members of the group", 1,
     double(view_members_max)},
    {"name", text, "peer", "",
     "of the member; of several: name-0, name-1, ..."},
    {"per_host", whole, "1", "", "members that share a machine", 1, 1024},
    {"kind", text, "cpu", "",
     "`cpu`, which shares its machine's cores with others, or `cuda`"},
    {"tflops", number, nullptr, "TFLOP/s",
     "what training reaches, not what is advertised", 1e-6, 1e5},
    {"memory_gib", number, nullptr, "GiB", "memory for jobs", 0.001, 1e5},
    {"threads", whole, "1", "", "threads of a cpu member", 1, 65536},
    {"host_threads", whole, "0", "", "cores of its machine; 0: not known", 0,
     65536},
    {"stream_gb_per_s", number, "0", "GB/s",
     "speed of its memory; 0: not counted", 0, 1e6},
    {"networks", list, "", "",
     "networks that it is in, with the keys below. Members of one machine "
     "reach each other by the one called `host`, others by one of the same "
     "name, or else as planning assumes of networks"}};
  return keys;
}

std::span<const view_key> network_keys() {
  using enum view_key_kind;
  static constexpr view_key keys[] = {
    {"name", text, nullptr, "", "equal where members reach each other"},
    {"latency_us", number, nullptr, "us", "one way, of a small message", 0,
     1e7},
    {"gb_per_s", number, nullptr, "GB/s", "its speed", 1e-6, 1e5}};
  return keys;
}

model::result<core::view>
parse_view(std::string_view text, const std::string& source) {
  const auto parsed = model::parse_json_object<json>(text, source);
  if (!parsed)
    return parsed.why();
  const json& all = *parsed;
  core::view v;
  v.number = 1;
  std::string error;
  view_table top(all, "", top_keys, error);
  const json* groups = top.list("members");
  if (error.empty() && (!groups || groups->empty()))
    error = "members is missing: at least one [[members]] is needed";
  for (std::size_t i = 0; error.empty() && i < groups->size(); ++i) {
    const std::string path = "members[" + std::to_string(i) + "]";
    if (!(*groups)[i].is_object())
      error = path + " must be a table";
    else
      add_group(v, (*groups)[i], path, error);
  }
  if (!error.empty())
    return failure{source + ": " + error};
  return v;
}

} // namespace shoal::apps
