// actors/job/job.cpp -- passes messages to job_core and carries out its
// actions.
#include "actors/job/job.hpp"

#include "actors/job/job_actor.hpp"
#include "actors/job/parts/job_past.hpp"
#include "kernels/backend.hpp"
#include "runtime/core/assert.hpp"
#include "runtime/core/planning/plan.hpp"
#include "runtime/jobs/job_log.hpp"
#include "runtime/links/links.hpp"
#include "runtime/observe/timeline.hpp"
#include "runtime/observe/training_operations.hpp"
#include "runtime/store/store.hpp"
#include "runtime/work/device_queue.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace shoal::actors {

using namespace core::job_action;
namespace event = core::job_event;

namespace {

/// Repeats messages that may have been lost.
struct job_tick {};
constexpr std::chrono::milliseconds tick_every{200};

core::job_config core_config(const job_config& c, const job_world& w) {
  core::job_config out;
  out.id = {c.entry.id, c.island};
  out.islands = c.entry.want_islands;
  out.self = c.node->self();
  out.blocks = c.entry.blocks;
  out.microbatches = c.entry.microbatches;
  out.total_steps = std::uint64_t(w.run.steps);
  out.origin_step = c.entry.origin_step;
  out.copies = c.entry.want_copies;
  out.eval_every =
    w.run.validation_enable ? std::uint64_t(w.run.validation_freq) : 0;
  out.checkpoint_every =
    w.run.checkpoint_enable ? std::uint64_t(w.run.checkpoint_interval) : 0;
  out.max_bad_steps = std::uint32_t(w.run.max_bad_steps);
  out.checkpoint_patience = w.run.checkpoint_patience_seconds * 1'000'000'000;
  const job_past past =
    past_of(c.node->log().read_all(c.entry.id), c.island, out.checkpoint_every);
  out.last = past.last;
  out.top = past.top;
  out.evaluated = past.evaluated;
  return out;
}

} // namespace
} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::job_tick)

