// apps/remote/found_job.cpp -- by id, by its beginning, or by name.
#include "apps/remote/found_job.hpp"

#include "apps/common/report.hpp"
#include "apps/remote/status_text.hpp" // serves
#include "runtime/core/text/amounts.hpp"
#include "runtime/core/text/hex.hpp"
#include "runtime/core/view.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace shoal::apps {

std::string job_line(const status_json& job) {
  const auto since = job["submitted_unix_ms"].get<std::uint64_t>();
  const std::string age =
    since == 0
      ? ""
      : ", " + core::age_text(unix_ms() - std::int64_t(since)) + " old";
  return text_of(job, "id") + "  " + text_of(job, "name") + "  "
         + text_of(job, "state")
         + (serves(job)
              ? ", served a model"
              : " at step " + std::to_string(job["step"].get<std::uint64_t>()))
         + age;
}

/// Fewer digits would be a slip that ends somebody's job.
constexpr std::size_t id_digits_min = 4;

/// Those that fit best: a whole id, else a name, which may look like the beginning of
/// an id, else beginnings of ids.
static std::vector<const status_json*>
fitting(const status_json& status, const std::string& wanted) {
  std::vector<const status_json*> named, begun;
  for (const status_json& j : status["jobs"]) {
    const std::string id = text_of(j, "id");
    if (id == wanted)
      return {&j};
    if (text_of(j, "name") == wanted)
      named.push_back(&j);
    else if (wanted.size() >= id_digits_min && id.starts_with(wanted))
      begun.push_back(&j);
  }
  if (wanted.empty())
    return {};
  return named.empty() ? begun : named;
}

found_job
find_job(const status_json& status, const std::string& wanted, which among) {
  std::vector<const status_json*> fit = fitting(status, wanted);
  const auto ended = [](const status_json* j) {
    return text_of(*j, "state") != "running";
  };
  const bool alike = std::ranges::all_of(fit, [&](const status_json* j) {
    return text_of(*j, "name") == text_of(*fit.front(), "name");
  });
  if ((among == which::running || (among == which::running_first && alike))
      && !std::ranges::all_of(fit, ended))
    std::erase_if(fit, ended);
  if (fit.empty())
    return {0,
            {},
            "no job '" + wanted + "'; see `shoal jobs`"
              + (wanted.size() < id_digits_min
                   ? " (of an id, at least " + std::to_string(id_digits_min)
                       + " digits are needed)"
                   : "")};
  if (fit.size() > 1) {
    std::string list;
    for (const status_json* j : fit)
      list += "\n  " + job_line(*j);
    return {
      0, {}, "'" + wanted + "' fits several jobs; give more of the id:" + list};
  }
  const std::string id = text_of(*fit.front(), "id");
  std::array<std::uint8_t, sizeof(core::job_id)> bytes{};
  if (!core::from_hex(id, bytes))
    return {0, {}, "the node calls the job '" + id + "', which is no id"};
  return {std::stoull(id, nullptr, 16), id, {}};
}

} // namespace shoal::apps
