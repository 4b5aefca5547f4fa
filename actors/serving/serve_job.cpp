// actors/serving/serve_job.cpp -- loads, computes, speaks for a pipeline.
#include "actors/serving/serve_job.hpp"

#include "actors/serving/file_keeper.hpp"
#include "actors/serving/serve_drain.hpp"
#include "actors/serving/serve_stalls.hpp"
#include "actors/serving/stage_runner.hpp"
#include "actors/serving/version_blobs.hpp"
#include "actors/serving/version_header.hpp"
#include "actors/training/training_state.hpp" // steady_now
#include "runtime/core/assignment.hpp"
#include "runtime/core/planning/plan.hpp"
#include "runtime/core/serving/pipeline.hpp"
#include "runtime/core/view.hpp"
#include "runtime/jobs/job_log.hpp"
#include "runtime/links/links.hpp"
#include "runtime/store/store.hpp"
#include "runtime/work/are_you_there.hpp"
#include "runtime/work/device_queue.hpp"
#include "runtime/work/leaving_alone.hpp"

#include <caf/all.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <set>
#include <utility>

namespace shoal::actors {
namespace {

/// Wakes the pipeline while it has work.
struct serve_tick {};
/// Shows the supervisor that the actor runs: it takes one that does not for hung.
struct sign_of_life {};
constexpr std::chrono::seconds sign_every{10};
constexpr std::chrono::seconds tick_every{1};

} // namespace
} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::serve_tick)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::sign_of_life)

