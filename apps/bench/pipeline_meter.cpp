// apps/bench/pipeline_meter.cpp -- runs a small model under one schedule after
// another.
#include "apps/bench/pipeline_meter.hpp"

#include "actors/supervisor.hpp"
#include "apps/remote/local_nodes.hpp"
#include "apps/submit/run_file.hpp"
#include "runtime/control/client.hpp"
#include "runtime/core/measure/median.hpp"
#include "runtime/core/view.hpp"
#include "runtime/model/data/corpus.hpp"
#include "runtime/node/node.hpp"

#include <map>
#include <random>
#include <stdexcept>

namespace shoal::apps {

namespace {

constexpr int steps = 16;
constexpr int warm_up = 4; ///< steps that are not counted
constexpr int microbatches = 4;

runtime::run_config small_run(int stages, const std::string& schedule) {
  runtime::run_config run;
  run.model.hidden_size = 384;
  run.model.intermediate_size = 1024;
  run.model.vocab_size = 256;
  run.model.num_hidden_layers = 6;
  run.model.num_attention_heads = 6;
  run.model.num_key_value_heads = 6;
  run.model.max_position_embeddings = 128;
  run.seq_len = 128;
  run.local_batch_size = 2;
  run.global_batch_size = run.local_batch_size * microbatches;
  run.steps = steps;
  run.replicate_degree = 1;
  run.pipeline_degree = stages;
  run.schedule = schedule;
  run.validation_enable = false;
  run.checkpoint_enable = false;
  return run;
}

/// Unpredictable bytes: their content does not matter here.
std::vector<std::byte> some_text() {
  model::corpus text;
  std::mt19937 random(1);
  text.train_u8.resize(std::size_t{1} << 20);
  for (std::uint8_t& token : text.train_u8)
    token = std::uint8_t(random());
  text.files.push_back({"random", false, 0, text.train_u8.size()});
  return model::serialise(text);
}

struct samples {
  std::vector<double> step, computing, bubble;
};

/// Keeps the times of a run's steps after the warm-up.
class sampler final : public runtime::follow_handler {
public:
  sampler(double tokens, samples& found) : tokens_(tokens), found_(found) {}
  bool on(const runtime::job_event& e) override {
    if (e.kind == runtime::job_event_kind::done)
      ended_ = e.text;
    if (e.kind == runtime::job_event_kind::step && e.step > warm_up
        && e.tokens_per_s > 0) {
      found_.step.push_back(tokens_ / e.tokens_per_s);
      found_.computing.push_back(e.computing_s);
      found_.bubble.push_back(e.bubble);
    }
    return true;
  }
  const std::string& ended() const { return ended_; }

private:
  double tokens_; ///< of one step
  samples& found_;
  std::string ended_; ///< the job's state
};

/// One run on the shoal of `client`.
void run_pipeline(runtime::client& client, const runtime::run_config& run,
                  const std::vector<std::byte>& text, samples& found) {
  auto failed = [&](const std::string& what) {
    throw std::runtime_error("the run of the benchmark: " + what);
  };
  core::job_entry entry = make_entry(run, "bench");
  core::job_id job = 0;
  if (client.put_blob(text, entry.data))
    failed(client.text());
  entry.data_bytes = text.size();
  if (client.submit(entry, job))
    failed(client.text());
  sampler watcher(double(run.global_batch_size * run.seq_len), found);
  if (client.follow(job, watcher))
    failed(client.text());
  if (watcher.ended() != "done" || found.step.empty())
    failed("ended as " + watcher.ended());
}

/// In a node's process: tells when all nodes are in its view.
struct meeting final : runtime::node_observer {
  void agreed(const core::view& v, bool member) override {
    if (member && v.members.size() == wanted)
      say_so("together");
  }
  std::size_t wanted = 0;
  local_nodes::sayer say_so;
};

} // namespace

double pipeline_times::over_ideal() const {
  return (100 - ideal_bubble) / (100 - schedules.front().bubble);
}

pipeline_times measure_pipeline(int stages, int runs) {
  meeting met;
  met.wanted = std::size_t(stages);
  local_nodes all(stages,
                  [&met](runtime::node_config& c, runtime::role_table& roles,
                         const local_nodes::sayer& say) {
                    actors::add_builtin(roles);
                    met.say_so = say;
                    c.observer = &met;
                  });
  while (all.line(0).first != "together") {
  }
  runtime::client_config c;
  c.data_dir = all.data_dir(0);
  runtime::client client(c);
  if (client.connect())
    throw std::runtime_error(client.text());
  const std::vector<std::byte> text = some_text();
  const char* const schedules[] = {"1f1b", "zero_bubble"};
  std::map<std::string, samples> found;
  for (int i = 0; i < runs; ++i)
    for (const char* schedule : schedules)
      run_pipeline(client, small_run(stages, schedule), text, found[schedule]);
  pipeline_times out;
  out.stages = stages;
  out.microbatches = microbatches;
  out.ideal_bubble = 100.0 * (stages - 1) / (microbatches + stages - 1);
  for (const char* schedule : schedules) {
    const samples& s = found[schedule];
    out.schedules.push_back({schedule, core::median(s.step),
                             core::median(s.computing),
                             core::median(s.bubble)});
  }
  return out;
}

} // namespace shoal::apps
