// tests/actors/small_shoal.cpp -- the world around the actors, made by hand.
#include "tests/actors/small_shoal.hpp"

#include "actors/checkpoint/checkpoint_files.hpp"
#include "actors/supervisor.hpp"
#include "runtime/core/assert.hpp"
#include "runtime/core/text/hex.hpp"
#include "runtime/jobs/job_journal.hpp"
#include "runtime/links/links.hpp"
#include "runtime/model/data/corpus.hpp"
#include "runtime/model/units.hpp"
#include "runtime/node/node_wiring.hpp"
#include "runtime/work/leaving_alone.hpp"
#include "tests/actors/direct_exchange.hpp"
#include "tests/actors/simulated_time.hpp"
#include "tests/actors/small_device.hpp"
#include "tests/actors/small_store.hpp"
#include "tests/runtime/node/lone_ports.hpp"

#include <caf/all.hpp>

#include <algorithm>
#include <cstring>
#include <fstream>

namespace shoal::test {

namespace fs = std::filesystem;

struct small_shoal::transfer {
  bool expected = false;
  bool sent = false;
  runtime::shared_bytes into, from;
  runtime::link_hub::callback received, delivered;
};

/// Copies when both ends are there.
class fake_links : public runtime::link_hub {
public:
  fake_links(small_shoal& all, core::peer_id self) : all_(all), self_(self) {}

  void expect(const core::peer_id& from, transport::bulk_tag tag,
              runtime::shared_bytes into, callback done) override {
    if (dead_)
      return;
    auto& t = at(from, self_, tag);
    SHOAL_ASSERT(!t.expected); // a tag is used once
    t.expected = true;
    t.into = std::move(into);
    t.received = std::move(done);
    all_.match(from, self_, tag);
  }
  void send(const core::peer_id& to, transport::bulk_tag tag,
            runtime::shared_bytes from, callback done) override {
    if (dead_)
      return;
    auto& t = at(self_, to, tag);
    SHOAL_ASSERT(!t.sent);
    t.sent = true;
    t.from = std::move(from);
    t.delivered = std::move(done);
    all_.match(self_, to, tag);
  }
  void cancel(std::uint64_t plan) override {
    drop(
      [&](const small_shoal::key& k) { return std::get<2>(k).plan == plan; });
  }
  std::vector<link_stat> stats() const override { return {}; }
  runtime::shared_memory_resource memory_for_copies() const override {
    return memory_;
  }
  std::size_t most_copied() const { return memory_->most(); }

  /// Nothing of this node's has effect any more.
  void die() {
    drop([](const auto&) { return true; });
    dead_ = true;
  }

  /// Ends this node's halves of the transfers that `which` names.
  template <class Which>
  void drop(Which which) {
    const auto error = make_error_code(transport::errc::canceled);
    std::vector<callback> told;
    for (auto& [k, t] : all_.transfers_) {
      if (!which(k))
        continue;
      if (std::get<1>(k) == self_ && t->expected) {
        told.push_back(std::move(t->received));
        *t = {false, t->sent, {}, t->from, {}, t->delivered};
      }
      if (std::get<0>(k) == self_ && t->sent) {
        told.push_back(std::move(t->delivered));
        *t = {t->expected, false, t->into, {}, t->received, {}};
      }
    }
    for (const callback& c : told)
      c(error);
  }

private:
  small_shoal::transfer& at(const core::peer_id& from, const core::peer_id& to,
                            transport::bulk_tag tag) {
    auto& t = all_.transfers_[{from, to, tag}];
    if (!t)
      t = std::make_shared<small_shoal::transfer>();
    return *t;
  }
  small_shoal& all_;
  core::peer_id self_;
  bool dead_ = false;
  std::shared_ptr<counting_memory> memory_ =
    std::make_shared<counting_memory>();
};

/// The ports of a node whose cluster core is the test.
class small_node final : public tests::lone_ports {
  friend class small_shoal;

public:
  small_node(small_shoal& all, std::size_t number, const fs::path& folder)
    : all_(all), self_(id_of(number)), time_(all.system_->clock()),
      links_(all, self_) {
    fs::create_directories(folder);
    store_ = std::make_unique<small_store>(folder / "blobs");
    log_ =
      runtime::open_job_journal(all_.journals_ ? folder / "jobs" : fs::path{});
    exchange_ = std::make_unique<direct_exchange>(
      *store_, [this](const core::peer_id& id) -> runtime::store* {
        for (const auto& node : all_.nodes_)
          if (node->self_ == id && node->alive())
            return node->store_.get();
        return nullptr;
      });
    actors::add_builtin(roles_);
    runtime::node_parts p;
    p.self = self_;
    p.data_dir = folder;
    p.system = all_.system_.get();
    p.device = p.reductions = p.disk = &device_;
    p.blobs = store_.get();
    p.log = log_.get();
    p.exchange = exchange_.get();
    p.roles = &roles_;
    wiring_ =
      std::make_unique<runtime::node_wiring>(std::move(p), *this, *this);
  }

