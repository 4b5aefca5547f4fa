// apps/submit/run_submission.cpp -- text and weights first, then the job.
#include "apps/submit/run_submission.hpp"

#include "apps/remote/remote.hpp"
#include "apps/submit/job_name.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/wire/codec.hpp" // name_bytes_max

namespace shoal::apps {

using model::failure;

model::result<model::corpus>
read_new_text(runtime::run_config& run, std::optional<tokenizer_files>& trained,
              model::corpus_report& report, const model::watch& told) {
  if (run.data_tokenizer != "bpe")
    return read_text(run, {}, &report, told);
  return read_text_for_tokenizer(run, trained.emplace(), report, told);
}

model::status
check_text(const runtime::run_config& run, const model::corpus& text,
           const model::corpus_report& report) {
  if (auto enough = enough_text(run, text); !enough) {
    std::string why = "data: " + enough.message();
    for (const std::string& notice : report.notices)
      why += "; " + notice;
    return failure{why};
  }
  return model::done{};
}

put_pieces
put_to(runtime::client& client, const std::function<bool()>& goes_on) {
  return [&client, goes_on](std::span<const model::file_piece> pieces,
                            core::blob_digest& digest) -> model::status {
    if (goes_on && !goes_on())
      return failure{"the upload was ended"};
    if (client.put_pieces(pieces, digest))
      return failure{client.text()};
    return model::done{};
  };
}

model::status
put_origin(core::job_entry& entry, const std::filesystem::path& from,
           std::uint64_t step, const tokenizer_files* trained,
           const put_pieces& put) {
  if (from.empty() && !trained)
    return model::done{};
  // A new run begins with the weights of a checkpoint alone: moments of AdamW
  // belong to the step at which they were made.
  auto sent = trained    ? upload_tokenizer(*trained, put)
              : step > 0 ? upload_model(from, step, put)
                         : upload_weights(from, put);
  if (!sent)
    return sent.why();
  entry.origin = sent->manifest;
  entry.origin_bytes = sent->bytes;
  entry.origin_step = step;
  return model::done{};
}

std::set<std::string> running_jobs(const status_json& status) {
  std::set<std::string> out;
  for (const status_json& job : status["jobs"])
    if (text_of(job, "state") == "running")
      out.insert(text_of(job, "name"));
  return out;
}

std::mutex& submission_turn() {
  static std::mutex turn;
  return turn;
}

model::result<submitted_job>
submit_new_run(runtime::client& client, runtime::run_config run,
               const std::string& name, const model::watch& told) {
  if (!run.model_path.empty())
    if (auto whole = check_model(run.model_path, told); !whole)
      return failure{"model.path: " + whole.message()};
  model::corpus_report report;
  std::optional<tokenizer_files> trained;
  std::vector<std::byte> bytes;
  {
    auto text = read_new_text(run, trained, report, told);
    if (!text)
      return failure{"data: " + text.message()};
    if (auto enough = check_text(run, *text, report); !enough)
      return enough.why();
    bytes = model::serialise(*text);
  }
  submitted_job job;
  core::job_entry entry = make_entry(run, name);
  if (client.put_blob(bytes, entry.data))
    return failure{client.text()};
  entry.data_bytes = bytes.size();
  if (auto put = put_origin(entry, run.model_path, 0,
                            trained ? &*trained : nullptr, put_to(client));
      !put)
    return put.why();
  const std::lock_guard turn(submission_turn());
  const auto status = status_of(client);
  if (!status)
    return status.why();
  job.name = unique_job_name(entry.name, running_jobs(*status));
  entry.name = core::shown(job.name, runtime::codec::name_bytes_max);
  if (client.submit(entry, job.id, [&told] {
        return bool(
          model::tell(told, "waiting for the shoal's agreement", 0, 0));
      }))
    return failure{client.text()};
  return job;
}

} // namespace shoal::apps
