// runtime/model/decode/decoder.cpp -- a stage that computes token after token.
#include "runtime/model/decode/decoder.hpp"

#include "runtime/model/decode/block_cached.hpp"

#include <algorithm>
#include <numeric>

namespace shoal::model {

using kernels::matrix_view;

stage_decoder::stage_decoder(inference_stage& stage, std::size_t positions)
  : stage_(stage), capacity_(positions) {
  const model_config& config = stage.config();
  SHOAL_ASSERT(positions >= 1 && positions <= config.max_position_embeddings);
  width_ = config.num_key_value_heads * config.head_dim;
  for (const inference_unit& unit : stage.units_) {
    if (unit.unit() == 0 || unit.unit() == stage.layout().head_unit())
      continue;
    keys_.emplace_back(positions * width_);
    values_.emplace_back(positions * width_);
  }
  stage_.need_positions(positions);
}

void stage_decoder::append(std::span<const token_id> ids,
                           std::span<const float> hidden_in,
                           std::span<float> hidden_out,
                           std::span<float> logits_out) {
  const std::size_t d = stage_.config().hidden_size;
  const std::size_t v = stage_.config().vocab_size;
  const std::size_t rows =
    stage_.has_embedding() ? ids.size() : hidden_in.size() / d;
  SHOAL_ASSERT(rows > 0 && position_ + rows <= capacity_);
  SHOAL_ASSERT(stage_.has_embedding() || hidden_in.size() == rows * d);
  SHOAL_ASSERT(stage_.has_head() || hidden_out.size() == rows * d);
  SHOAL_ASSERT(!stage_.has_head() || logits_out.size() == v
               || logits_out.size() == rows * v);
  const bool all = logits_out.size() == rows * v;
  for (std::size_t first = 0; first < rows; first += decode_rows_max) {
    const std::size_t part = std::min(decode_rows_max, rows - first);
    const auto of = [&](auto values, std::size_t width) {
      return values.empty() ? values
                            : values.subspan(first * width, part * width);
    };
    auto logits = all ? of(logits_out, v) : logits_out;
    if (!all && first + part != rows)
      logits = {};
    append_part(of(ids, 1), of(hidden_in, d), of(hidden_out, d), logits);
  }
}

void stage_decoder::append_part(std::span<const token_id> ids,
                                std::span<const float> hidden_in,
                                std::span<float> hidden_out,
                                std::span<float> logits_out) {
  const model_config& config = stage_.config();
  const std::size_t d = config.hidden_size;
  const std::size_t rows =
    stage_.has_embedding() ? ids.size() : hidden_in.size() / d;
  std::vector<std::int32_t> positions(rows);
  std::iota(positions.begin(), positions.end(),
            static_cast<std::int32_t>(position_));
  const block_context c{stage_.device_,
                        stage_.reducer_,
                        *stage_.pool_,
                        config,
                        family_of(config),
                        layers(stage_.device_, config),
                        stage_.rope_,
                        1,
                        rows,
                        positions};
  activation x_TD = c.take(d);
  if (stage_.has_embedding())
    embed(c, stage_.units_.front(), ids, x_TD.matrix());
  else
    c.device.copy(x_TD.vector(), hidden_in);
  std::size_t block = 0;
  for (const inference_unit& unit : stage_.units_) {
    if (unit.unit() == 0 || unit.unit() == stage_.layout().head_unit())
      continue;
    block_cached(c, unit, x_TD.matrix(),
                 {keys_[block].data(), capacity_, width_},
                 {values_[block].data(), capacity_, width_}, position_);
    ++block;
  }
  position_ += rows;
  if (!stage_.has_head()) {
    c.device.copy(hidden_out, x_TD.vector());
    return;
  }
  const std::size_t told = logits_out.size() / config.vocab_size;
  if (told == 0)
    return;
  const auto newest = x_TD.matrix().slice_rows(rows - told, rows);
  head_logits(c, stage_.units_.back(), newest,
              {logits_out.data(), told, config.vocab_size});
}

} // namespace shoal::model