namespace shoal::actors {

job_actor::job_actor(caf::actor_config& cfg, job_config config, world_ptr world)
  : caf::event_based_actor(cfg), config_(std::move(config)),
    world_(std::move(world)), core_(core_config(config_, *world_)),
    here_(make_context()), text_(here_, *this), evaluation_(*this),
    remarks_(here_), moves_(here_, *this),
    stalls_(here_, node(), remarks_, text_),
    saving_(here_, config_.needed, remarks_, *this),
    rescue_(here_, remarks_, saving_) {
}

job_context job_actor::make_context() {
  job_context out;
  out.entry = config_.entry;
  out.id = id();
  out.self = node().self();
  out.world = world_;
  out.core = &core_;
  out.links = &node().links();
  out.device = &node().device();
  out.reductions = &node().reductions();
  out.disk = &node().disk();
  out.blobs = &node().blobs();
  out.log = &node().log();
  out.trace = &node().trace();
  out.operations = &node().operations(id());
  out.owner = this;
  out.post = post_to(address());
  return out;
}

void job_actor::post_after(std::chrono::nanoseconds wait,
                           std::function<void()> run) {
  delayed_send(this, wait, later{std::move(run)});
}

void job_actor::send_to(const core::peer_id& to, core::job_message message) {
  node().send(to, std::move(message));
}

void job_actor::say(const std::string& line) {
  node().say(line);
}

caf::behavior job_actor::make_behavior() {
  set_down_handler([this](const caf::down_msg& m) {
    actors_.ended(m.source);
    halted_if_still();
  });
  set_exit_handler([this](const caf::exit_msg& m) {
    actors_.dismiss();
    quit(m.reason);
  });
  delayed_send(this, tick_every, job_tick{});
  remarks_.begin_after(core_config(config_, *world_).last.version.step);
  saving_.look();
  if (have_all(node(), job_blobs()))
    feed(event::blobs_held{});
  return {
    [this](const job_view& m) {
      if (!rescue_.begun())
        on_view(m);
    },
    [this](const runtime::leaving_alone& m) { on_leaving_alone(m); },
    [this](const runtime::job_message_in& m) {
      if (rescue_.begun())
        return;
      if (const auto* w = std::get_if<core::shards_written>(m.message.get())) {
        if (w->header.digest == digest())
          actors_.pass(shards_told{m.from, *w});
      } else if (const auto* r =
                   std::get_if<core::stall_report>(m.message.get()))
        stalls_.received(m.from, *r, saving_.looking());
      else if (const auto* r = std::get_if<core::remark>(m.message.get()))
        remarks_.take(*r);
      else
        feed(event::received{m.from, *m.message});
    },
    [this](const runtime::drain_job&) { on_drain(); },
    [this](const runtime::stop_waiting_job&) { feed(event::stop_waiting{}); },
    [this](const runtime::checkpoint_offered& m) { on_offer(m); },
    [this](const step_computed& m) { on_computed(m); },
    [this](const step_reduced& m) { on_reduced(m); },
    [this](const eval_computed& m) { evaluation_.computed(m.step); },
    [this](const eval_summed& m) { evaluation_.summed(m); },
    [this](const checkpoint_written& m) {
      if (m.digest == digest())
        feed(event::checkpointed{m.digest, m.step, m.ok, m.what.manifest,
                                 m.what.bytes, m.why, m.trying, m.at, m.lacks});
      if (m.ok)
        saving_.hold({m.step, m.what.manifest, since_of(m.digest)}, m.lacks);
    },
    [this](const job_tick&) {
      if (over_)
        return;
      delayed_send(this, tick_every, job_tick{});
      if (config_.alive)
        *config_.alive = steady_now();
      text_.tick();
      remarks_.tick();
      feed(event::tick{});
      if (is_to_end())
        cancel_if_at_rest();
      saving_.tick();
      stalls_.tick(saving_.looking());
      report_refusing_disks();
    },
    [](const later& m) { m.run(); },
  };
}

void job_actor::feed(core::job_input input) {
  inputs_.push_back(std::move(input));
  if (feeding_ || saving_.looking())
    return;
  feeding_ = true;
  while (!inputs_.empty()) {
    core::job_input next = std::move(inputs_.front());
    inputs_.pop_front();
    stalls_.record(next);
    const auto actions =
      node().operations(id()).step(core_, next, steady_now());
    trace_phase();
    for (const core::job_output& action : actions)
      std::visit([this](const auto& a) { act(a); }, action);
  }
  feeding_ = false;
  report_holds();
}

void job_actor::trace_phase() {
  const core::job_core::phase now = core_.now_in();
  if (now == traced_)
    return;
  runtime::timeline& trace = node().trace();
  trace.close(config_.entry.id, to_text(traced_));
  trace.open(config_.entry.id, to_text(now),
             {{"step", core_.step_in_progress()}});
  traced_ = now;
}

/// This peer's share of the step is computed, but not yet completely reduced.
void job_actor::trace_reducing(bool now) {
  if (now == reducing_)
    return;
  reducing_ = now;
  if (now)
    node().trace().open(config_.entry.id, "reducing",
                        {{"step", core_.step_in_progress()}});
  else
    node().trace().close(config_.entry.id, "reducing");
}

void job_actor::on_drain() {
  feed(event::drain{});
  cancel_if_at_rest();
}

/// A job that waits has no step to finish: steps after its last checkpoint are
/// lost.
void job_actor::cancel_if_at_rest() {
  using phase = core::job_core::phase;
  const phase at = core_.now_in();
  const bool nowhere = here_.place && here_.place->replicas.empty();
  if (nowhere || core_.awaits_checkpoint()
      || (at == phase::gated && core_.step_in_progress() <= 1))
    node().propose_end(id(), core::job_state::cancelled, remarks_.last_step(),
                       0);
}

/// Where no other peer is needed, the run stops after its step, as in a drain.
/// Else there is no step to finish.
void job_actor::on_leaving_alone(const runtime::leaving_alone& m) {
  using phase = core::job_core::phase;
  if (over_ || core_.held().empty())
    return;
  if (!here_.place
      || core::holdings(*here_.place).participants()
           != std::vector{node().self()})
    return rescue_.begin(m.lease);
  const phase at = core_.now_in();
  if (at != phase::gated && (at != phase::done || !reported_.finished))
    leaving_alone_ = m.lease;
  on_drain();
}

bool job_actor::is_to_end() const {
  const core::job_entry* entry =
    here_.view ? core::find_job(*here_.view, config_.entry.id) : nullptr;
  return entry && core::is_draining(*entry);
}

void job_actor::report_holds() {
  job_holds now{id(), core_.held().size(),
                core_.now_in() == core::job_core::phase::done || over_};
  if (now.units == reported_.units && now.finished == reported_.finished)
    return;
  reported_ = now;
  send(config_.supervisor, now);
}

void job_actor::on_view(const job_view& m) {
  const auto before = std::exchange(here_.view, m.view);
  remarks_.learn_names();
  event::view_changed change{m.view->number, std::nullopt, members()};
  if (m.place)
    change.place = m.place->islands.at(config_.island);
  if (change.place) {
    remarks_.log_view(before.get(), *m.place, *change.place);
    remarks_.say_if_slow(*change.place);
    remarks_.say_if_wider(*change.place);
  }
  change.former = here_.view->lapsed;
  change.calm = here_.place && core::undisturbed(*here_.view, *here_.place);
  if (before && before->shoal != m.view->shoal)
    feed(event::drain{false}); // only that shoal was asked to end the job
  feed(std::move(change));
  if (is_to_end()) {
    remarks_.say_that_it_ends();
    feed(event::drain{});
  }
  if (here_.place)
    stalls_.predict();
}

// Start and end of sub-plans.

void job_actor::act(const halt& a) {
  here_.place = core_.place();
  here_.header = core_.under();
  if (here_.place)
    stalls_.predict();
  halting_ = a.digest;
  actors_.dismiss(); // first: work that waits for the device must not begin
  ++turn_;
  if (digest() != 0) {
    node().links().cancel(digest());
    cancelled_ = digest();
    cancelled_since_ = here_.adopted_since;
  }
  here_.plan = nullptr;
  began_ = 0; // what follows is no part of the step's time
  pace_.restart();
  evaluation_.halt();
  verified_ = std::make_shared<std::set<core::blob_digest>>();
  remarks_.halt();
  saving_.halt();
  computed_.reset();
  reduced_.reset();
  trace_reducing(false);
  halted_if_still();
}

void job_actor::halted_if_still() {
  if (!halting_ || !actors_.gone())
    return;
  // Transfers posted between the halt and the end of the actors.
  if (cancelled_ != 0)
    node().links().cancel(cancelled_);
  if (!lease_.expired())
    return; // its release calls this function again
  // The fence runs after all work that was submitted before.
  here_.fence([this, digest = *halting_] {
    if (halting_ != digest)
      return; // yet another sub-plan, with its own fence
    halting_.reset();
    moves_.halt();
    // Transfers that the queues have started since: units served or saved.
    if (cancelled_ != 0)
      node().links().cancel(cancelled_);
    feed(event::halted{digest, world_->disk_refuses});
  });
}

void job_actor::act(const adopt& a) {
  SHOAL_ASSERT(!actors_.active());
  auto plan = std::make_shared<sub_plan>(a.place);
  plan->id = id();
  plan->digest = a.digest;
  plan->lease = std::shared_ptr<void>(nullptr, [this, weak = address()](void*) {
    if (const auto self = caf::actor_cast<caf::actor>(weak))
      caf::anon_send(self, later{[this] { halted_if_still(); }});
  });
  lease_ = plan->lease;
  here_.plan = plan;
  here_.adopted_since = a.place.since;
  for (std::uint32_t u : a.units)
    if (!world_->units.contains(u))
      world_->units[u] = world_->make_unit(u);
  moves_.adopt();
  actors_.start(this, world_, std::move(plan));
  text_.load();
}

/// The epoch of the sub-plan with that digest: this one or the one before.
core::epoch job_actor::since_of(std::uint64_t plan) const {
  return plan == digest()     ? here_.adopted_since
         : plan == cancelled_ ? cancelled_since_
                              : 0;
}

void job_actor::act(const core::job_action::send& a) {
  node().send(a.to, a.message);
}

// A step.

void job_actor::act(const run_step& a) {
  step_began_ = steady_now();
  began_ = a.step;
  remarks_.wait_over();
  text_.load();
  take_digests(a);
  actors_.begin_step(a.step);
  if (!actors_.reduces()) // if this peer only keeps copies
    on_reduced({a.step, {}, {}});
}

void job_actor::on_computed(const step_computed& m) {
  if (digest() == 0)
    return;
  computed_ = m;
  trace_reducing(!reduced_);
  prepare_if_complete();
}

void job_actor::on_reduced(const step_reduced& m) {
  if (digest() == 0)
    return;
  reduced_ = m;
  if (actors_.stages().empty()) // if this peer only follows
    computed_ = step_computed{m.step, 0, 0};
  prepare_if_complete();
}

/// Prepared when both have come, in either order: the reducer may have the last
/// weight gradient shortly before its stage has ended.
void job_actor::prepare_if_complete() {
  if (!computed_ || !reduced_ || computed_->step != reduced_->step
      || reading_state_ > 0)
    return;
  trace_reducing(false);
  event::prepared vote;
  vote.digest = digest();
  vote.step = reduced_->step;
  vote.units = std::move(reduced_->squares);
  for (const microbatch_loss& l : reduced_->losses) {
    vote.losses.push_back(l.loss);
    vote.samples.push_back(l.sample);
  }
  vote.busy = computed_->busy;
  vote.elapsed = computed_->elapsed;
  vote.writing = saving_.writing();
  vote.unable = world_->disk_refuses;
  vote.digests = digests_;
  if (!actors_.stages().empty())
    node().worked(id(), computed_->busy);
  here_.took.computing = computed_->elapsed;
  here_.took.reducing = std::max<core::nanoseconds>(
    steady_now() - step_began_ - computed_->elapsed, 0);
  computed_.reset();
  reduced_.reset();
  feed(std::move(vote));
}

void job_actor::act(const apply& a) {
  std::vector<std::pair<unit_ptr, buffer>> units; // with gradients that were
                                                  // kept aside
  for (std::uint32_t u : a.units)
    units.emplace_back(world_->units.at(u), moves_.kept_gradients(u, a.step));
  if (!std::isfinite(a.grad_norm)) { // such a step leaves the state unchanged
    here_.compute([](kernels::backend&) {},
                  [this, step = a.step] { feed(event::applied{step}); });
    return;
  }
  here_.compute(
    [units, options = optimizer_of(run(), a.step, a.grad_norm),
     trace = &node().trace(),
     operations = &node().operations(id())](kernels::backend& d) {
      const runtime::timeline_span span(*trace,
                                        runtime::timeline::queue::device,
                                        "optimizer", {{"step", options.step}});
      for (const auto& [unit, gradients] : units) {
        if (gradients)
          d.copy(unit->gradients(), gradients.as<const float>());
        operations->apply(*unit, d, options);
      }
    },
    [this, step = a.step] { feed(event::applied{step}); });
}

void job_actor::act(const step_known& a) {
  if (a.took.whole > 0) // the reporter's value, if we did not run the step
    here_.took = a.took;
  else if (began_ == a.record.version.step && actors_.stages().empty())
    here_.took.whole = pace_.step(steady_now() - step_began_);
  else if (began_ == a.record.version.step)
    here_.took.whole = steady_now() - step_began_;
  else // caught up with: nobody here has measured it
    here_.took = {};
  if (began_ == a.record.version.step)
    began_ = 0;
  measured_ = a.record.version;
  bubble_permille_ = a.bubble_permille;
  remarks_.wait_over();
  remarks_.log_step(a.record, bubble_permille_);
  text_.warm();
}

void job_actor::act(const committed& a) {
  if (!a.publish)
    return;
  core::progress p;
  p.header = a.header;
  p.record = a.record;
  p.lr = runtime::learning_rate(run(), std::int64_t(a.record.version.step));
  p.tokens = world_->tokens_per_step();
  if (a.record.version == measured_) { // else it is told of again
    p.took = here_.took;
    p.bubble_permille = bubble_permille_;
  }
  for (const core::peer_id& peer : members())
    if (peer != node().self())
      node().send(peer, p);
}

// The end of the job.

/// The view gives every peer, and every log, the reason. The line here is for
/// this node's own log, in case there is no quorum for such a view.
void job_actor::fail(const std::string& why) {
  node().say("[job] failed: " + why);
  const std::uint64_t under_way = std::max<std::uint64_t>(
    core_.step_in_progress(), config_.entry.origin_step + 1);
  node().propose_end(id(), core::job_state::failed, under_way - 1,
                     here_.header.since, why);
}

void job_actor::act(const lost_state& a) {
  remarks_.note(
    a.last,
    "state lost: nobody holds unit " + std::to_string(a.unit) + " at step "
      + std::to_string(a.last) + "; resuming at step "
      + std::to_string(a.resume) + ", " + std::to_string(a.last - a.resume)
      + (a.last - a.resume == 1 ? " step is" : " steps are") + " run again");
}

/// Reported only on this node: the others know better what was lost.
void job_actor::act(const went_back& a) {
  const std::string text =
    "the run went back to step " + std::to_string(a.kept)
    + " while this peer had no part in it; what it heard of up to step "
    + std::to_string(a.last) + " is run again";
  remarks_.note_here(a.last, text);
}

void job_actor::act(const waiting& a) {
  remarks_.note_wait(core_.step_in_progress(), "waiting: " + a.why,
                     a.for_data ? config_.entry.data : core::blob_digest{});
}

void job_actor::act(const finished& a) {
  if (leaving_alone_) // once the log is written
    node().disk().submit(
      [lease = std::exchange(leaving_alone_, nullptr)](kernels::backend&) {},
      {});
  if (a.reason == core::stop_reason::diverged) {
    const std::string bad = std::to_string(run().max_bad_steps);
    node().propose_end(
      id(), core::job_state::failed, a.step, a.since,
      "the run has diverged: the loss or the gradient norm of " + bad
        + " steps in a row was not finite (training.max_bad_steps); their "
          "changes were not applied. Try a lower optimizer.lr, or a "
          "training.max_norm; --resume goes on from the last checkpoint, if "
          "there is one");
    return;
  }
  node().propose_end(id(),
                     a.reason == core::stop_reason::completed
                       ? core::job_state::done
                       : core::job_state::cancelled,
                     a.step, a.since);
}

void job_actor::act(const ended&) {
  over_ = true;
  world_->units.clear();
  world_->copies.clear();
  report_holds();
  report_refusing_disks();
  quit();
}

std::optional<caf::actor>
spawn_job(caf::actor_system& system, job_config config, std::string& why) {
  auto run = runtime::parse_written_run(config.entry.run_json, "job");
  if (!run) {
    why = run.message();
    return std::nullopt;
  }
  auto world = std::make_shared<job_world>();
  world->node = config.node;
  world->job = config.entry.id;
  world->island = config.island;
  world->run = *run;
  world->origin = config.entry.origin;
  const auto shared = config.node->links().memory();
  world->buffers = buffer_pool(shared);
  world->state_buffers = buffer_pool(config.node->links().memory_for_copies());
  world->state_memory = std::make_shared<model::recycling_resource>(nullptr);
  world->gradient_memory = std::make_shared<model::recycling_resource>(shared);
  model::model_config config_saved = run->model;
  config_saved.notes.seq_len = std::uint64_t(run->seq_len);
  config_saved.notes.end_of_text =
    run->data_end_of_text && run->data_tokenizer == "model";
  world->layout = std::make_shared<const model::unit_layout>(config_saved);
  if (config.entry.blocks != run->model.num_hidden_layers
      || config.entry.microbatches != run->microbatches_per_step()) {
    why = "the job's entry and its run file disagree";
    return std::nullopt;
  }
  return system.spawn<job_actor>(std::move(config), std::move(world));
}

} // namespace shoal::actors
