// actors/gateway/served_model.cpp -- fetches a model's text files and reads them.
#include "actors/gateway/served_model.hpp"

#include "actors/checkpoint/blob_set.hpp"
#include "actors/serving/text_files.hpp"
#include "actors/serving/version_header.hpp"
#include "runtime/context.hpp"
#include "runtime/model/hf/hf_directory.hpp"
#include "runtime/work/device_queue.hpp"

#include <algorithm>
#include <filesystem>

namespace shoal::actors {

namespace fs = std::filesystem;

namespace {

/// Reads the files by the functions for directories, from one that is removed
/// again.
model_text read_text(const core::blob_digest& manifest, runtime::store& from,
                     std::size_t vocab_size, const fs::path& data_dir,
                     const fs::path& folder) {
  model_text out;
  const auto put = put_text_files(manifest, from, data_dir, folder);
  if (!put)
    out.lost = put.message();
  auto loaded = model::tokenizer_for(folder, vocab_size);
  if (loaded)
    out.tokenizer =
      std::make_shared<const model::tokenizer>(*std::move(loaded));
  else
    out.no_text = put ? loaded.message() : put.message();
  if (!out.tokenizer)
    out.no_rules = out.no_text;
  else if (auto bytes = out.tokenizer->token_bytes(); !bytes)
    out.no_rules = bytes.message();
  if (auto said = model::load_generation_config(folder); said)
    out.defaults = *said;
  if (auto chat = model::load_chat_template(folder); !chat)
    out.no_chat = "the model's chat template is broken: " + chat.message();
  else if (*chat)
    out.chat = *std::move(*chat);
  else
    out.no_chat =
      "the model has no chat template: neither tokenizer_config.json nor "
      "chat_template.jinja has one";
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  return out;
}

bool in_contact(const core::island_place& at,
                const std::vector<core::peer_id>& reachable) {
  return !at.replicas.empty()
         && std::ranges::all_of(
           at.replicas.front().stages, [&](const core::stage_place& s) {
             return std::ranges::count(reachable, s.lead().peer) > 0;
           });
}

/// Whether all peers of one of its pipelines are.
bool in_contact(const core::assignment& a,
                const std::vector<core::peer_id>& reachable) {
  return std::ranges::any_of(a.islands, [&](const core::island_place& at) {
    return in_contact(at, reachable);
  });
}

} // namespace

const std::shared_ptr<served_version>& served_model::current() const {
  for (const auto& v : versions_)
    if (v->streams.ready() > 0)
      return v;
  return versions_.front();
}

std::shared_ptr<served_version>
served_model::version_for(const std::optional<openai::event_id>& after) const {
  if (!after)
    return current();
  const auto at = std::ranges::find_if(
    versions_, [&](const auto& v) { return step_of(*v) == after->step; });
  return at == versions_.end() ? nullptr : *at;
}

std::vector<std::shared_ptr<served_version>>
served_model::to_ask(core::nanoseconds now) const {
  const auto& newest = versions_.front();
  if (newest->streams.ready() == 0 && newest->unready_since
      && now - *newest->unready_since >= unready_max)
    return versions_;
  return {newest};
}

std::vector<std::shared_ptr<served_version>>
served_model::set_versions(const core::job_entry& entry,
                           core::nanoseconds now) {
  std::vector<std::shared_ptr<served_version>> old;
  old.swap(versions_);
  for (const core::model_version& is : core::served_versions(entry)) {
    const auto at =
      std::ranges::find_if(old, [&](const auto& v) { return v->is == is; });
    if (at != old.end()) {
      versions_.push_back(std::move(*at));
      old.erase(at);
    } else {
      versions_.push_back(std::make_shared<served_version>());
      versions_.back()->is = is;
      versions_.back()->since = versions_.back()->idle_since = now;
    }
  }
  return old;
}

std::uint64_t served_model::set_place(const core::assignment& a,
                                      const runtime::quorum_changed& quorum) {
  const bool waits = core::waits(a);
  if (!waits && (quorum.why_none.empty() || in_contact(a, quorum.reachable))) {
    unplaced.reset();
    return 0;
  }
  const bool begins = !unplaced;
  if (begins)
    unplaced = {++times_unplaced_, {}, false};
  unplaced->why = waits ? a.islands.front().why_waiting : quorum.why_none;
  return begins ? unplaced->number : 0;
}

std::vector<core::pipeline_place>
served_model::places(const core::assignment& a,
                     const core::model_version& version,
                     const runtime::quorum_changed& quorum) const {
  // Where none is whole, streams wait for peers to come back.
  const bool choose =
    !quorum.why_none.empty() && in_contact(a, quorum.reachable);
  std::vector<core::pipeline_place> out;
  for (std::uint32_t i = 0; i < a.islands.size(); ++i) {
    const core::island_place& at = a.islands[i];
    if (at.replicas.empty())
      continue;
    core::pipeline_place& p = out.emplace_back();
    p.header = version_header(entry_, i, at, version);
    for (const core::stage_place& s : at.replicas.front().stages)
      p.stages.push_back(s.lead().peer);
    p.speaker = p.stages.front();
    p.in_contact = !choose || in_contact(at, quorum.reachable);
  }
  return out;
}

std::size_t served_model::streams() const {
  std::size_t all = 0;
  for (const auto& v : versions_)
    all += v->streams.size();
  return all;
}

std::vector<core::token_id>
served_model::ends_of(const openai::generation_options& asked) const {
  std::vector<core::token_id> out = asked.stop_token_ids;
  if (asked.ignore_eos)
    return out;
  const auto& own = text() && text()->defaults.eos_token_ids
                      ? *text()->defaults.eos_token_ids
                      : config().model.eos_token_ids;
  out.insert(out.end(), own.begin(), own.end());
  out.resize(std::min(out.size(), core::serving::ends_max));
  return out;
}

void served_model::fetch_text(runtime::context& node,
                              std::vector<core::peer_id> holders,
                              const poster& post, std::function<void()> done) {
  blob_set set;
  set.texts.push_back(entry_.origin);
  auto then = [this, node = &node, post,
               done = std::move(done)](std::error_code error) {
    if (error) {
      why_textless(error.message());
      return done();
    }
    const auto out = std::make_shared<model_text>();
    node->disk().submit(
      [out, manifest = entry_.origin, node,
       vocab_size = config().model.vocab_size,
       folder = node->data_dir() / "tmp"
                / ("served-" + core::job_text(entry_.id))](kernels::backend&) {
        *out = read_text(manifest, node->blobs(), vocab_size, node->data_dir(),
                         folder);
      },
      [this, out, post, done] {
        post([this, out, done] {
          // What came may have gone again to make room on the disk.
          if (!out->lost.empty() && ++text_tries_ < text_tries_max) {
            why_textless(out->lost);
            return done();
          }
          textless.reset();
          prompt_ =
            std::make_shared<prompt_model>(prompt_model{name(), config(), out});
          done();
        });
      });
  };
  fetch_all(node, std::move(set), std::move(holders),
            [post, then](std::error_code error) {
              post([then, error] { then(error); });
            });
}

void served_model::why_textless(std::string why) {
  if (!textless)
    textless.emplace();
  textless->why = std::move(why);
}

} // namespace shoal::actors
