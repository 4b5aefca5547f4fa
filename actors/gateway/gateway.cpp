// actors/gateway/gateway.cpp -- requests to streams, tokens to answers.
#include "actors/gateway/gateway.hpp"

#include "actors/gateway/gateway_answers.hpp"
#include "actors/gateway/gateway_metrics.hpp"
#include "actors/gateway/next_version.hpp"
#include "actors/gateway/open_requests.hpp"
#include "actors/gateway/prompts/prompt_queue.hpp"
#include "actors/training/training_state.hpp" // steady_now
#include "runtime/core/serving/version_turn.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/core/view.hpp"
#include "runtime/jobs/job_log.hpp"
#include "runtime/work/are_you_there.hpp"
#include "runtime/work/device_queue.hpp"

#include <caf/all.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

namespace shoal::actors {
namespace {

struct gateway_tick {};
constexpr std::chrono::seconds gateway_tick_every{1};
/// Requests that wait for a model's files.
constexpr std::size_t waiting_requests_max = 256;
constexpr std::chrono::seconds files_again_after{1};
/// A stream of events is kept alive by them. Longer than a model may be without peers
/// (served_model::lasts_after): that is told by the answer's status.
constexpr core::nanoseconds news_every = 15'000'000'000;

} // namespace
} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::gateway_tick)

namespace shoal::actors {
namespace {

class gateway_actor final : public caf::event_based_actor {
public:
  gateway_actor(caf::actor_config& cfg, runtime::context& node)
    : caf::event_based_actor(cfg), node_(node),
      post_(post_to(caf::actor_cast<caf::actor_addr>(this))) {}

  const char* name() const override { return "gateway"; }

  caf::behavior make_behavior() override {
    return {
      [this](const runtime::view_changed& m) { on_view(m); },
      [this](const runtime::quorum_changed& m) {
        quorum_ = m;
        if (view_) // pipelines are where they were, perhaps out of reach
          on_view({view_, plan_});
      },
      [this](const runtime::serve_message_in& m) { on_message(m); },
      [this](const http_ask& m) { on_ask(m); },
      [this](const client_left& m) { on_left(m.request); },
      [this](const client_ready& m) { requests_.hold(m.request, false); },
      [this](const gateway_tick&) { on_tick(); },
      [](const runtime::node_stopping&) {},
      [](const later& m) { m.run(); },
      [](const runtime::are_you_there&) {},
    };
  }

private:
  // Models. ---------------------------------------------------------------------

  void on_view(const runtime::view_changed& m) {
    view_ = m.view;
    plan_ = m.plan;
    std::set<core::job_id> serving;
    for (const core::job_entry& e : m.view->jobs)
      if (e.kind == core::job_kind::serve && e.state == core::job_state::running
          && add(e))
        serving.insert(e.id);
    for (auto at = models_.begin(); at != models_.end();) {
      if (serving.contains(at->first)) {
        ++at;
        continue;
      }
      const auto model = at->second;
      at = models_.erase(at);
      for (const std::uint64_t id : requests_.ids_of(
             [&](const open_request& r) { return r.model == model; }))
        fail(id, openai::unavailable("the model \"" + model->name()
                                       + "\" is not served any more",
                                     0));
      answer_waiting(*model); // they find no such model
    }
    for (const auto& [id, model] : std::map(models_))
      place(model, m);
    node_.serves(counted_.loads(models_));
    tick_if_needed();
  }

  void place(const std::shared_ptr<served_model>& model,
             const runtime::view_changed& m) {
    const core::job_id id = model->entry().id;
    for (const auto& gone :
         model->set_versions(*core::find_job(*m.view, id), steady_now()))
      leave(*gone, false,
            "the version of \"" + model->name()
              + "\" with which this request began is not served any more");
    const auto place =
      std::ranges::find(m.plan->jobs, id, &core::assignment::job);
    if (place == m.plan->jobs.end())
      return;
    if (const std::uint64_t time = model->set_place(*place, quorum_))
      delayed_send(this, served_model::lasts_after,
                   later{[this, model, time] { on_unplaced(*model, time); }});
    for (const auto& v : model->versions())
      apply(*v, v->streams.place(model->places(*place, v->is, quorum_),
                                 members(), steady_now()));
  }

