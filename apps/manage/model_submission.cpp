// apps/manage/model_submission.cpp -- files and job of a model that is to be served.
#include "apps/manage/model_submission.hpp"

#include "actors/checkpoint/checkpoint_manifest.hpp"
#include "actors/job/job_cleaner.hpp" // results_kept
#include "apps/manage/job_guard.hpp"
#include "apps/manage/passed_upload.hpp"
#include "apps/manage/served_description.hpp"
#include "apps/remote/found_job.hpp"
#include "apps/remote/last_checkpoint.hpp"
#include "apps/remote/remote.hpp"
#include "apps/remote/status_text.hpp"
#include "apps/submit/run_submission.hpp"
#include "apps/terminal/confirm.hpp" // shell_word
#include "apps/transfer/model_upload.hpp"
#include "runtime/core/planning/plan.hpp"
#include "runtime/core/text/hex.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/files/json.hpp"
#include "runtime/model/hf/generation_config.hpp"
#include "runtime/model/hf/hf_directory.hpp"

#include <algorithm>
#include <utility>

namespace shoal::apps {

using model::failure;

namespace {

/// An upload that waits for room says so once after this time. It asks for room each
/// 0.2 s, so it has had some if it has not asked for a second.
constexpr std::chrono::seconds room_said_after{10};
constexpr std::chrono::seconds room_asked_within{1};

} // namespace

model::status model_submission::read_folder() {
  auto folder = model_in(
    o_.model, {true, [this] { return host_.goes_on(); }, host_.watch_work()});
  if (!folder)
    return folder.why();
  auto config = describe_served(o_, *folder);
  if (!config)
    return config.why();
  if (auto whole = check_model(*folder, host_.watch_work()); !whole)
    return whole.why();
  // Else a wrong letter would change how it answers, and where it ends.
  if (auto said = model::load_generation_config(*folder); !said)
    return said.why();
  if (const auto unused = model::unused_tensors(*folder); !unused.empty())
    host_.say(unused);
  if (auto by = model::tokenizer_for(*folder, config->model.vocab_size); !by)
    host_.say("requests must give token ids, not text: " + by.message());
  const auto bytes = weights_bytes(*folder);
  if (!bytes)
    return bytes.why();
  folder_ = *folder;
  config_ = *config;
  bytes_ = *bytes;
  return model::done{};
}

model::status model_submission::send_folder(runtime::client& client) {
  const model::watch told = host_.watch_work();
  std::optional<passed_upload> passed;
  const auto upload = [&](core::job_entry& entry) -> model::status {
    if (passes_) {
      host_.say("the disk of this node has no room for the whole model: its "
                "files go on to the peers that keep them");
      passed.emplace(folder_, client, room_);
    }
    if (!passes_)
      client.expect_uploads(bytes_);
    auto sent =
      passes_
        ? passed->list()
        : upload_weights(
          folder_,
          counted(put_to(client, [this] { return host_.goes_on(); }), told));
    if (!sent)
      return sent.why();
    entry.origin = sent->manifest;
    entry.origin_bytes = sent->bytes;
    if (!passes_)
      return model::done{};
    core::job_entry job = entry;
    job.submitter = node_;
    const std::string why =
      core::cannot_be_kept(view_, job, passed->weight_files(), node_);
    return why.empty() ? model::status(model::done{}) : failure{why};
  };
  if (auto sent =
        submit(client, config_, name_of_files(o_.model), upload, bytes_);
      !sent)
    return sent;
  if (!passes_)
    return model::done{};
  job_guard guard(client, job_);
  auto sent = passed->weights([this] { return waits_for_room(); }, told);
  if (sent) {
    guard.release();
    return sent;
  }
  const std::string runs = guard.stop();
  if (runs.empty())
    return sent;
  host_.say(runs);
  return failure{sent.message() + "; " + runs};
}

/// Tells how far the upload is.
put_pieces
model_submission::counted(put_pieces put, const model::watch& told) const {
  return [this, put = std::move(put), &told, done = std::uint64_t{0}](
           std::span<const model::file_piece> pieces,
           core::blob_digest& digest) mutable -> model::status {
    if (auto ok =
          model::tell(told, "uploading", std::min(done, bytes_), bytes_);
        !ok)
      return ok;
    for (const auto& piece : pieces)
      done += piece.bytes();
    return put(pieces, digest);
  };
}

model::status model_submission::send_followed(runtime::client& client) {
  auto job = find_followed(client);
  if (!job)
    return job.why();
  host_.say("\"" + job->name
            + "\" is a training job: serving its newest checkpoint, of step "
            + std::to_string(job->step) + ", and each newer one");
  const auto give = [&](core::job_entry& entry) -> model::status {
    entry.origin = job->manifest;
    entry.origin_bytes = job->bytes;
    entry.origin_step = job->step;
    if (client.put_blob(job->listing, entry.origin))
      return failure{client.text()};
    return model::done{};
  };
  return submit(client, job->config, job->name + "-served", give);
}

model::result<model_submission::followed>
model_submission::find_followed(runtime::client& client) {
  const std::string wanted = o_.model.string();
  const auto status = status_of(client);
  if (!status)
    return status.why();
  // A model that is served may have its job's name.
  status_json trained = *status;
  std::erase_if(
    trained["jobs"].get_ref<status_json::array_t&>(),
    [](const status_json& j) { return text_of(j, "kind") != "train"; });
  const found_job found = find_job(trained, wanted, which::running_first);
  if (!found.wrong.empty()) {
    const bool served = find_job(*status, wanted, which::running_first).id != 0;
    return failure{"there is no folder " + core::shown(wanted) + " here, and "
                   + (served ? "the job of that name serves a model: only the "
                               "checkpoints of a job that trains can be served"
                             : found.wrong)};
  }
  const auto is_it = [&](const status_json& j) {
    return text_of(j, "id") == found.text;
  };
  const status_json& job = *std::ranges::find_if((*status)["jobs"], is_it);
  followed out;
  out.name = text_of(job, "name");
  out.id = found.id;
  const bool ended = text_of(job, "state") != "running";
  const std::string removed = "removed (peers keep that of the last "
                              + std::to_string(actors::results_kept)
                              + " runs that have ended)";
  const bool known =
    job.contains("checkpoint")
    && core::from_hex(text_of(job["checkpoint"], "digest"), out.manifest);
  if (const auto newer =
        last_elsewhere(*status, found.text, o_.at,
                       [this](const std::string& t) { host_.say(t); })) {
    followed theirs = out;
    theirs.step = newer->step;
    theirs.manifest = newer->digest;
    const auto read = read_checkpoint(client, theirs);
    if (read)
      return theirs;
    host_.say("the checkpoint of step " + std::to_string(newer->step) + ": "
              + read.message());
  }
  if (!known)
    return failure{"job " + out.name
                   + (ended
                        ? " has ended, and no checkpoint of it is known: it "
                          "has ended without one, or that was "
                            + removed
                        : std::string(" has no checkpoint yet (one comes "
                                      "every checkpoint.interval steps)"))};
  out.step = job["checkpoint"]["step"].get<std::uint64_t>();
  if (auto read = read_checkpoint(client, out); !read)
    return failure{"the checkpoint of step " + std::to_string(out.step)
                   + " of job " + out.name + ": " + read.message()
                   + (ended && host_.goes_on()
                        ? ". The job has ended: its checkpoint may have "
                          "been "
                            + removed
                        : "")};
  return out;
}

model::status
model_submission::get(runtime::client& client, const core::blob_digest& digest,
                      std::size_t bytes_max, std::vector<std::byte>& out) {
  const auto error = client.get_blob(
    digest,
    [&](std::span<const std::byte> piece) {
      if (out.size() + piece.size() > bytes_max)
        return std::make_error_code(std::errc::file_too_large);
      out.insert(out.end(), piece.begin(), piece.end());
      return std::error_code();
    },
    [this] { return host_.goes_on(); });
  if (error)
    return failure{client.text()};
  return model::done{};
}

model::status
model_submission::read_checkpoint(runtime::client& client, followed& job) {
  if (auto ok =
        get(client, job.manifest, actors::manifest_bytes_max, job.listing);
      !ok)
    return ok.why();
  const auto text = [](const std::vector<std::byte>& bytes) {
    return std::string_view(reinterpret_cast<const char*>(bytes.data()),
                            bytes.size());
  };
  const auto listed = actors::parse_manifest(text(job.listing));
  if (!listed)
    return listed.why();
  job.bytes = 0;
  for (const actors::manifest_file& f : listed->files)
    if (!actors::of_optimizer(f.name)) // nobody keeps those for it
      job.bytes += f.bytes;
  const actors::manifest_file* file = listed->find("config.json");
  if (file == nullptr)
    return failure{"it has no config.json"};
  std::vector<std::byte> bytes;
  if (auto ok = get(client, file->digest, model::header_bytes_max, bytes); !ok)
    return ok.why();
  const auto config = model::parse_config(text(bytes), "config.json");
  if (!config)
    return config.why();
  // Checkpoints of a run are f32.
  auto described = describe_served(o_, *config, sizeof(float));
  if (!described)
    return described.why();
  job.config = *described;
  job.config.follows = job.id;
  return model::done{};
}

model::status
model_submission::submit(runtime::client& client,
                         const runtime::serve_config& config,
                         const std::string& usual_name,
                         const give_weights& weights, std::uint64_t bytes) {
  std::string text;
  if (client.status(text))
    return failure{client.text()};
  std::set<std::string> running;
  if (const auto status = parse_status(text)) {
    if (const std::string why = no_quorum_text(*status); !why.empty())
      host_.say(why + ". Waiting for a quorum, 30 s at most ("
                + host_.way_to_end() + ")");
    endpoint_ = http_address(*status);
    running = running_jobs(*status);
  }
  name_ = served_name(o_, usual_name);
  if (running.contains(name_))
    return name_is_taken();
  core::job_entry entry = served_entry(o_, config, name_);
  entry.user = user_at_host();
  entry.origin_bytes = bytes;
  if (const auto status = parse_status(text)) {
    view_ = view_of(*status);
    if (const std::string why = core::never_fits(view_, entry); !why.empty())
      return failure{why}; // before a model is uploaded, which may take long
    for (const core::member& m : view_.members)
      if (core::to_hex(m.id.peer) == text_of(*status, "self")) {
        node_ = m.id.peer;
        room_ = m.device.disk_bytes;
        passes_ = room_ > 0 && room_ < bytes + bytes / 16;
      }
  }
  if (auto given = weights(entry); !given)
    return given;
  // Another one may have taken the name while files were uploaded.
  const std::lock_guard turn(submission_turn());
  if (!host_.goes_on())
    return failure{"it was ended before it was submitted"};
  if (!client.status(text))
    if (const auto status = parse_status(text);
        status && running_jobs(*status).contains(name_))
      return name_is_taken();
  if (client.submit(entry, job_, [this] { return host_.goes_on(); }))
    return failure{client.text()};
  return model::done{};
}

failure model_submission::name_is_taken() const {
  return failure{"a job named \"" + name_
                 + "\" is running: choose another name by --as (over HTTP: "
                   "\"as\"), or, to serve it otherwise, end it first by `"
                 + command_line("cancel " + shell_word(name_), o_.at) + "`"};
}

/// Asked several times a second while the node's disk has no room for the next
/// file. @returns whether to go on
bool model_submission::waits_for_room() {
  const auto now = std::chrono::steady_clock::now();
  if (now - asked_for_room_ > room_asked_within) { // it had room until now
    no_room_since_ = now;
    room_said_ = false;
  }
  asked_for_room_ = now;
  if (now - no_room_since_ > room_said_after
      && !std::exchange(room_said_, true))
    host_.say("the disk of this node is full, and files of the model have "
              "not gone on to other peers for "
              + std::to_string(room_said_after.count()) + " s: waiting ("
              + host_.way_to_end() + "). `" + command_line("status", o_.at)
              + "` shows the room of each peer's disk");
  return host_.goes_on();
}

} // namespace shoal::apps
