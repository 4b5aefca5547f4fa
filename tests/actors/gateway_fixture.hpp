// tests/actors/gateway_fixture.hpp -- a gateway's actor with everything around it
// made by hand: queues that run what they are told to, and one served model.
#pragma once

#include "actors/checkpoint/checkpoint_manifest.hpp"
#include "actors/gateway/gateway.hpp"
#include "actors/gateway/served_model.hpp"
#include "actors/serving/version_header.hpp"
#include "kernels/backend.hpp"
#include "runtime/core/planning/plan.hpp"
#include "runtime/core/view.hpp"
#include "runtime/http/keys/key_account.hpp"
#include "runtime/jobs/job_log.hpp"
#include "runtime/jobs/serve_config.hpp"
#include "runtime/model/text/tokenizer.hpp"
#include "runtime/store/store.hpp"
#include "runtime/work/device_queue.hpp"
#include "support/folder.hpp"
#include "tests/actors/small_store.hpp"
#include "tests/actors/still_context.hpp"

#include <boost/test/unit_test.hpp>
#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include <cstdlib>
#include <deque>
#include <map>
#include <set>

namespace shoal::actors::gateways { // as the suite of the tests

inline const core::peer_id me{1};
inline constexpr core::job_id job = 5;

/// Runs what was submitted when it is told to.
struct manual_queue final : runtime::device_queue {
  void submit_pass(segments run, std::function<void()> done, label) override {
    waiting.emplace_back(std::move(run), std::move(done));
  }
  void close() override {}
  void run_one() {
    auto [run, done] = std::move(waiting.front());
    waiting.pop_front();
    while (run && run(*unused)) {
    }
    if (done)
      done();
  }
  std::deque<std::pair<segments, std::function<void()>>> waiting;
  std::unique_ptr<kernels::backend> unused = kernels::make_reference_backend();
};

/// A client that takes everything.
struct client final : runtime::http_exchange {
  client(const std::string& path, const std::string& body) {
    asked.method = "POST";
    asked.path = path;
    asked.body = body;
    asked.client = "127.0.0.1:1";
  }
  const runtime::http_request& request() const noexcept override {
    return asked;
  }
  void watch(std::weak_ptr<runtime::http_watcher>) override {}
  bool respond(unsigned s, std::vector<runtime::http_header>,
               std::string body) override {
    status = s;
    got += body;
    return true;
  }
  bool begin_stream(unsigned s, std::vector<runtime::http_header>) override {
    status = streams_are_full ? 429 : s;
    return !streams_are_full;
  }
  bool has_refused_stream() const override { return status == 429; }
  runtime::http_write write(std::string_view bytes) override {
    got += bytes;
    return runtime::http_write::ok;
  }
  bool end() override {
    ended = true;
    return true;
  }
  runtime::http_request asked;
  unsigned status = 0;
  std::string got;
  bool ended = false;
  bool streams_are_full = false;
};

struct no_log final : runtime::job_log {
  void add(core::job_id, const runtime::job_event&) override {}
  std::vector<runtime::job_event>
  read(core::job_id, std::uint64_t, std::uint64_t&) const override {
    return {};
  }
  std::vector<runtime::job_event> read_all(core::job_id) const override {
    return {};
  }
};

/// A disk from which a file has gone when it is read first, and one that has to be
/// fetched.
struct losing_store final : test::small_store {
  using small_store::small_store;
  std::shared_ptr<const runtime::blob>
  read(const core::blob_digest& d, std::error_code& error) override {
    if (lost.erase(d) == 0)
      return small_store::read(d, error);
    error = std::make_error_code(std::errc::no_such_file_or_directory);
    return nullptr;
  }
  bool contains(const core::blob_digest& d) const override {
    return !away.contains(d) && small_store::contains(d);
  }
  std::set<core::blob_digest> lost, away;
};

/// A node with a model that is served by a pipeline on itself.
struct world final : test::still_context {
  /// @param sees_view  the node is a member
  explicit world(bool loses_tokenizer = false, bool sees_view = true) {
    config.set("scheduler.policy", caf::atom("testing"));
    config.set("middleman.attach-utility-actors", true);
    system_ = std::make_unique<caf::actor_system>(config);
    scheduler =
      dynamic_cast<caf::scheduler::test_coordinator*>(&system_->scheduler());
    BOOST_REQUIRE(scheduler);
    gateway = spawn_gateway(*system_, *this);
    if (sees_view)
      see_model(loses_tokenizer);
  }
  ~world() override {
    caf::anon_send_exit(gateway, caf::exit_reason::kill);
    gateway = nullptr;
    scheduler->run();
  }

  void put(manifest& into, const std::string& name, const std::string& text) {
    manifest_file f{name, {}, text.size()};
    const auto writer = store->write();
    BOOST_REQUIRE(!writer->append(std::as_bytes(std::span(text))));
    BOOST_REQUIRE(!writer->commit(f.digest, std::nullopt));
    into.files.push_back(f);
  }