  /// Nothing has been able to run the model for a while: requests without a token
  /// so far do not wait for that.
  void on_unplaced(served_model& model, std::uint64_t time) {
    if (!model.unplaced || model.unplaced->number != time)
      return;
    model.unplaced->lasts = true;
    for (const std::uint64_t id : requests_.ids_of([&](const open_request& r) {
           return r.model.get() == &model && r.first_token_after == 0;
         }))
      fail(id, unplaced_error(model));
    answer_waiting(model);
  }

  void scale(served_model& model) {
    const core::job_entry* job = core::find_job(*view_, model.entry().id);
    if (!job || !model.scaler.active())
      return;
    const std::string line = model.scaler.look(
      node_, *view_, *plan_, *job, model.current()->streams, steady_now());
    if (!line.empty())
      note(model, line);
  }

  bool add(const core::job_entry& e) {
    if (models_.contains(e.id))
      return true;
    auto config = runtime::parse_serve(e.run_json);
    if (!config)
      return false; // its islands end it
    const auto model = std::make_shared<served_model>(e, *std::move(config));
    models_.emplace(e.id, model);
    fetch_text(model);
    return true;
  }

  void fetch_text(const std::shared_ptr<served_model>& model) {
    const auto all = members();
    const bool first = !model->textless;
    const bool refused = !first && model->textless->lasts;
    auto then = [this, model, first, refused] {
      if (!models_.contains(model->entry().id))
        return;
      if (!model->text())
        return on_textless(model, first);
      if (refused && model->text()->tokenizer)
        note(*model,
             "requests to this node are answered: its tokenizer is here");
      answer_waiting(*model);
    };
    model->fetch_text(node_, {all.begin(), all.end()}, post_, then);
  }

  /// @param first it is the first time that the files of its text did not come
  void on_textless(const std::shared_ptr<served_model>& model, bool first) {
    auto& none = *model->textless;
    if (first)
      delayed_send(this, served_model::lasts_after, later{[model] {
                     if (model->textless)
                       model->textless->late = true;
                   }});
    delayed_send(this, files_again_after,
                 later{[this, model] { fetch_text(model); }});
    if (!none.late || std::exchange(none.lasts, true))
      return;
    note(*model, "requests to this node are refused: " + textless_text(*model));
    answer_waiting(*model);
  }

  /// Requests for a model that have waited for its text: with it, or with why not.
  static void answer_waiting(served_model& model) {
    for (const auto& go_on : std::exchange(model.waiting, {}))
      go_on();
  }

  std::set<core::peer_id> members() const { return members_of(*view_); }

  /// Requests of the version go on with the present one, from the start, if their
  /// clients have got nothing; else they end.
  void
  leave(const served_version& version, bool only_slow, const std::string& why) {
    leave_those(
      [&](const open_request& r) {
        return r.version.get() == &version && (r.slow || !only_slow);
      },
      why);
  }

  template <class Which>
  void leave_those(Which which, const std::string& why) {
    for (const std::uint64_t id : requests_.ids_of(which))
      if (open_request* const r = requests_.find(id))
        leave_version(id, *r, why);
  }

  void
  leave_version(std::uint64_t id, open_request& r, const std::string& why) {
    const auto to = r.model->current();
    if (to == r.version || !r.answer->begin_again(head_of(*r.model, *to, id)))
      return fail(id, openai::unavailable(
                        why
                          + ": send it again, with its Idempotency-Key and "
                            "without Last-Event-ID",
                        0));
    requests_.begin_again(r, to);
    ask_streams(id);
  }

  /// What waits for a version that does not answer goes on with one that does.
  void leave_unready(const served_model& model) {
    if (model.current()->streams.ready() > 0)
      leave_those(
        [&](const open_request& r) {
          return r.model.get() == &model && r.answer->can_begin_again()
                 && r.version->must_be_left(r.first_token_after > 0,
                                            steady_now());
        },
        "the version with which it began is not ready");
  }

