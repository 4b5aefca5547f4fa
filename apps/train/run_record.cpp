// apps/train/run_record.cpp -- writes records, and reads them with checks.
#include "apps/train/run_record.hpp"

#include "runtime/core/text/hex.hpp"
#include "runtime/core/text/utf8.hpp"
#include "runtime/files/file_io.hpp"
#include "runtime/files/json.hpp"
#include "runtime/wire/codec.hpp" // name_bytes_max

#include <algorithm>
#include <array>
#include <utility>

namespace shoal::apps {

using json = nlohmann::ordered_json;
using model::failure;

namespace {

constexpr char format_name[] = "shoal-run-1";

/// Whether a value is a text of hexadecimal digits for this number of bytes.
template <std::size_t Bytes>
bool is_hex(const json& value) {
  std::array<std::uint8_t, Bytes> ignored{};
  return value.is_string()
         && core::from_hex(value.get_ref<const std::string&>(), ignored);
}

} // namespace

bool run_record::has(std::string_view job) const {
  return std::ranges::find(jobs, job) != jobs.end();
}

void run_record::add(const std::string& job) {
  if (has(job))
    return;
  jobs.push_back(job);
  if (jobs.size() > record_jobs_max)
    jobs.erase(jobs.begin());
}

std::string to_json(const run_record& record) {
  json all;
  all["format"] = format_name;
  all["jobs"] = record.jobs;
  all["text"] = record.text;
  all["steps_max"] = record.steps_max;
  if (!record.folder.empty())
    all["folder"] = record.folder;
  if (!record.name.empty())
    all["name"] = record.name;
  if (record.open)
    all["open"] = true;
  if (record.attached)
    all["attached"] = true;
  all["run"] = model::parse_json<json>(runtime::to_json(record.run));
  return model::json_text(all) + "\n";
}

model::result<run_record>
parse_record(std::string_view text, std::string_view where) {
  const std::string name(where);
  const auto parsed = model::parse_json_object<json>(text, where);
  if (!parsed)
    return parsed.why();
  const json& all = *parsed;
  auto wrong = [&name](const char* key) {
    return failure{name + ": '" + key + "' is missing or wrong"};
  };
  for (const char* key : {"format", "jobs", "text", "steps_max", "run"})
    if (!all.contains(key))
      return wrong(key);
  if (all["format"] != format_name)
    return failure{name + ": is no record of a run, or of another version"};
  if (!all["jobs"].is_array() || all["jobs"].size() > record_jobs_max)
    return wrong("jobs");
  run_record out;
  for (const json& job : all["jobs"]) {
    if (!is_hex<sizeof(core::job_id)>(job))
      return wrong("jobs");
    out.jobs.push_back(job.get<std::string>());
  }
  if (all["text"] != "" && !is_hex<sizeof(core::blob_digest)>(all["text"]))
    return wrong("text");
  out.text = all["text"].get<std::string>();
  if (!all["run"].is_object())
    return wrong("run");
  auto run = runtime::parse_written_run(model::json_text(all["run"]), where);
  if (!run)
    return run.why();
  out.run = std::move(*run);
  const json& most = all["steps_max"];
  if (!most.is_number_unsigned()
      || !std::in_range<std::int64_t>(most.get<std::uint64_t>())
      || most.get<std::int64_t>() < out.run.steps)
    return wrong("steps_max");
  out.steps_max = most.get<std::int64_t>();
  const json& folder = all.value("folder", json(""));
  if (!folder.is_string()
      || folder.get_ref<const std::string&>().size() > record_folder_bytes_max)
    return wrong("folder");
  out.folder = folder.get<std::string>();
  const json& called = all.value("name", json(""));
  if (!called.is_string()
      || called.get_ref<const std::string&>().size()
           > runtime::codec::name_bytes_max)
    return wrong("name");
  out.name = called.get<std::string>();
  const json& open = all.value("open", json(false));
  if (!open.is_boolean() || (open.get<bool>() && out.jobs.empty()))
    return wrong("open");
  out.open = open.get<bool>();
  const json& attached = all.value("attached", json(false));
  if (!attached.is_boolean())
    return wrong("attached");
  out.attached = attached.get<bool>();
  return out;
}

std::string this_folder() {
  std::error_code error;
  std::string here = std::filesystem::current_path(error).string();
  const bool fits =
    core::is_utf8(here) && here.size() <= record_folder_bytes_max;
  return error || !fits ? std::string() : here;
}

runtime::run_config with_paths_from_here(const run_record& record) {
  runtime::run_config run = record.run;
  if (record.folder.empty() || record.folder == this_folder())
    return run;
  const std::filesystem::path begin = record.folder;
  for (std::string& path : run.data_paths)
    path = (begin / path).string(); // an absolute one stays unchanged
  if (!run.model_path.empty())
    run.model_path = (begin / run.model_path).string();
  return run;
}

failure begin_anew(const std::string& why) {
  return {why
          + ": start a new run in another --out; with model.path = "
            "\"DIR/checkpoint/step-N\" it begins with the weights of a "
            "checkpoint"};
}

failure no_record(const std::filesystem::path& folder) {
  return begin_anew((folder / record_name).string()
                    + ", which names the run, does not exist");
}

model::result<run_record> read_record(const std::filesystem::path& folder) {
  const auto file = folder / record_name;
  const auto text = model::read_file(file, record_bytes_max);
  if (!text)
    return text.why();
  return parse_record(*text, file.string());
}

} // namespace shoal::apps
