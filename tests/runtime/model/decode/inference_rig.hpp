// tests/runtime/model/decode/inference_rig.hpp -- models that compute batches of
// rows, whole and in stages.
#pragma once

#include "runtime/model/decode/paged_cache.hpp"
#include "tests/runtime/model/fixture.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <optional>

namespace shoal::tests {

/// Some units in stages, which know no more of each other than hidden states. Each
/// has a cache.
class pipeline {
public:
  /// The stages begin with units 0 and `cuts`.
  pipeline(std::span<const model::inference_unit> units,
           std::vector<model::unit_index> cuts, kernels::backend& device,
           std::size_t pages, std::optional<model::kv_type> kv = {},
           std::size_t window_pages = 0) {
    cuts.insert(cuts.begin(), 0);
    cuts.push_back(static_cast<model::unit_index>(units.size()));
    for (std::size_t s = 0; s + 1 != cuts.size(); ++s) {
      stages_.push_back(std::make_unique<model::inference_stage>(
        std::vector(units.begin() + cuts[s], units.begin() + cuts[s + 1]),
        device));
      caches_.push_back(std::make_unique<model::paged_cache>(
        *stages_.back(), pages,
        kv.value_or(model::usual_kv_type(*stages_.back())), window_pages));
    }
  }

  /// The logits that the batch wants.
  std::vector<float>
  compute(const model::row_batch& batch, std::span<const model::token_id> ids) {
    const model::model_config& config = stages_.front()->config();
    std::vector<float> hidden, next, logits;
    for (std::size_t s = 0; s != stages_.size(); ++s) {
      const bool last = stages_[s]->has_head();
      next.assign(last ? 0 : batch.rows() * config.hidden_size, -1);
      logits.assign(last ? batch.logits() * config.vocab_size : 0, -1);
      caches_[s]->compute(batch, s == 0 ? ids : ids.first(0), hidden, next,
                          logits);
      hidden.swap(next);
    }
    return logits;
  }

  model::paged_cache& cache(std::size_t stage = 0) { return *caches_[stage]; }

private:
  std::vector<std::unique_ptr<model::inference_stage>> stages_;
  std::vector<std::unique_ptr<model::paged_cache>> caches_;
};

/// A model of a golden directory, in the types of its files or smaller.
struct inference_rig {
  explicit inference_rig(const std::filesystem::path& directory,
                         model::weight_choice choice = {}, unsigned threads = 1)
    : team(threads), device(kernels::make_cpu_backend(team)) {
    auto loaded = model::load_for_inference(directory, choice, *device);
    BOOST_REQUIRE_MESSAGE(loaded, why(loaded));
    config = loaded->config;
    units = loaded->units;
    stage = std::make_unique<model::inference_stage>(units, *device);
  }

  /// Logits of all tokens, computed in parts of `part`.
  std::vector<float>
  logits(std::span<const model::token_id> ids, std::size_t part,
         std::optional<model::kv_type> kv = {}) {
    return staged_logits(ids, part, {}, true, kv);
  }

  /// The same from stages that begin with units 0 and `cuts`. The logits of all
  /// tokens, or of the last of each part.
  std::vector<float>
  staged_logits(std::span<const model::token_id> ids, std::size_t part,
                std::vector<model::unit_index> cuts, bool all = true,
                std::optional<model::kv_type> kv = {}) {
    pipeline stages(units, std::move(cuts), *device,
                    core::pages_for(ids.size()), kv);
    std::vector<float> out;
    for (std::size_t t = 0; t < ids.size(); t += part) {
      const std::size_t rows = std::min(part, ids.size() - t);
      const auto logits = stages.compute(
        model::one_sequence(t, rows, all ? rows : 1), ids.subspan(t, rows));
      out.insert(out.end(), logits.begin(), logits.end());
    }
    return out;
  }

  kernels::thread_team team;
  std::unique_ptr<kernels::backend> device;
  model::model_config config;
  std::vector<model::inference_unit> units;
  std::unique_ptr<model::inference_stage> stage;
};

inline std::vector<model::token_id>
some_ids(const model::model_config& config, std::size_t count) {
  std::vector<model::token_id> ids(count);
  for (std::size_t i = 0; i != count; ++i)
    ids[i] =
      static_cast<model::token_id>((i * i + 3 * i + 1) % config.vocab_size);
  return ids;
}

/// A directory with a random model of config.
inline void save_random(const std::filesystem::path& to,
                        const model::model_config& config) {
  model_rig rig(config);
  const auto saved = model::save_directory(
    to, *rig.layout, std::span<const model::unit_state>(rig.units));
  BOOST_REQUIRE_MESSAGE(saved, why(saved));
}

/// Golden models, one of each family.
inline constexpr const char* golden_families[] = {
  "tiny_llama3", "tiny_mistral", "tiny_qwen2",     "tiny_qwen3", "tiny_gpt2",
  "tiny_gemma2", "tiny_mixtral", "tiny_qwen3_moe", "tiny_long"};

} // namespace shoal::tests