  /// A version that has to make room does not wait for slow clients for ever.
  void end_slow(const served_model& model) {
    const auto& newest = *model.versions().front();
    const bool next_waits =
      model.follows.newest && model.follows.newest->step > newest.is.step;
    for (const auto& v : std::vector(model.versions()))
      if (v->former_since
          && core::must_leave(true, next_waits, *v->former_since, steady_now()))
        leave(*v, true,
              "the version of \"" + model.name()
                + "\" with which this request began makes room for a newer "
                  "one, since the answer was not taken in time");
  }

  // Streams. --------------------------------------------------------------------

  void on_message(const runtime::serve_message_in& m) {
    const auto at = models_.find(core::header(*m.message).job);
    if (at == models_.end())
      return;
    const auto model = at->second;
    for (const auto& v : std::vector(model->versions())) {
      apply(*v, v->streams.take(m.from, *m.message, steady_now()));
      const bool ready = v->streams.ready() > 0;
      if (std::exchange(v->was_ready, ready) == ready)
        continue;
      for (const std::string& text :
           readiness_lines(*model, *v, ready, *view_, *plan_))
        note(*model, text);
    }
  }

  void apply(served_version& version, core::replay::effects e) {
    for (core::serve_send& s : e.sends)
      node_.send(s.to, std::move(s.what));
    for (const core::stream_event& event : e.events)
      on_event(version, event);
    node_.serves(counted_.loads(models_));
    tick_if_needed();
  }

  /// While there are streams, checkpoints to be looked for, or numbers of
  /// pipelines that follow the load.
  void tick_if_needed() {
    const bool needed = std::ranges::any_of(models_, [](const auto& m) {
      return m.second->streams() > 0 || m.second->config().follows != 0
             || m.second->scaler.active();
    });
    if (needed && !std::exchange(ticking_, true))
      delayed_send(this, gateway_tick_every, gateway_tick{});
  }

  void on_event(const served_version& version, const core::stream_event& e) {
    const auto* const at = requests_.place_of(e.stream);
    if (!at)
      return;
    const auto s = *at;
    open_request& r = *requests_.find(s.request);
    counted_.generated(r.model->entry().id, e.tokens.size());
    if (!e.tokens.empty() && r.first_token_after == 0)
      r.first_token_after = steady_now() - r.came;
    if (e.end != core::stream_end::none)
      requests_.stream_ended(e.stream);
    const bool pooled = r.asks[s.choice].pooled != core::pooling::none;
    if (const auto why = why_ended(e.end, version, pooled ? "input" : "prompt"))
      return fail(s.request, *why);
    if (pooled)
      return on_pooled(s, e);
    using outcome = completion::outcome;
    const outcome what = r.answer->take(s.choice, e.tokens, e.end, e.scored);
    if (r.answer->has_sent())
      r.news_at = steady_now();
    switch (what) {
    case outcome::goes_on:
      break;
    case outcome::pause:
      r.slow = true;
      requests_.hold(s.request, true);
      break;
    case outcome::choice_over:
      requests_.drop_stream(e.stream);
      break;
    case outcome::over:
      over(s.request);
      break;
    case outcome::gone:
      on_left(s.request);
      break;
    }
  }

  void
  on_pooled(const open_requests::stream_place& s, const core::stream_event& e) {
    const open_request& r = *requests_.find(s.request);
    auto values = embedding_of(e.pooled, *r.model);
    if (!values)
      return fail(s.request, openai::server_error(
                               "the model's output is no embedding: its "
                               "weights are broken"));
    if (r.answer->take_embedding(s.choice, *std::move(values))
        == completion::outcome::over)
      return over(s.request);
    ask_streams(s.request);
  }

  void on_left(std::uint64_t id) {
    if (requests_.find(id))
      log(requests_.take(id), ended_request::client_gone,
          "the client has gone");
  }

