// actors/serving/served_weights.cpp -- fetch, verify, load; unit by unit.
#include "actors/serving/served_weights.hpp"

#include "actors/checkpoint/checkpoint_files.hpp"
#include "runtime/context.hpp"
#include "runtime/core/errc.hpp"
#include "runtime/core/serving/pages.hpp"
#include "runtime/core/view.hpp"
#include "runtime/store/store.hpp"
#include "runtime/work/device_queue.hpp"

#include <algorithm>
#include <utility>

namespace shoal::actors {
namespace {

constexpr std::chrono::seconds weights_again_after{1};

} // namespace

std::string why_not_fetched(std::error_code error) {
  return (refused_by_disk(error) ? "its disk takes no files of the model: "
                                 : "weights cannot be fetched: ")
         + error.message();
}

std::string
load_wait::set(const std::string& peer,
               const std::vector<std::uint32_t>& stages, std::size_t count,
               const std::string& why, core::nanoseconds now) {
  if (why == why_ && (why.empty() || now - told_ < again_after))
    return {};
  why_ = why;
  told_ = now;
  std::string out = peer + (why.empty() ? " goes on loading" : " cannot load")
                    + (stages.size() == 1 ? " stage " : " stages ");
  for (std::size_t i = 0; i < stages.size(); ++i)
    out += (i == 0 ? "" : ", ") + std::to_string(stages[i] + 1);
  return out + " of " + std::to_string(count) + (why.empty() ? "" : ": " + why);
}

bool load_wait::take(const std::string& line) {
  if (line == last_ || lines_ >= lines_max)
    return false;
  last_ = line;
  ++lines_;
  return true;
}

served_weights::served_weights(runtime::context& node, core::job_id job,
                               core::blob_digest manifest,
                               runtime::serve_config config,
                               std::shared_ptr<const model::unit_layout> layout,
                               std::shared_ptr<const file_share> share,
                               weights_owner& owner, poster post)
  : node_(node), job_(job), manifest_(manifest), config_(std::move(config)),
    share_(std::move(share)), owner_(owner),
    post_([post = std::move(post),
           here = std::weak_ptr(alive_)](std::function<void()> run) {
      post([here, run = std::move(run)] {
        if (!here.expired())
          run();
      });
    }),
    layout_(std::move(layout)) {
}

served_weights::~served_weights() {
  wanted_.clear();
  let_go();
}

void served_weights::want(const std::set<model::unit_index>& units) {
  ++turn_;
  wanted_ = units;
  orders_.clear();
  std::erase_if(units_,
                [&](const auto& u) { return !wanted_.contains(u.first); });
  if (wanted_.empty())
    tied_ = std::make_shared<model::weights_by_name>();
  loading_ = false;
  prefetched_.clear();
  let_go();
  load_next();
}

void served_weights::run_later(std::function<void()> run) {
  owner_.run_later(weights_again_after,
                   [here = std::weak_ptr(alive_), run = std::move(run)] {
                     if (!here.expired())
                       run();
                   });
}

void served_weights::make_stage(model::unit_index first, model::unit_index last,
                                stage_made made) {
  orders_.push_back({first, last, std::move(made)});
  make_if_complete();
}

void served_weights::forget_orders() {
  ++turn_;
  orders_.clear();
  loading_ = false;
}

void served_weights::load_next() {
  if (loading_ || !share_->known())
    return;
  std::size_t ahead = 0;
  for (const model::unit_index unit : wanted_) {
    if (units_.contains(unit))
      continue;
    if (!loading_) {
      loading_ = true;
      fetch(unit);
      continue;
    }
    if (++ahead > units_ahead)
      return;
    // Its own fetch() finds the files here, or joins this one. Files that only
    // pass wait for it: they would take the memory that the current unit needs.
    if (prefetched_.insert(unit).second) {
      blob_set set = files_of(unit);
      set.leave_out_passing = true;
      fetch_all(node_, std::move(set), holders_of(unit),
                [](std::error_code) {});
    }
  }
}

blob_set served_weights::files_of(model::unit_index unit) const {
  blob_set set;
  set.parts.push_back(
    {manifest_, tensors_of(*layout_, unit), model::purpose::serving});
  set.memory_will_do = true; // until the unit is loaded
  set.only_passes = [share = share_](const core::blob_digest& file) {
    return share->only_passes(file);
  };
  return set;
}

/// Units are spread over the holders.
std::vector<core::peer_id>
served_weights::holders_of(model::unit_index unit) const {
  std::vector<core::peer_id> out = owner_.members();
  if (!out.empty())
    std::rotate(out.begin(), out.begin() + long(unit % out.size()), out.end());
  return out;
}

void served_weights::fetch(model::unit_index unit) {
  fetch_all(node_, files_of(unit), holders_of(unit),
            [this, unit, turn = turn_, post = post_](std::error_code error) {
              post([this, unit, turn, error] {
                if (turn != turn_)
                  return;
                if (!error) {
                  if (std::exchange(told_wait_, false))
                    owner_.load_waits({});
                  return read(unit);
                }
                if (error == std::errc::bad_message)
                  return owner_.unusable("the model's list of files cannot be "
                                         "read");
                const std::string text =
                  "waits for files of the model that no peer has yet";
                if (error != runtime::errc::not_found) {
                  told_wait_ = true;
                  owner_.load_waits(why_not_fetched(error));
                } else if (text != said_) {
                  owner_.say(said_ = text);
                }
                run_later([this, unit, turn] {
                  if (turn == turn_)
                    fetch(unit);
                });
              });
            });
}

void served_weights::read(model::unit_index unit) {
  struct outcome {
    unit_files files;
    std::vector<std::string> set_aside; ///< of the damaged ones
    std::string wrong;
    std::optional<model::inference_unit> loaded;
  };
  const auto out = std::make_shared<outcome>();
  auto ended = [this, unit, turn = turn_, out] {
    if (turn != turn_)
      return;
    for (const std::string& name : out->set_aside)
      owner_.say(name
                 + " is damaged here: it was set aside, and is fetched from a "
                   "peer that has it");
    if (!out->files.damaged.empty())
      return fetch(unit);
    if (!out->wrong.empty())
      return owner_.unusable(out->wrong);
    units_.emplace(unit, std::move(*out->loaded));
    loading_ = false;
    let_go();
    make_if_complete();
    load_next();
  };
  auto load = [this, unit, out, ended, post = post_, job = job_,
               choice = config_.quantize, layout = layout_, tied = tied_] {
    if (!out->files.damaged.empty() || !out->wrong.empty())
      return ended();
    node_.device().submit(
      [unit, out, choice, layout, tied](kernels::backend& device) {
        auto source = model::safetensors_source::open(out->files.files);
        if (!source) {
          out->wrong = source.message();
          return;
        }
        auto loaded = model::inference_unit::load(layout, unit, *source, choice,
                                                  device, *tied);
        if (loaded)
          out->loaded = *std::move(loaded);
        else
          out->wrong = loaded.message();
      },
      [post, ended] { post(ended); }, {job});
  };
  node_.disk().submit(
    [manifest = manifest_, layout = layout_, unit, out, verified = verified_,
     node = &node_](kernels::backend&) {
      auto files =
        read_unit_files(manifest, *layout, unit, model::purpose::serving,
                        node->blobs(), *verified);
      if (!files) {
        out->wrong = files.message();
        return;
      }
      out->files = std::move(*files);
      // Others are gone: they were kept elsewhere, and had to make room.
      const auto listed = read_manifest(manifest, node->blobs());
      for (const std::string& name : out->files.damaged)
        if (const manifest_file* f = listed ? listed->find(name) : nullptr;
            f == nullptr || node->blobs().set_aside(f->digest))
          out->set_aside.push_back(name);
    },
    [post = post_, load] { post(load); });
}

/// A loaded unit shares the files that were held in memory for it. The store lets go
/// of those that no other unit waits for.
void served_weights::let_go() {
  std::vector<std::string> next;
  for (const model::unit_index u : wanted_)
    if (!units_.contains(u))
      std::ranges::move(tensors_of(*layout_, u), std::back_inserter(next));
  node_.disk().submit(
    [node = &node_, manifest = manifest_,
     next = std::move(next)](kernels::backend&) {
      runtime::store& blobs = node->blobs();
      const auto listed = read_manifest(manifest, blobs);
      if (!listed)
        return;
      const auto waited_for =
        files_with(*listed, next, model::purpose::serving, blobs);
      if (!waited_for)
        return;
      for (const manifest_file& f : listed->files)
        if (std::ranges::find(waited_for->files, f.digest,
                              &manifest_file::digest)
            == waited_for->files.end())
          blobs.let_go(f.digest);
    },
    {});
}

void served_weights::make_if_complete() {
  std::vector<order> ready;
  for (auto at = orders_.begin(); at != orders_.end();) {
    bool all = true;
    for (model::unit_index u = at->first; u < at->last; ++u)
      all = all && units_.contains(u);
    if (!all) {
      ++at;
      continue;
    }
    ready.push_back(std::move(*at));
    at = orders_.erase(at);
  }
  for (order& o : ready) {
    std::vector<model::inference_unit> units;
    for (model::unit_index u = o.first; u < o.last; ++u)
      units.push_back(units_.at(u));
    const auto made = std::make_shared<loaded_stage>();
    // As the passes: the device that is their backend belongs to urgent work.
    node_.device().submit(
      [made, units, pages = core::pages_for(config_.cache_tokens),
       windows = runtime::window_pages_of(config_).pages,
       type = config_.kv](kernels::backend& device) {
        made->stage = std::make_unique<model::inference_stage>(units, device);
        made->cache = std::make_unique<model::paged_cache>(*made->stage, pages,
                                                           type, windows);
      },
      [post = post_, made, then = o.made, turn = turn_, this] {
        post([made, then, turn, this] {
          if (turn == turn_)
            then(made);
        });
      },
      {job_, runtime::urgency::urgent});
  }
}

} // namespace shoal::actors
