// actors/job/job_units.cpp -- a unit's state: fetches, serves, initialises,
// loads.
#include "actors/checkpoint/checkpoint_files.hpp"
#include "actors/job/job_actor.hpp"
#include "actors/training/link_names.hpp"
#include "runtime/core/errc.hpp"
#include "runtime/links/links.hpp"
#include "runtime/observe/timeline.hpp"
#include "runtime/observe/training_operations.hpp"
#include "runtime/store/store.hpp"
#include "runtime/work/device_queue.hpp"

#include <algorithm>

namespace shoal::actors {

using namespace core::job_action;
namespace event = core::job_event;

blob_set job_actor::job_blobs() const {
  blob_set set;
  set.blobs.push_back(config_.entry.data);
  if (config_.entry.origin != core::blob_digest{})
    set.manifests.push_back(config_.entry.origin);
  return set;
}

/// The data source must have them even if its disk refuses: another peer takes
/// its role only when it is gone.
blob_set job_actor::needed_blobs() const {
  blob_set out = job_blobs();
  out.memory_will_do =
    here_.place && here_.place->data_source.peer == here_.self;
  return out;
}

void job_actor::act(const fetch_unit& a) {
  unit_ptr unit = world_->units.at(a.unit);
  buffer into = world_->state_buffers.get(state_bytes(*unit));
  node().trace().open(config_.entry.id, "fetching state", {{"unit", a.unit}});
  auto arrived_here = [this, unit, into, a](std::error_code error) {
    node().trace().close(config_.entry.id, "fetching state");
    if (error || a.digest != digest())
      return; // another sub-plan follows, or has been adopted
    here_.compute(
      [unit, into,
       operations = &node().operations(id())](kernels::backend& device) {
        operations->copy_in(
          *unit, [&] { copy_state_in(device, into.as<const float>(), *unit); });
      },
      [this, a] {
        feed(event::loaded{a.digest, a.unit});
      });
  };
  node().links().expect(
    a.from, make_tag(a.digest, link_kind::state, 0, a.unit, a.step),
    into.shared(), [post = here_.post, arrived_here](std::error_code error) {
      post([arrived_here, error] { arrived_here(error); });
    });
}

void job_actor::act(const serve_unit& a) {
  node().trace().open(config_.entry.id, "sending state", {{"unit", a.unit}});
  auto sent = [trace = &node().trace(), job = config_.entry.id](
                std::error_code) { trace->close(job, "sending state"); };
  if (a.copy) {
    node().links().send(a.to,
                        make_tag(a.digest, link_kind::state, 0, a.unit, a.step),
                        world_->copies.at(*a.copy).at(a.unit).shared(), sent);
    return;
  }
  unit_ptr unit = world_->units.at(a.unit);
  buffer from = world_->state_buffers.get(state_bytes(*unit));
  node().device().submit(
    [unit, from](kernels::backend& device) {
      copy_state_out(device, *unit, from.as<float>());
    },
    [links = &node().links(), a, from, sent] {
      links->send(a.to, make_tag(a.digest, link_kind::state, 0, a.unit, a.step),
                  from.shared(), sent);
    },
    {config_.entry.id});
}

void job_actor::act(const initialise_unit& a) {
  if (config_.entry.origin != core::blob_digest{})
    load_from({config_.entry.origin, members(), a.unit, a.digest, {}});
  else
    initialise(a.unit, a.digest);
}

void job_actor::initialise(model::unit_index unit, std::uint64_t digest) {
  here_.compute(
    [state = world_->units.at(unit), seed = std::uint64_t(run().seed),
     operations = &node().operations(id())](kernels::backend&) {
      operations->initialise(*state, seed);
    },
    [this, unit, digest] {
      feed(event::loaded{digest, unit});
    });
}

void job_actor::act(const restore_unit& a) {
  remarks_.note_once("restoring from the checkpoint of step "
                     + std::to_string(a.checkpoint.step));
  std::vector<core::peer_id> holders = a.holders;
  if (!holders.empty()) // spread units over the holders
    std::rotate(holders.begin(),
                holders.begin() + long(a.unit % holders.size()), holders.end());
  load_from({a.checkpoint.manifest, std::move(holders), a.unit, a.digest,
             a.checkpoint});
}

void job_actor::load_from(loading l) {
  blob_set set;
  set.parts.push_back({l.manifest, tensors_of(*world_->layout, l.unit)});
  lasting_fetch f;
  f.set = std::move(set);
  f.holders = l.holders;
  f.failed = [this, l](std::error_code error) {
    if (error == runtime::errc::not_found || error == runtime::errc::corrupt
        || (l.checkpoint && error == std::errc::bad_message))
      say_missing(l);
    return l.digest != digest();
  };
  f.then = [this, l = std::move(l)] { read_files(l); };
  fetch(std::move(f));
}

/// It was here a moment ago, and now no peer has it completely.
void job_actor::say_missing(const loading& l) {
  if (l.checkpoint && l.digest == digest())
    feed(event::checkpoint_missing{l.digest, *l.checkpoint});
}

void job_actor::read_files(const loading& l) {
  struct outcome {
    unit_files files;
    std::string wrong;
  };
  auto out = std::make_shared<outcome>();
  auto load = [this, l, out] {
    const auto at = world_->units.find(l.unit);
    if (l.digest != digest() || at == world_->units.end())
      return; // requested by an earlier sub-plan: void
    for (const std::string& name : out->files.damaged)
      remarks_.note_once(name
                         + " is damaged here: it was set aside, and is fetched "
                           "from a peer that has it");
    if (!out->files.damaged.empty()) {
      loading again = l;
      again.holders = members();
      return load_from(std::move(again));
    }
    if (!out->wrong.empty())
      return fail(out->wrong);
    if (!out->files.weights && !l.checkpoint && run().data_tokenizer == "bpe")
      return initialise(l.unit, l.digest);
    here_.compute(
      [state = at->second, out,
       operations = &node().operations(id())](kernels::backend&) {
        const auto loaded = operations->load(
          *state, [&] { return load_unit(out->files, *state); });
        if (!loaded)
          out->wrong = loaded.message();
      },
      [this, l, out] {
        if (out->wrong.empty())
          feed(event::loaded{l.digest, l.unit});
        else if (l.digest == digest())
          fail(out->wrong);
      });
  };
  node().disk().submit(
    [world = world_, l, out, verified = verified_](kernels::backend&) {
      auto files = read_unit_files(l.manifest, *world->layout, l.unit,
                                   model::purpose::training,
                                   world->node->blobs(), *verified);
      if (files)
        out->files = std::move(*files);
      else
        out->wrong = files.message();
    },
    [post = here_.post, load] { post(load); });
}

void job_actor::fetch(lasting_fetch f) {
  const auto all = std::make_shared<lasting_fetch>(std::move(f));
  auto ended = [this, all, turn = turn_](std::error_code error) {
    if (over_ || (!all->any_plan && turn != turn_)
        || (all->wanted && !all->wanted()))
      return;
    if (!error) {
      all->then();
      return;
    }
    if (all->failed && all->failed(error))
      return;
    if (error == std::errc::bad_message
        && ++all->unreadable >= unreadable_rounds_max)
      return fail("the model that it was given says nowhere where its weights "
                  "are: submit it again from a whole directory");
    remarks_.note_once("data of the job cannot be fetched on "
                       + remarks_.name_of(here_.self) + ": " + error.message()
                       + "; trying again");
    delayed_send(this, std::chrono::seconds(1), later{[this, all, turn] {
                   if (over_ || (!all->any_plan && turn != turn_))
                     return;
                   all->holders = members();
                   fetch(*all);
                 }});
  };
  fetch_all(node(), all->set, all->holders,
            [post = here_.post, ended](std::error_code error) {
              post([ended, error] { ended(error); });
            });
}

void job_actor::act(const release& a) {
  for (std::uint32_t u : a.units)
    world_->units.erase(u);
}

void job_actor::act(const get_blobs& a) {
  fetch({needed_blobs(), a.holders, false, {}, [this] {
           if (node().blobs().in_memory(config_.entry.data))
             remarks_.note_once("the disk takes nothing: the text is held in "
                                "memory here");
           feed(event::blobs_held{});
           text_.load();
         }});
}

} // namespace shoal::actors