  static core::peer_id id_of(std::size_t number) {
    core::peer_id id{};
    id[0] = std::uint8_t(number + 1);
    return id;
  }

  /// Its actors end; what they still post reaches nobody.
  void stop() {
    wiring_->end_actors();
    wiring_->close();
    alive_ = false;
    links_.die();
  }
  bool alive() const { return alive_; }
  template <class Message>
  void to_supervisor(const Message& m) {
    if (const caf::actor supervisor = wiring_->find("supervisor"))
      caf::anon_send(supervisor, m);
  }
  const core::peer_id& self() const { return self_; }
  runtime::store& blobs() { return *store_; }
  runtime::job_journal& log() { return *log_; }

  // Ports that are more than those of a lone node.
  runtime::training_operations& operations(const core::island_id&) override {
    return time_;
  }
  runtime::link_hub& links() override { return links_; }
  void
  send_when_up(const core::peer_id& to, const runtime::envelope& m) override {
    const auto& message = std::get<core::job_message>(m);
    ++all_.moved_in_[core::header(message).island].messages[message.index()];
    for (const auto& node : all_.nodes_)
      if (node->self_ == to && !away_ && !node->away_)
        node->wiring_->take(self_,
                            core::job_message(std::get<core::job_message>(m)));
  }
  core::plan make_plan(const core::view&) override { return *all_.plan_; }
  void tell(core::cluster::event e) override {
    namespace cl = core::cluster;
    if (away_)
      return;
    const auto entry_of = [this](core::job_id id) -> core::job_entry& {
      return *std::ranges::find(all_.view_.jobs, id, &core::job_entry::id);
    };
    if (const auto* s = std::get_if<cl::set_job_state>(&e)) {
      core::job_entry& job = entry_of(s->id);
      if (job.state != core::job_state::running)
        return;
      if (job.want_islands > 1 && s->since != 0) {
        set_mark(job, {core::mark_kind::done, s->island, s->since, 0});
        for (std::uint32_t i = 0; i < job.want_islands; ++i)
          if (marked(job, core::mark_kind::done, i) == 0)
            return all_.publish();
      }
      job.state = s->state;
      job.done_step = s->done_step;
      job.cause = s->cause;
    } else if (const auto* r = std::get_if<cl::retry_job>(&e)) {
      const std::uint32_t island = r->id.index;
      core::job_entry& job = entry_of(r->id.job);
      if (all_.replaying_
          || marked(job, core::mark_kind::retried, island) >= r->since)
        return;
      set_mark(job, {core::mark_kind::retried, island, r->since, 0});
    } else if (const auto* a = std::get_if<cl::job_arrived>(&e)) {
      const std::uint32_t island = a->id.index;
      core::job_entry& job = entry_of(a->id.job);
      if (all_.replaying_
          || marked(job, core::mark_kind::arrived, island) >= a->since)
        return;
      set_mark(job, {core::mark_kind::arrived, island, a->since, 0});
    } else if (const auto* d = std::get_if<cl::drain_job>(&e)) {
      set_mark(entry_of(d->id),
               {core::mark_kind::draining, 0, all_.view_.number + 1, 0});
    } else {
      return; // nobody is expelled
    }
    all_.publish();
  }

