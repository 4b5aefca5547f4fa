// runtime/model/decode/evaluate.cpp -- the mean loss of a model over given
// text.
#include "runtime/model/decode/evaluate.hpp"

#include "kernels/backend.hpp"
#include "runtime/model/decode/paged_cache.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace shoal::model {

double
bits_per_byte(const evaluation& of, std::uint64_t tokens, std::uint64_t bytes) {
  if (bytes == 0)
    return std::numeric_limits<double>::quiet_NaN();
  return of.loss / std::numbers::ln2 * double(tokens) / double(bytes);
}

void evaluation_sum::add(double loss, std::uint64_t predicted) {
  loss_sum += loss;
  tokens += predicted;
}

evaluation evaluation_sum::mean() const {
  if (tokens == 0)
    return {};
  const double loss = loss_sum / static_cast<double>(tokens);
  return {loss, std::exp(loss), tokens};
}

namespace {

/// Calls body(inputs, targets) for each window of a sequence.
template <class Body>
void each_window(const model_config& config, std::span<const token_id> sequence,
                 std::size_t window, const Body& body) {
  const std::size_t positions = config.max_position_embeddings;
  window = window == 0 ? positions : std::min(window, positions);
  for (std::size_t first = 0; first < sequence.size(); first += window) {
    const std::size_t size = std::min(window, sequence.size() - first);
    if (size >= 2)
      body(sequence.subspan(first, size - 1),
           sequence.subspan(first + 1, size - 1));
  }
}

/// Reports how many tokens of all sequences are done.
class progress_of {
public:
  progress_of(const watch& told, std::span<const std::vector<token_id>> all)
    : watch_(told) {
    for (const auto& sequence : all)
      all_ += sequence.size();
  }
  void add(std::size_t tokens) {
    done_ += tokens;
    static_cast<void>(tell(watch_, "evaluating", done_, all_));
  }

private:
  const watch& watch_;
  std::uint64_t done_ = 0;
  std::uint64_t all_ = 0;
};

/// Rows of logits computed at once.
constexpr std::size_t logits_rows_max = 128;

} // namespace

namespace {

/// One window, computed as in training.
void add_window(stage_model& model, std::span<const token_id> ids,
                std::span<const token_id> targets, evaluation_sum& sum) {
  forward_work work;
  work.microbatch = ~microbatch_id(0);
  work.tokens = ids.size();
  work.ids = ids;
  work.targets = targets;
  work.keep = false;
  const forward_result result = model.forward(work);
  sum.add(result.loss_sum, result.predicted);
}

} // namespace

void evaluate(stage_model& model, std::span<const token_id> sequence,
              evaluation_sum& sum, std::size_t window) {
  SHOAL_ASSERT(model.has_embedding() && model.has_head());
  each_window(model.config(), sequence, window, [&](auto ids, auto targets) {
    add_window(model, ids, targets, sum);
  });
}

evaluation
evaluate(stage_model& model, std::span<const std::vector<token_id>> all,
         std::size_t window, const watch& told) {
  SHOAL_ASSERT(model.has_embedding() && model.has_head());
  evaluation_sum sum;
  progress_of progress(told, all);
  for (const auto& sequence : all)
    each_window(model.config(), sequence, window, [&](auto ids, auto targets) {
      add_window(model, ids, targets, sum);
      progress.add(ids.size() + 1);
    });
  return sum.mean();
}

evaluation
evaluate(inference_stage& model, std::span<const std::vector<token_id>> all,
         std::size_t window, const watch& told) {
  SHOAL_ASSERT(model.has_embedding() && model.has_head());
  const model_config& config = model.config();
  std::size_t longest = 1;
  for (const auto& sequence : all)
    each_window(config, sequence, window, [&](auto ids, auto) {
      longest = std::max(longest, ids.size());
    });
  paged_cache cache(model, core::pages_for(longest), usual_kv_type(model));
  aligned_buffer logits(std::min(longest, logits_rows_max) * config.vocab_size);
  std::vector<float> losses(logits_rows_max);
  evaluation_sum sum;
  progress_of progress(told, all);
  const auto add = [&](std::span<const token_id> ids,
                       std::span<const token_id> targets) {
    double loss_sum = 0;
    for (std::size_t t = 0; t < ids.size(); t += logits_rows_max) {
      const std::size_t rows = std::min(logits_rows_max, ids.size() - t);
      const auto of_rows = logits.span().first(rows * config.vocab_size);
      cache.compute(one_sequence(t, rows, rows), ids.subspan(t, rows), {}, {},
                    of_rows);
      model.device().cross_entropy({losses.data(), rows}, {},
                                   {of_rows.data(), rows, config.vocab_size},
                                   targets.subspan(t, rows), 1);
      for (std::size_t r = 0; r < rows; ++r)
        loss_sum += losses[r];
    }
    sum.add(loss_sum, ids.size());
    progress.add(ids.size() + 1);
  };
  for (const auto& sequence : all)
    each_window(config, sequence, window, add);
  return sum.mean();
}

} // namespace shoal::model