  void see_model(bool loses_tokenizer) {
    runtime::serve_config served;
    served.model.vocab_size = 256;
    served.model.max_position_embeddings = 1 << 16;
    served.context = served.cache_tokens = 1 << 16;
    manifest files;
    put(files, "tokenizer.json", model::byte_tokenizer::to_json());
    if (loses_tokenizer)
      store->lost.insert(files.files.front().digest);
    put(files, "tokenizer_config.json",
        R"({"chat_template": "{{ messages[0].content }}:{# knows <tool_call> )"
        R"(and </think> #}"})");
    manifest top;
    put(top, "manifest", to_json(files));
    core::job_entry e;
    e.id = job;
    e.name = "tiny";
    e.kind = core::job_kind::serve;
    e.run_json = runtime::to_json(served);
    e.origin = top.files[0].digest;
    if (disk_full)
      store->away.insert(files.files.front().digest);
    entry = e;
    see_view();
  }

  /// The next view. @param why_waiting the model fits nowhere; empty: it fits
  void see_view(const std::string& why_waiting = "") {
    auto v = std::make_shared<core::view>();
    v->number = view_ ? view_->number + 1 : 1;
    v->members.emplace_back().id.peer = me;
    v->jobs.push_back(entry);
    core::island_place place;
    place.since = v->number;
    place.why_waiting = why_waiting;
    if (why_waiting.empty())
      place.replicas.emplace_back().stages.push_back(
        core::stage_on({me, 0}, 0, 1));
    header =
      version_header(entry, 0, place, core::served_versions(entry).front());
    auto p = std::make_shared<core::plan>();
    p->jobs.push_back({job, {place}});
    view_ = v;
    plan_ = p;
    caf::anon_send(gateway, runtime::view_changed{view_, plan_});
    settle();
    if (!why_waiting.empty())
      return;
    core::pipeline_report ready;
    ready.header = header;
    ready.ready = true;
    ready.room = 1 << 20;
    say(ready);
  }

  /// @param why_none there is no quorum; empty: there is one
  void see_quorum(const std::string& why_none,
                  std::vector<core::peer_id> reachable) {
    caf::anon_send(gateway, runtime::quorum_changed{why_none, reachable});
    settle();
  }

  /// Runs actors and the disk, but no prompts.
  void settle() {
    for (;;) {
      scheduler->run();
      if (disk_.waiting.empty())
        return;
      disk_.run_one();
    }
  }
  void say(core::serve_message m) {
    caf::anon_send(gateway,
                   runtime::serve_message_in{
                     me, std::make_shared<const core::serve_message>(m)});
    settle();
  }
  void pass(std::chrono::seconds time) {
    scheduler->advance_time(time);
    settle();
  }
  std::shared_ptr<client> ask(http_question what, const std::string& body) {
    const auto out = std::make_shared<client>("/v1/x", body);
    caf::anon_send(gateway, http_ask{out, what});
    settle();
    return out;
  }
  /// What pipelines were asked for.
  std::vector<core::serve_request> requests() const {
    std::vector<core::serve_request> out;
    for (const core::serve_message& m : sent)
      if (const auto* r = std::get_if<core::serve_request>(&m))
        out.push_back(*r);
    return out;
  }

  // context
  const core::peer_id& self() const override { return me; }
  caf::actor_system& system() override { return *system_; }
  runtime::device_queue& disk() override { return disk_; }
  runtime::device_queue& prompts() override { return prompts_; }
  runtime::store& blobs() override { return *store; }
  runtime::job_log& log() override { return log_; }
  std::filesystem::path data_dir() const override { return home.path; }
  void fetch_blob(const core::blob_digest& d, std::vector<core::peer_id>,
                  std::function<void(std::error_code)> done) override {
    if (!disk_full)
      store->away.erase(d);
    done(disk_full ? std::make_error_code(std::errc::no_space_on_device)
                   : std::error_code());
  }
  std::shared_ptr<const core::view> view() const override { return view_; }
  std::shared_ptr<const core::plan> plan() const override { return plan_; }
  using still_context::say;
  using still_context::send;
  void send(const core::peer_id&, core::serve_message m) override {
    sent.push_back(std::move(m));
  }

  bool disk_full = false; ///< for files that are not here when a model is seen
  test::folder home;
  std::unique_ptr<losing_store> store =
    std::make_unique<losing_store>(home.path / "blobs");
  caf::actor_system_config config;
  std::unique_ptr<caf::actor_system> system_;
  caf::scheduler::test_coordinator* scheduler = nullptr;
  caf::actor gateway;
  manual_queue disk_, prompts_;
  no_log log_;
  std::shared_ptr<const core::view> view_;
  std::shared_ptr<const core::plan> plan_;
  core::job_entry entry;
  core::job_header header;
  std::vector<core::serve_message> sent;
};

inline std::string body(const std::string& prompt) {
  return R"({"model":"tiny","stream":true,"max_tokens":9,"prompt":")" + prompt
         + "\"}";
}

inline std::string chat(const std::string& text) {
  return R"({"model":"tiny","messages":[{"role":"user","content":")" + text
         + "\"}]}";
}

} // namespace shoal::actors::gateways