namespace shoal::actors {
namespace {

/// Messages that may wait for a newer view.
constexpr std::size_t early_max = 1024;
/// Views for which one is kept: it may be of a version that is gone.
constexpr unsigned early_views_max = 8;
/// Lines to all members under one place.
constexpr std::size_t said_max = 64;

std::string name_in(const core::view* view, const core::peer_id& peer) {
  const core::member* m = view ? core::find_member(*view, peer) : nullptr;
  return m == nullptr || m->name.empty() ? core::short_name(peer) : m->name;
}

class serve_job_actor final : public caf::event_based_actor,
                              private weights_owner {
public:
  serve_job_actor(caf::actor_config& cfg, job_config config,
                  runtime::serve_config serve)
    : caf::event_based_actor(cfg), config_(std::move(config)),
      node_(*config_.node), serve_(std::move(serve)),
      post_(post_to(caf::actor_cast<caf::actor_addr>(this))),
      layout_(std::make_shared<const model::unit_layout>(serve_.model)),
      keeper_(node_, config_.entry.id, layout_, config_.needed,
              config_.island == 0, *this, post_,
              [this] {
                for (const auto& s : served_)
                  s->weights.go_on();
              }),
      buffers_(std::make_shared<buffer_pool>(node_.links().memory())),
      rules_(std::make_shared<rule_book>(
        node_,
        tokens_of({&node_, config_.entry.origin,
                   std::size_t(serve_.model.vocab_size),
                   "tokens-" + core::job_text(config_.entry.id) + "-"
                     + std::to_string(config_.island)},
                  *this, post_),
        post_)) {}

  const char* name() const override { return "serve job"; }

  caf::behavior make_behavior() override {
    set_exit_handler([this](const caf::exit_msg& m) {
      for (const auto& s : served_)
        dismiss(*s);
      quit(m.reason);
    });
    show_life();
    return {
      [this](const job_view& m) { on_view(m); },
      [this](const runtime::serve_message_in& m) {
        lives();
        on_message(m);
      },
      [this](const runtime::drain_job&) { drain(); },
      [](const runtime::leaving_alone&) {},
      [](const runtime::stop_waiting_job&) {},
      [](const runtime::checkpoint_offered&) {},
      [this](const runtime::job_message_in& m) { on_message(m); },
      [this](const serve_tick&) { on_tick(); },
      [this](const sign_of_life&) { show_life(); },
      [this](const later& m) {
        lives();
        if (!over_)
          m.run();
      },
      [this](const runtime::are_you_there&) { lives(); },
    };
  }

private:
  void show_life() {
    lives();
    if (!over_)
      delayed_send(this, sign_every, sign_of_life{});
  }

  void lives() {
    if (config_.alive)
      *config_.alive = steady_now();
  }

  // weights_owner ---------------------------------------------------------------
  void say(const std::string& text) override { note(text); }
  void load_waits(const std::string& why) override {
    if (over_ || mine_.empty())
      return;
    std::vector<std::uint32_t> here;
    for (const auto& [stage, range] : mine_)
      here.push_back(stage);
    const std::string text =
      load_wait_.set(name_in(view_.get(), node_.self()), here, stages_.size(),
                     why, steady_now());
    if (text.empty())
      return;
    if (load_wait_.take(text)) {
      note(text, true);
      node_.say("[serve] " + config_.entry.name + ": " + text);
    }
    tell_others(text, true);
  }
  void unusable(const std::string& why) override {
    node_.propose_end({config_.entry.id, config_.island},
                      core::job_state::failed, 0, 0, why);
  }
  std::vector<core::peer_id> members() const override {
    std::vector<core::peer_id> out;
    if (view_)
      for (const core::member& m : view_->members)
        out.push_back(m.id.peer);
    return out;
  }
  void
  run_later(std::chrono::seconds pause, std::function<void()> run) override {
    delayed_send(this, pause, later{std::move(run)});
  }

  void note(const std::string& text, bool waits = false) {
    runtime::job_event e;
    e.kind = runtime::job_event_kind::notice;
    e.step = ++notes_;
    e.epoch = header_.since;
    e.text = text;
    e.waits = waits;
    e.island = config_.island;
    e.unix_ms = unix_ms();
    node_.log().add(config_.entry.id, e);
  }

  /// The same on all members, once under each place.
  void tell(const std::string& text) {
    if (!first_time(text))
      return;
    note(text);
    tell_others(text, false);
  }

  void tell_others(const std::string& text, bool waits) {
    core::remark r{
      header_, 0, text.substr(0, core::remark_bytes_max), {}, waits};
    r.header.job = config_.entry.id;
    r.header.island = config_.island;
    for (const core::peer_id& peer : members())
      if (peer != node_.self())
        node_.send(peer, core::job_message(r));
  }

  /// Several peers find the same, in other words behind a colon.
  bool first_time(const std::string& text) {
    return said_.size() < said_max
           && said_.insert(text.substr(0, text.find(':'))).second;
  }

  void on_message(const runtime::job_message_in& m) {
    lives();
    if (over_)
      return;
    if (const auto* r = std::get_if<core::remark>(m.message.get())) {
      if (r->waits ? load_wait_.take(r->text) : first_time(r->text))
        note(r->text, r->waits);
    } else if (const auto* r =
                 std::get_if<core::stall_report>(m.message.get())) {
      const auto at = std::ranges::find_if(
        served_, [&](const auto& s) { return s->header == r->header; });
      if (at != served_.end())
        (*at)->stalls.received(m.from, *r, sight(**at), steady_now());
      else if (!served_.empty()) // of another place: that is an answer, too
        served_.front()->stalls.received(m.from, *r, sight(*served_.front()),
                                         steady_now());
    }
  }

  /// What one version of the model has here. Most models have only one.
  struct served {
    served(const core::model_version& v, serve_job_actor& owner)
      : is(v),
        weights(owner.node_, owner.config_.entry.id, v.manifest, owner.serve_,
                owner.layout_, owner.keeper_.share(), owner, owner.post_),
        stalls(owner.node_, {owner.config_.entry.id, owner.config_.island},
               [&owner](const std::string& text) { owner.tell(text); }) {}
    core::model_version is;
    core::job_header header;
    served_weights weights;
    std::map<std::uint32_t, std::shared_ptr<stage_runner>> runners;
    std::unique_ptr<core::serving_pipeline>
      pipeline;         ///< where the first stage is here
    bool begun = false; ///< loads, or has loaded
    serve_stalls stalls;
    std::shared_ptr<std::atomic<std::uint64_t>> moved =
      std::make_shared<std::atomic<std::uint64_t>>(0);
  };

  bool loads(const served& s) const {
    return s.begun && s.runners.size() < mine_.size();
  }

  /// What moves of a version here, for its watch of stalls.
  pipeline_sight sight(const served& s) {
    std::erase_if(ending_, [](const auto& r) { return !r->on_device(); });
    pipeline_sight out;
    out.header = s.header;
    out.stages = stages_;
    out.loads =
      std::ranges::any_of(served_, [&](const auto& v) { return loads(*v); });
    out.ends = !ending_.empty();
    out.moved = *s.moved + s.runners.size() + s.weights.here();
    for (const auto& [stage, runner] : s.runners) {
      out.works = out.works || runner->works();
      if (!out.waits_for)
        out.waits_for = runner->waits_for();
      if (out.where.empty())
        out.where = runner->where();
    }
    if (s.pipeline) {
      out.moved += s.pipeline->passes_done();
      const std::uint64_t pass = s.pipeline->waits_for_pass();
      if (pass != 0 && !out.works) {
        out.waits_for = stages_.back();
        out.where = "pass " + std::to_string(pass);
      }
      out.works = out.works || pass != 0;
    }
    if (out.loads)
      out.where = "loading";
    return out;
  }

  void drain() {
    drain_.begin(steady_now(), view_ ? view_->number : 0);
    end_if_drained();
  }

  void end_if_drained() {
    if (over_)
      return;
    serve_drain::sight is{.placed = !stages_.empty(), .since = header_.since};
    is.alone = view_ && view_->members.size() == 1;
    for (const auto& s : served_)
      if (s->pipeline) {
        is.first_here = true;
        is.ready = is.ready || s->pipeline->ready();
        is.streams = is.streams || s->pipeline->streams() > 0;
      }
    const serve_drain::end due = drain_.look(is, steady_now());
    if (due != serve_drain::end::none)
      node_.propose_end({config_.entry.id, config_.island},
                        core::job_state::cancelled, 0,
                        due == serve_drain::end::job ? 0 : header_.since);
  }

  void on_view(const job_view& m) {
    lives();
    if (over_)
      return;
    if (!m.place) {
      over_ = true;
      for (const auto& s : served_)
        dismiss(*s);
      quit();
      return;
    }
    drain_.serve_in(m.view->shoal);
    view_ = m.view;
    const core::island_place& place = m.place->islands.at(config_.island);
    const core::island_id id{config_.entry.id, config_.island};
    const core::job_header header{config_.entry.id, core::digest(id, place),
                                  place.since, config_.island};
    if (header != header_) {
      for (const auto& s : served_)
        dismiss(*s);
      header_ = header;
      said_.clear();
      load_wait_ = {};
      set_stages(place);
    }
    if (const core::job_entry* entry = core::find_job(*m.view, id.job))
      set_versions(*entry, place);
    const core::job_entry* entry = core::find_job(*m.view, id.job);
    if (entry != nullptr && core::is_draining(*entry))
      drain();
    for (const auto& s : served_)
      s->stalls.predict(view_, place, serve_);
    tick_soon();
    for (const auto& s : served_)
      if (s->pipeline)
        send_all(s->pipeline->set_members(member_set(), steady_now()));
    keeper_.set(m.view, *m.place);
    std::deque<early_message> early;
    early.swap(early_);
    for (early_message& e : early)
      on_message(e.what, e.views + 1);
  }

  std::set<core::peer_id> member_set() const {
    const auto all = members();
    return {all.begin(), all.end()};
  }

  void dismiss(served& s) {
    if (s.header.digest != 0)
      node_.links().cancel(s.header.digest);
    for (auto& [stage, runner] : s.runners) {
      runner->end();
      if (runner->on_device())
        ending_.push_back(runner);
    }
    s.runners.clear();
    s.pipeline.reset();
    s.weights.forget_orders(); // they are of this place's layers
    s.begun = false;
  }

  void set_stages(const core::island_place& place) {
    stages_.clear();
    mine_.clear();
    if (!place.why_waiting.empty())
      note("waiting: " + place.why_waiting);
    if (place.replicas.empty())
      return;
    const auto& all = place.replicas.front().stages;
    for (std::uint32_t s = 0; s < all.size(); ++s) {
      stages_.push_back(all[s].lead().peer);
      if (stages_.back() != node_.self())
        continue;
      const model::unit_index head =
        model::unit_index(config_.entry.blocks) + 1;
      mine_[s] = {s == 0 ? 0 : model::unit_index(all[s].first_block) + 1,
                  s + 1 == all.size()
                    ? head + 1
                    : model::unit_index(all[s].last_block) + 1};
    }
  }

  /// The versions of the newest view: the newest one begins at once, another one
  /// if it had begun in another place, or is asked for.
  void
  set_versions(const core::job_entry& entry, const core::island_place& place) {
    const auto all = core::served_versions(entry);
    std::vector<std::shared_ptr<served>> next;
    for (const core::model_version& v : all) {
      const auto old = std::ranges::find_if(
        served_, [&](const auto& s) { return s->is == v; });
      if (old != served_.end()) {
        next.push_back(std::move(*old));
        served_.erase(old);
      } else {
        next.push_back(std::make_shared<served>(v, *this));
      }
      next.back()->header = version_header(entry, config_.island, place, v);
    }
    for (const auto& gone : served_) {
      dismiss(*gone);
      drop_version(node_, config_, view_, gone->is.manifest);
    }
    served_ = std::move(next);
    if (!served_.front()->begun)
      begin(*served_.front());
    for (const auto& s : served_)
      if (mine_.empty() && !s->begun)
        s->weights.want({});
  }

  void begin(served& s) {
    s.begun = true;
    std::set<model::unit_index> units;
    for (const auto& [stage, range] : mine_)
      for (model::unit_index u = range.first; u < range.second; ++u)
        units.insert(u);
    s.weights.want(units);
    if (!stages_.empty() && stages_.front() == node_.self()) {
      core::batcher_limits limits;
      limits.pages = std::uint32_t(core::pages_for(serve_.cache_tokens));
      limits.windows = runtime::window_pages_of(serve_);
      limits.pass_tokens = std::uint32_t(serve_.pass_tokens);
      limits.passes_max = std::uint32_t(stages_.size());
      limits.guesses_max = std::uint32_t(serve_.speculate);
      limits.pooled_rows = std::uint32_t(runtime::pooled_rows_of(serve_));
      limits.running_max = std::uint32_t(serve_.streams_max);
      limits.waiting_max = std::uint32_t(serve_.queue_max);
      s.pipeline = std::make_unique<core::serving_pipeline>(
        core::pipeline_config{s.header, stages_, limits});
      send_all(s.pipeline->set_members(member_set(), steady_now()));
    }
    for (const auto& [stage, range] : mine_)
      s.weights.make_stage(
        range.first, range.second,
        [this, stage = stage, &s = s](std::shared_ptr<loaded_stage> made) {
          loaded(s, stage, std::move(made));
        });
  }

  void
  loaded(served& s, std::uint32_t stage, std::shared_ptr<loaded_stage> made) {
    runner_config c;
    c.node = &node_;
    c.header = s.header;
    c.stage = stage;
    c.stages = stages_;
    c.model = std::move(made);
    c.buffers = buffers_;
    c.rules = rules_;
    c.moved = s.moved;
    c.post = post_;
    c.damaged = [&s](const core::peer_id& by, std::uint64_t pass) {
      s.stalls.damaged(by, pass, s.header.since);
    };
    c.broken = [this](const std::string& why) {
      note(why + ": the pipeline begins anew");
      node_.propose_retry({config_.entry.id, config_.island}, header_.since);
    };
    s.runners[stage] = std::make_shared<stage_runner>(std::move(c));
    node_.send(stages_.front(),
               core::serve_message(core::serve_ready{s.header, stage}));
    note("stage " + std::to_string(stage + 1) + " of "
         + std::to_string(stages_.size()) + " is loaded"
         + (serve_.follows == 0 ? ""
                                : ", with step " + std::to_string(s.is.step)));
  }

  /// Messages of a newer place, or of a version that the newest view does not
  /// have yet.
  struct early_message {
    runtime::serve_message_in what;
    unsigned views = 0; ///< that have come since
  };
  void keep_for_later(const runtime::serve_message_in& m, unsigned views) {
    if (views < early_views_max)
      early_.push_back({m, views});
    if (early_.size() > early_max)
      early_.pop_front();
  }

  /// @param views that have come since the message did
  void on_message(const runtime::serve_message_in& m, unsigned views = 0) {
    const core::job_header& h = core::header(*m.message);
    const auto at = std::ranges::find_if(
      served_, [&](const auto& s) { return s->header == h; });
    if (at == served_.end()) {
      if (h.since > header_.since
          || (h.since == header_.since && serve_.follows != 0))
        keep_for_later(m, views);
      return;
    }
    served& s = **at;
    if (!s.begun)
      begin(s); // an older version still has requests
    if (std::holds_alternative<core::serve_ask>(*m.message)) {
      for (const auto& [stage, runner] : s.runners)
        node_.send(m.from,
                   core::serve_message(core::serve_ready{s.header, stage}));
    } else if (const auto* p = std::get_if<core::serve_pass>(m.message.get())) {
      if (!stages_.empty() && m.from == stages_.front())
        for (const auto& [stage, runner] : s.runners)
          runner->take(m.from, *p);
    } else if (const auto* r = std::get_if<core::serve_rule>(m.message.get())) {
      if (!stages_.empty() && m.from == stages_.front())
        for (const auto& [stage, runner] : s.runners)
          runner->take(*r);
    } else if (s.pipeline) {
      send_all(s.pipeline->take(m.from, *m.message, steady_now()));
    }
  }

  void on_tick() {
    ticking_ = false;
    lives();
    for (const auto& s : served_)
      if (s->pipeline)
        send_all(s->pipeline->tick(steady_now()));
    const auto all = served_;
    for (const auto& s : all)
      s->stalls.tick(sight(*s), steady_now());
    end_if_drained();
    tick_soon();
  }

  /// While there is a place: what does not move must be found out by a clock.
  void tick_soon() {
    if (over_ || ticking_
        || (stages_.empty() && ending_.empty() && !drain_.begun()))
      return;
    ticking_ = true;
    delayed_send(this, tick_every, serve_tick{});
  }

  void send_all(core::serve_sends sends) {
    for (core::serve_send& s : sends)
      node_.send(s.to, std::move(s.what));
  }

  job_config config_;
  runtime::context& node_;
  const runtime::serve_config serve_;
  poster post_;
  std::shared_ptr<const model::unit_layout> layout_;
  file_keeper keeper_;
  std::shared_ptr<buffer_pool> buffers_;
  std::shared_ptr<rule_book> rules_;
  std::shared_ptr<const core::view> view_;
  core::job_header header_; ///< of the newest place
  std::vector<core::peer_id> stages_;
  /// Units [first, second) of the stages here.
  std::map<std::uint32_t, std::pair<model::unit_index, model::unit_index>>
    mine_;
  std::vector<std::shared_ptr<served>> served_; ///< newest first
  /// Of former places, with work that the device has not ended.
  std::vector<std::shared_ptr<stage_runner>> ending_;
  std::deque<early_message> early_;
  std::set<std::string> said_; ///< beginnings of lines, under this place
  load_wait load_wait_;        ///< under this place
  std::uint64_t notes_ = 0;
  serve_drain drain_;
  bool ticking_ = false;
  bool over_ = false;
};

} // namespace

std::optional<caf::actor> spawn_serve_job(caf::actor_system& system,
                                          job_config config, std::string& why) {
  auto serve = runtime::parse_serve(config.entry.run_json);
  if (!serve) {
    why = serve.message();
    return std::nullopt;
  }
  if (config.entry.blocks != serve->model.num_hidden_layers) {
    why = "the job's entry and its model disagree";
    return std::nullopt;
  }
  return system.spawn<serve_job_actor>(std::move(config), *std::move(serve));
}

} // namespace shoal::actors