  void fail(std::uint64_t id, const openai::api_error& why) {
    if (!requests_.find(id))
      return;
    const open_request r = requests_.take(id);
    r.answer->fail(why);
    log(r, why.status, std::to_string(why.status) + ": " + why.message);
  }

  void over(std::uint64_t id) { log(requests_.take(id), 200, "200"); }

  void log(const open_request& r, unsigned status, const std::string& how) {
    const core::nanoseconds all = steady_now() - r.came;
    counted_.ended(r.model->name(),
                   {status, r.answer->prompt_tokens(), r.answer->tokens(),
                    r.first_token_after, all, r.answer->choices()});
    told(*r.model, r.answer->exchange(),
         std::to_string(r.answer->prompt_tokens()) + " + "
           + std::to_string(r.answer->tokens()) + " tokens in "
           + std::to_string(all / 1'000'000) + " ms: " + how);
  }

  /// A request that names no model here is told of with each of them.
  void turn_away(runtime::http_exchange& x, const std::string& name,
                 const openai::api_error& why) {
    x.respond(why);
    counted_.asked();
    counted_.ended(name, {why.status});
    const auto named = find(name);
    for (const auto& [id, model] : models_)
      if (!named || model == named)
        told(*model, x, std::to_string(why.status) + ": " + why.message);
  }

  /// A line about a request: there may be any number of them.
  void told(const served_model& model, const runtime::http_exchange& x,
            const std::string& text) {
    node_.log().add_passing(
      model.entry().id,
      line(x.request().client + " " + x.request().path + " " + text));
  }

  /// A line for commands that follow the job at this node.
  void note(const served_model& model, const std::string& text) {
    node_.log().add(model.entry().id, line(text));
  }
  runtime::job_event line(const std::string& text) {
    return notice_of(text, ++notes_, view_->number);
  }

  void on_tick() {
    ticking_ = false;
    for (const auto& [id, model] : std::map(models_)) {
      const bool numbers_count =
        model->config().follows != 0 || model->scaler.active();
      for (const auto& v : std::vector(model->versions())) {
        if (v->streams.size() > 0)
          apply(*v, v->streams.tick(steady_now()));
        if (numbers_count)
          apply(*v, v->streams.ask_of_streams(steady_now()));
      }
      scale(*model);
      if (model->config().follows == 0)
        continue;
      // Requests begin with the one before until this one is known to be ready.
      for (const auto& v : model->to_ask(steady_now()))
        apply(*v, v->streams.ask_how_they_are());
      leave_unready(*model);
      propose_next_version(node_, model, post_, steady_now());
      if (const auto lost = std::exchange(model->follows.lost, {});
          !lost.empty())
        note(*model, lost);
      end_slow(*model);
    }
    keep_alive();
    tick_if_needed();
  }

  /// Something between a client and this node may cut off a stream without news.
  void keep_alive() {
    const core::nanoseconds now = steady_now();
    const auto waits = [&](const open_request& r) {
      return now - r.news_at >= news_every;
    };
    for (const std::uint64_t id : requests_.ids_of(waits)) {
      open_request& r = *requests_.find(id);
      r.news_at = now;
      r.answer->keep_alive();
    }
  }

  // Requests. -------------------------------------------------------------------

  void on_ask(const http_ask& m) {
    if (!view_ && needs_view(m.what))
      return answer_without_view(*m.exchange, quorum_);
    if (m.what > http_question::apply_template)
      return answer(m, models_, counted_, node_);
    if (const auto why = prompts_.full(m))
      return turn_away(*m.exchange, "", *why);
    prepare_prompt(m);
  }

  void prepare_prompt(const http_ask& m) {
    prompt_models all;
    for (const auto& [id, model] : models_)
      all.push_back(model->prompt());
    prompts_.add(m, std::move(all), random_number(),
                 [this, m](prompt_answer out, const prompt_models& by) {
                   on_prepared(m, std::move(out), by);
                 });
  }