  core::blob_digest put(std::span<const std::byte> bytes) {
    auto writer = store_->write();
    core::blob_digest digest{};
    SHOAL_ASSERT(!writer->append(bytes));
    SHOAL_ASSERT(!writer->commit(digest, std::nullopt));
    return digest;
  }

private:
  small_shoal& all_;
  core::peer_id self_;
  simulated_time time_;
  runtime::role_table roles_;
  fake_links links_;
  inline_device device_;
  std::unique_ptr<small_store> store_;
  std::unique_ptr<runtime::job_journal> log_;
  std::unique_ptr<direct_exchange> exchange_;
  std::unique_ptr<runtime::node_wiring> wiring_;
  bool alive_ = true;
  bool away_ = false;
  std::uint64_t seen_ = 0; ///< events of its log that newest_step() has read
};

small_shoal::small_shoal(std::size_t nodes, runtime::run_config run,
                         std::string text, bool journals)
  : journals_(journals) {
  config_.set("scheduler.policy", caf::atom("testing"));
  config_.set("middleman.attach-utility-actors", true);
  system_ = std::make_unique<caf::actor_system>(config_);
  scheduler_ =
    dynamic_cast<caf::scheduler::test_coordinator*>(&system_->scheduler());
  SHOAL_ASSERT(scheduler_ != nullptr);
  model::corpus corpus;
  for (auto* split : {&corpus.train_u8, &corpus.validation_u8})
    split->assign(text.begin(), text.end());
  corpus.files = {{"a", false, 0, text.size()}, {"b", true, 0, text.size()}};
  text_ = model::serialise(corpus);
  const model::unit_layout layout(run.model);
  job_.id = 1;
  job_.name = "test";
  job_.run_json = runtime::to_json(run);
  job_.blocks = std::uint32_t(run.model.num_hidden_layers);
  job_.microbatches = std::uint32_t(run.microbatches_per_step());
  job_.block_flops = job_.head_flops = 1000000000;
  job_.block_state_bytes = 16 * layout.unit_size(1);
  job_.want_replicas = std::int32_t(run.replicate_degree);
  job_.want_stages = std::int32_t(run.pipeline_degree);
  job_.want_schedule = runtime::wanted_schedule(run);
  job_.want_virtual = std::int32_t(run.virtual_degree);
  job_.want_copies = std::uint32_t(run.wanted_copies());
  job_.want_copy_every =
    std::uint32_t(std::max<std::int64_t>(run.copy_every, 0));
  for (auto blocks : run.layers_per_stage)
    job_.want_blocks.push_back(std::uint32_t(blocks));
  for (std::size_t n = 0; n < nodes; ++n) {
    nodes_.push_back(std::make_unique<small_node>(
      *this, n, folder_.path() / std::to_string(n)));
    add_member(n);
  }
}

small_shoal::~small_shoal() {
  for (auto& node : nodes_)
    if (node->alive())
      node->stop();
  scheduler_->run(); // C1: nothing may re-arm a timer when the system ends
  system_.reset();
  nodes_.clear();
  gone_.clear();
}

void small_shoal::add_member(std::size_t node) {
  core::member m;
  m.id = {small_node::id_of(node), view_.number + 1};
  m.host = std::to_string(node);
  m.device.mflops = 100000;
  m.device.memory_bytes = std::uint64_t{1} << 34;
  m.networks = networks_;
  view_.members.push_back(m);
  std::ranges::sort(view_.members, {},
                    [](const core::member& x) { return x.id; });
}

void small_shoal::set_network(core::network_profile n) {
  networks_ = {std::move(n)};
  for (core::member& m : view_.members)
    m.networks = networks_;
}

void small_shoal::make_witness(std::size_t node) {
  for (core::member& m : view_.members)
    m.witness = m.witness || m.id.peer == nodes_[node]->self();
}

void small_shoal::publish() {
  if (plan_)
    view_.previous = plan_->jobs;
  ++view_.number;
  plan_ = std::make_shared<const core::plan>(core::make_plan(view_));
  for (const core::assignment& a : plan_->jobs)
    for (std::uint32_t i = 0; i < a.islands.size(); ++i)
      islands_[core::digest({a.job, i}, a.islands[i])] = i;
  if (!plan_->jobs.empty()
      && (past_.empty()
          || past_.back().place.since != plan_->jobs[0].islands[0].since))
    past_.push_back({view_, plan_->jobs[0].islands[0], 0});
  tell_all();
}

void small_shoal::tell_all() {
  for (auto& node : nodes_)
    if (node->alive() && !node->away_)
      node->wiring_->adopt({view_, true});
}

void small_shoal::submit() {
  job_.data = nodes_[0]->put(text_);
  job_.data_bytes = text_.size();
  job_.submitter = nodes_[0]->self();
  view_.jobs.push_back(job_);
  publish();
}

core::job_id small_shoal::submit_twin() {
  core::job_entry twin = view_.jobs[0];
  twin.id = 2;
  twin.marks.clear();
  view_.jobs.push_back(twin);
  publish();
  return twin.id;
}

core::blob_digest
small_shoal::upload(std::size_t node, const std::string& text) {
  return nodes_[node]->put(std::as_bytes(std::span(text)));
}

void small_shoal::step() {
  ++steps_;
  if (!scheduler_->try_run_once())
    scheduler_->advance_time(std::chrono::milliseconds(100));
}

bool small_shoal::ended() const {
  return view_.jobs[0].state != core::job_state::running;
}

bool small_shoal::finish(std::size_t steps_max) {
  for (std::size_t i = 0; i < steps_max && !ended(); ++i)
    step();
  scheduler_->run(); // let the end reach everybody's log
  return ended();
}

void small_shoal::kill(std::size_t node) {
  nodes_[node]->stop();
  lose(node);
}

void small_shoal::cut_off(std::size_t node) {
  nodes_[node]->away_ = true;
  lose(node);
}

void small_shoal::bring_back(std::size_t node) {
  nodes_[node]->away_ = false;
  add_member(node);
  publish();
}

std::vector<runtime::job_event> small_shoal::events(std::size_t node) const {
  return nodes_[node]->log().read_all(1);
}

/// The others go on without it.
void small_shoal::lose(std::size_t node) {
  const core::peer_id gone = nodes_[node]->self();
  for (auto at = transfers_.begin(); at != transfers_.end();) {
    const bool hit =
      std::get<0>(at->first) == gone || std::get<1>(at->first) == gone;
    at = hit ? transfers_.erase(at) : std::next(at);
  }
  std::erase_if(view_.members,
                [&](const core::member& m) { return m.id.peer == gone; });
  publish();
}

void small_shoal::silence(std::size_t node) {
  nodes_[node]->stop();
}

void small_shoal::pass(std::size_t from, std::size_t to, core::job_message m) {
  nodes_[to]->wiring_->take(nodes_[from]->self(), std::move(m));
}

std::vector<fs::path> small_shoal::flights(std::size_t node) const {
  std::vector<fs::path> out;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(
         folder_.path() / std::to_string(node) / "flight", none))
    out.push_back(entry.path());
  return out;
}

