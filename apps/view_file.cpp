// apps/view_file.cpp -- reads a described shoal.
#include "apps/view_file.hpp"

#include "runtime/model/json.hpp"

#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <optional>

namespace shoal::apps {
namespace {

using json = nlohmann::ordered_json;
using model::failure;

/// Reads keys of one table; the first error stays.
class table {
public:
  table(const json& from, std::string path, std::string& error)
    : from_(from), path_(std::move(path)), error_(error) {}

  void only(std::initializer_list<const char*> keys) {
    for (const auto& item : from_.items()) {
      const std::string& key = item.key();
      if (std::ranges::none_of(keys, [&](const char* k) { return key == k; })) {
        std::string known;
        for (const char* k : keys)
          known += (known.empty() ? "" : ", ") + std::string(k);
        fail(key, "is not known; there are " + known);
      }
    }
  }

  std::string text(const char* key, const char* otherwise) {
    if (!from_.contains(key))
      return otherwise;
    const json& v = from_[key];
    if (!v.is_string() || v.get_ref<const std::string&>().empty()
        || v.get_ref<const std::string&>().size() > 64) {
      fail(key, "must be text of 1 to 64 characters");
      return otherwise;
    }
    return v.get<std::string>();
  }

  /// In [low, high]; without `otherwise` it must be there.
  double number(const char* key, double low, double high,
                std::optional<double> otherwise, bool whole = false) {
    if (!from_.contains(key)) {
      if (!otherwise)
        fail(key, "is missing");
      return otherwise.value_or(low);
    }
    const json& v = from_[key];
    const double x = v.is_number() ? v.get<double>() : low - 1;
    if (!(x >= low && x <= high) || (whole && !v.is_number_integer())) {
      char bounds[96];
      std::snprintf(bounds, sizeof bounds, "must be a %snumber from %g to %g",
                    whole ? "whole " : "", low, high);
      fail(key, bounds);
      return low;
    }
    return x;
  }

  const json* list(const char* key) {
    if (!from_.contains(key))
      return nullptr;
    if (!from_[key].is_array()) {
      fail(key, "must be a list of tables");
      return nullptr;
    }
    return &from_[key];
  }

  void fail(const std::string& key, const std::string& what) {
    if (error_.empty())
      error_ = path_ + (path_.empty() ? "" : ".") + key + " " + what;
  }

private:
  const json& from_;
  std::string path_;
  std::string& error_;
};

core::network_profile
network_of(const json& from, const std::string& path, std::string& error) {
  table t(from, path, error);
  t.only({"name", "latency_us", "gb_per_s"});
  core::network_profile out;
  out.name = t.text("name", "");
  if (out.name.empty())
    t.fail("name", "is missing");
  out.latency =
    core::nanoseconds(1000 * t.number("latency_us", 0, 1e7, std::nullopt));
  out.bytes_per_s =
    std::uint64_t(1e9 * t.number("gb_per_s", 1e-6, 1e5, std::nullopt));
  return out;
}

void add_group(core::view& v, const json& from, const std::string& path,
               std::string& error) {
  table t(from, path, error);
  t.only({"count", "name", "per_host", "kind", "tflops", "memory_gib",
          "threads", "host_threads", "stream_gb_per_s", "networks"});
  const auto count =
    std::size_t(t.number("count", 1, double(view_members_max), 1, true));
  const auto per_host = std::size_t(t.number("per_host", 1, 1024, 1, true));
  const std::string name = t.text("name", "peer");
  core::member m;
  m.id.incarnation = 1;
  m.device.kind = t.text("kind", "cpu");
  if (m.device.kind != "cpu" && m.device.kind != "cuda")
    t.fail("kind", "must be \"cpu\" or \"cuda\"");
  m.device.mflops =
    std::uint64_t(1e6 * t.number("tflops", 1e-6, 1e5, std::nullopt));
  m.device.memory_bytes = std::uint64_t(
    1073741824.0 * t.number("memory_gib", 0.001, 1e5, std::nullopt));
  m.device.threads = std::uint32_t(t.number("threads", 1, 65536, 1, true));
  m.device.host_threads =
    std::uint32_t(t.number("host_threads", 0, 65536, 0, true));
  m.device.stream_mbps =
    std::uint64_t(1000 * t.number("stream_gb_per_s", 0, 1e6, 0));
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

} // namespace

model::result<core::view>
parse_view(std::string_view text, const std::string& source) {
  const auto parsed = model::parse_json_object<json>(text, source);
  if (!parsed)
    return parsed.why();
  const json& all = *parsed;
  core::view v;
  v.number = 1;
  std::string error;
  table top(all, "", error);
  top.only({"members"});
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
