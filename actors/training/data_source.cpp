// actors/training/data_source.cpp -- windows of text as microbatches.
#include "actors/training/data_source.hpp"

#include "actors/training/link_names.hpp"
#include "runtime/context.hpp"
#include "runtime/core/training/data_order.hpp"
#include "runtime/links/links.hpp"
#include "runtime/model/data/corpus.hpp"
#include "runtime/observe/timeline.hpp"
#include "runtime/observe/training_operations.hpp"

#include <caf/all.hpp>

#include <algorithm>

namespace shoal::actors {
namespace {

std::uint64_t windows(std::uint64_t tokens, std::int64_t seq_len) {
  return core::windows_in(tokens, std::uint64_t(seq_len));
}

class data_source_actor : public caf::event_based_actor {
public:
  data_source_actor(caf::actor_config& cfg, data_source_config config)
    : caf::event_based_actor(cfg), config_(std::move(config)),
      order_(std::uint64_t(run().seed),
             windows(config_.text->train_size(), run().seq_len),
             std::uint32_t(run().sequences_per_step()), config_.world->island) {
  }

  const char* name() const override { return "data_source"; }

  caf::behavior make_behavior() override {
    return {
      [this](const begin_step& m) { send_step(m.step); },
      [this](const begin_eval& m) { send_eval(m.step); },
    };
  }

private:
  const runtime::run_config& run() const { return config_.world->run; }

  void send_step(std::uint64_t step) {
    const auto& replicas = config_.plan->where.replicas;
    const std::uint32_t per_step = replicas.back().last_microbatch;
    const auto sequences = std::uint32_t(run().local_batch_size);
    for (std::uint32_t r = 0; r < replicas.size(); ++r)
      for (auto m = replicas[r].first_microbatch;
           m < replicas[r].last_microbatch; ++m) {
        std::vector<std::uint64_t> chosen;
        for (std::uint32_t b = 0; b < sequences; ++b)
          chosen.push_back(config_.world->node->operations(config_.world->id())
                             .sample(order_, step, m * sequences + b));
        send_microbatch(r, step * per_step + m, chosen, false);
      }
  }

  void send_eval(std::uint64_t step) {
    const auto batches = std::uint32_t(run().validation_steps);
    const auto sequences = std::uint32_t(run().local_batch_size);
    const std::uint64_t have =
      windows(config_.text->validation_size(), run().seq_len);
    const std::uint64_t wanted = std::uint64_t(batches) * sequences;
    for (std::uint32_t m = 0; m < batches; ++m) {
      std::vector<std::uint64_t> chosen;
      for (std::uint32_t b = 0; b < sequences; ++b) {
        // Spread over the whole split; always the same windows.
        const std::uint64_t i = std::uint64_t(m) * sequences + b;
        if (i < std::min(have, wanted))
          chosen.push_back(have <= wanted ? i : i * have / wanted);
      }
      send_microbatch(0, step * batches + m, chosen, true);
    }
  }

  /// Rows beyond `chosen` predict nothing.
  void send_microbatch(std::uint32_t replica, std::uint64_t sequence,
                       const std::vector<std::uint64_t>& chosen, bool eval) {
    const auto length = std::size_t(run().seq_len);
    const std::size_t bytes =
      config_.world->tokens_per_microbatch() * sizeof(model::token_id);
    buffer ids = config_.world->buffers.get(bytes);
    buffer targets = config_.world->buffers.get(bytes);
    std::ranges::fill(ids.as<model::token_id>(), 0);
    std::ranges::fill(targets.as<model::token_id>(), -1);
    std::vector<model::token_id> window(length + 1);
    for (std::size_t b = 0; b < chosen.size(); ++b) {
      if (eval)
        config_.text->copy_validation(chosen[b] * length, window);
      else
        config_.text->copy_train(chosen[b] * length, window);
      std::copy_n(window.begin(), length,
                  ids.as<model::token_id>().begin() + long(b * length));
      std::copy_n(window.begin() + 1, length,
                  targets.as<model::token_id>().begin() + long(b * length));
    }
    const auto& stages = config_.plan->where.replicas[replica].stages;
    auto pass = [&](std::uint32_t stage, link_kind kind, const buffer& what) {
      runtime::timeline& trace = config_.world->node->trace();
      trace.open(config_.world->job, "sending tokens",
                 {{"sequence", sequence}, {"stage", stage}});
      config_.world->node->links().send(
        stages[stage].lead().peer,
        make_tag(config_.plan->digest, kind, replica, stage, sequence),
        what.shared(), [&trace, job = config_.world->job](std::error_code) {
          trace.close(job, "sending tokens");
        });
    };
    pass(0, eval ? link_kind::eval_tokens : link_kind::tokens, ids);
    pass(std::uint32_t(stages.size()) - 1,
         eval ? link_kind::eval_targets : link_kind::targets, targets);
  }

  data_source_config config_;
  core::data_order order_;
};

} // namespace

model::status
check_corpus(const model::corpus& text, const runtime::run_config& run) {
  if (windows(text.train_size(), run.seq_len) == 0)
    return model::failure{"the training text has "
                          + std::to_string(text.train_size())
                          + " tokens, fewer than training.seq_len + 1 = "
                          + std::to_string(run.seq_len + 1)};
  return model::done{};
}

caf::actor
spawn_data_source(caf::actor_system& system, data_source_config config) {
  return system.spawn<data_source_actor>(std::move(config));
}

} // namespace shoal::actors