  /// @param by the models for which it was prepared
  void
  on_prepared(const http_ask& m, prompt_answer out, const prompt_models& by) {
    const auto& x = m.exchange;
    if (const auto* json = std::get_if<std::string>(&out.what))
      return tell(*x, out.model, *json, counted_);
    const auto model = find(out.model);
    if (const auto* wrong = std::get_if<openai::api_error>(&out.what))
      return turn_away(*x, model ? model->name() : "", *wrong);
    if (!model)
      return turn_away(*x, "", openai::model_not_found(out.model));
    auto* asked = std::get_if<text_request>(&out.what);
    if (asked && std::ranges::find(by, model->prompt()) == by.end())
      return prepare_prompt(m); // another model has this name now
    if (asked)
      return start(x, std::move(*asked), model);
    if (model->text())
      return prepare_prompt(m); // they have come meanwhile
    if (const auto why = why_refused(*model))
      return turn_away(*x, model->name(), *why);
    if (model->waiting.size() >= waiting_requests_max)
      return turn_away(*x, model->name(),
                       openai::rate_limited("the model is being loaded", 1));
    model->waiting.push_back([this, m] { prepare_prompt(m); });
  }

  std::shared_ptr<served_model> find(const std::string& name) const {
    const auto at = std::ranges::find_if(
      models_, [&](const auto& m) { return m.second->name() == name; });
    return at == models_.end() ? nullptr : at->second;
  }

  void start(const std::shared_ptr<runtime::http_exchange>& x,
             text_request asked, const std::shared_ptr<served_model>& model) {
    const auto version = model->version_for(asked.after);
    if (!version)
      return turn_away(*x, model->name(), version_gone(*model));
    if (const auto why = why_not_begun(*view_, *model, x->request(), asked))
      return turn_away(*x, model->name(), *why);
    counted_.asked();
    const std::uint64_t id = requests_.new_id();
    const std::uint32_t max_tokens = asked.options.max_tokens;
    open_request r;
    r.came = r.news_at = steady_now();
    r.model = model;
    r.version = version;
    const stream_wishes wishes = wishes_of(x->request(), asked);
    r.answer = std::make_shared<completion>(x, std::move(asked),
                                            head_of(*model, *version, id),
                                            model->text()->tokenizer);
    r.watcher = std::make_shared<client_watcher>(
      caf::actor_cast<caf::actor_addr>(this), id);
    x->watch(r.watcher);
    if (!r.answer->begin()) {
      const unsigned status = r.answer->status(); // 429, if it was refused
      return counted_.ended(
        model->name(), {status == 200 ? ended_request::client_gone : status});
    }
    if (max_tokens == 0 && !r.answer->wants_scores()
        && wishes.pooled == core::pooling::none) {
      r.answer->finish_at_once();
      log(r, 200, "200");
      return;
    }
    r.asks = asks_of(*r.answer, *model, wishes);
    requests_.add(id, std::move(r));
    ask_streams(id);
  }

  /// A stream for each choice of a request; of many embeddings some at a time.
  void ask_streams(std::uint64_t id) {
    // It may be answered meanwhile, or one of them refused.
    while (const open_request* const r = requests_.find(id)) {
      if (r->asked == r->asks.size()
          || (r->asks[r->asked].pooled != core::pooling::none
              && r->streams.size() >= embeddings_at_once(*r->model)))
        return;
      const auto version = r->version;
      const core::stream_ask ask = r->asks[r->asked];
      apply(*version, version->streams.accept(requests_.open_stream(id), ask,
                                              steady_now()));
    }
  }

  runtime::context& node_;
  poster post_;
  prompt_queue prompts_{node_, post_};
  std::shared_ptr<const core::view> view_;
  std::shared_ptr<const core::plan> plan_; ///< of the view
  runtime::quorum_changed quorum_;         ///< the newest
  std::map<core::job_id, std::shared_ptr<served_model>> models_;
  open_requests requests_{node_, random_number()};
  std::uint64_t notes_ = 0;
  gateway_metrics counted_;
  bool ticking_ = false;
};

} // namespace

caf::actor spawn_gateway(caf::actor_system& system, runtime::context& node) {
  return system.spawn<gateway_actor>(node);
}

} // namespace shoal::actors