std::vector<fs::path> small_shoal::blobs(std::size_t node) const {
  std::vector<fs::path> out;
  const fs::path blobs = folder_.path() / std::to_string(node) / "blobs";
  for (const auto& entry : fs::recursive_directory_iterator(blobs))
    if (entry.is_regular_file()
        && entry.path().parent_path().filename() != "corrupt")
      out.push_back(entry.path());
  std::ranges::sort(out);
  return out;
}

std::map<std::string, fs::path>
small_shoal::checkpoint(std::size_t node, std::uint64_t step,
                        core::job_id job) const {
  std::map<std::string, fs::path> out;
  auto at = [&](const core::blob_digest& d) {
    const std::string name = core::to_hex(d);
    return folder_.path() / std::to_string(node) / "blobs" / name.substr(0, 2)
           / name.substr(2);
  };
  for (const runtime::job_event& e : nodes_[node]->log().read_all(job))
    if (e.kind == runtime::job_event_kind::checkpoint && e.step == step)
      if (auto m = actors::read_manifest(e.digest, nodes_[node]->blobs())) {
        out["manifest"] = at(e.digest);
        for (const actors::manifest_file& f : m->files)
          out[f.name] = at(f.digest);
      }
  return out;
}

std::vector<std::uint64_t>
small_shoal::checkpoints(std::size_t node, core::job_id job) const {
  std::vector<std::uint64_t> out;
  for (const runtime::job_event& e : nodes_[node]->log().read_all(job))
    if (e.kind == runtime::job_event_kind::checkpoint)
      out.push_back(e.step);
  return out;
}

void small_shoal::rot(std::size_t node) {
  for (const fs::path& blob : blobs(node)) {
    std::fstream file(blob, std::ios::in | std::ios::out | std::ios::binary);
    const char byte = char(file.get() ^ 1);
    file.seekp(0);
    file.put(byte);
  }
}

void small_shoal::fill_disk(std::size_t node, bool full) {
  nodes_[node]->store_->full = full;
}

void small_shoal::between_segments(std::size_t node,
                                   std::function<void(core::job_id)> then) {
  nodes_[node]->device_.between = std::move(then);
}

const std::vector<std::string>& small_shoal::said(std::size_t node) const {
  return nodes_[node]->said;
}

void small_shoal::restart(std::size_t node) {
  // Actors of its former life may still have a message to end with.
  gone_.push_back(std::move(nodes_[node]));
  nodes_[node] = std::make_unique<small_node>(
    *this, node, folder_.path() / std::to_string(node));
  add_member(node);
  publish();
}

std::vector<past_view> small_shoal::past(std::size_t node) const {
  std::map<std::uint64_t, core::epoch> made; // steps, by who made them last
  for (const runtime::job_event& e : nodes_[node]->log().read_all(1))
    if (e.kind == runtime::job_event_kind::step)
      made[e.step] = e.epoch;
  std::vector<past_view> out = past_;
  for (past_view& p : out)
    for (const auto& [step, epoch] : made)
      if (epoch == p.place.since && p.first_step == 0)
        p.first_step = step;
  return out;
}

std::uint64_t small_shoal::newest_step() {
  for (auto& node : nodes_)
    for (const runtime::job_event& e :
         node->log().read(1, node->seen_, node->seen_))
      if (e.kind == runtime::job_event_kind::step)
        newest_step_ = std::max(newest_step_, e.step);
  return newest_step_;
}

bool small_shoal::replay(const std::vector<past_view>& views) {
  replaying_ = true;
  nodes_[0]->put(text_);
  for (const past_view& p : views) {
    if (p.first_step == 0)
      continue;
    while (plan_ && newest_step() + 1 < p.first_step && !ended())
      step();
    view_ = p.view;
    plan_ = std::make_shared<const core::plan>(
      core::plan{p.view.number, {{job_.id, {p.place}}}});
    islands_[core::digest({job_.id, 0}, p.place)] = 0;
    tell_all();
  }
  return finish();
}

void small_shoal::drain() {
  nodes_[0]->to_supervisor(runtime::drain_job{job_.id});
}

void small_shoal::cancel(std::size_t node) {
  nodes_[node]->tell(core::cluster::drain_job{job_.id});
}

void small_shoal::leave_alone(std::size_t node, bool& node_ends) {
  nodes_[node]->to_supervisor(runtime::node_stopping{true});
  nodes_[node]->to_supervisor(runtime::leaving_alone{
    std::shared_ptr<void>(nullptr, [&node_ends](void*) { node_ends = true; })});
}

void small_shoal::match(const core::peer_id& from, const core::peer_id& to,
                        transport::bulk_tag tag) {
  auto at = transfers_.find({from, to, tag});
  if (at == transfers_.end() || !at->second->expected || !at->second->sent)
    return;
  auto t = at->second;
  transfers_.erase(at);
  ++moved_[tag.link >> 26];
  traffic& moved = moved_in_[islands_.at(tag.plan)];
  ++moved.transfers;
  moved.pairs.emplace(from[0], to[0]);
  SHOAL_ASSERT(t->into.bytes.size() == t->from.bytes.size());
  if (!t->into.bytes.empty())
    std::memcpy(t->into.bytes.data(), t->from.bytes.data(),
                t->into.bytes.size());
  if (flipped_ == tag.link >> 26) {
    flipped_.reset();
    // A high bit of a parameter, which later steps do not round away: the
    // first of three arrays are the parameters.
    const std::size_t value = t->into.bytes.size() / 6 / sizeof(float);
    t->into.bytes[value * sizeof(float) + 2] ^= std::byte{0x20};
  }
  t->received({});
  t->delivered({});
}

std::size_t small_shoal::transfers(actors::link_kind kind) const {
  const auto at = moved_.find(std::uint32_t(kind));
  return at == moved_.end() ? 0 : at->second;
}

std::size_t small_shoal::most_copied(std::size_t node) const {
  return nodes_[node]->links_.most_copied();
}

run_record small_shoal::record(std::size_t node, std::uint32_t island) const {
  return record_of(nodes_[node]->log().read_all(1), island);
}

} // namespace shoal::test
