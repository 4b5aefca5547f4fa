// runtime/model/decoder.cpp -- a stage that computes token after token.
#include "runtime/model/decoder.hpp"

#include "runtime/model/block.hpp"
#include "runtime/model/stage_parts.hpp"

#include <algorithm>
#include <numeric>

namespace shoal::model {

using kernels::matrix_view;

stage_decoder::stage_decoder(stage_model& stage, std::size_t positions)
  : stage_(stage), capacity_(positions) {
  const model_config& config = stage.config();
  SHOAL_ASSERT(positions >= 1 && positions <= config.max_position_embeddings);
  width_ = config.num_key_value_heads * config.head_dim;
  for (const unit_state* unit : stage.units_) {
    if (unit->unit() == 0 || unit->unit() == stage.layout().head_unit())
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
  const model_config& config = stage_.config();
  const std::size_t d = config.hidden_size;
  const std::size_t rows =
    stage_.has_embedding() ? ids.size() : hidden_in.size() / d;
  SHOAL_ASSERT(rows > 0 && position_ + rows <= capacity_);
  std::vector<std::int32_t> positions(rows);
  std::iota(positions.begin(), positions.end(),
            static_cast<std::int32_t>(position_));
  const auto c = stage_.context(1, rows, positions);

  activation x_TD = c.take(d);
  if (stage_.has_embedding()) {
    c.device.embedding(x_TD.matrix(), matrix_of(*stage_.units_.front(), 0),
                       ids);
  } else {
    SHOAL_ASSERT(hidden_in.size() == rows * d);
    std::ranges::copy(hidden_in, x_TD.matrix().data);
  }
  std::size_t block = 0;
  for (const unit_state* unit : stage_.units_) {
    if (unit->unit() == 0 || unit->unit() == stage_.layout().head_unit())
      continue;
    block_cached(c, *unit, x_TD.matrix(),
                 {keys_[block].data(), capacity_, width_},
                 {values_[block].data(), capacity_, width_}, position_);
    ++block;
  }
  position_ += rows;
  if (!stage_.has_head()) {
    SHOAL_ASSERT(hidden_out.size() == rows * d);
    std::copy_n(x_TD.matrix().data, rows * d, hidden_out.data());
    return;
  }
  SHOAL_ASSERT(logits_out.size() == config.vocab_size);
  const auto newest = x_TD.matrix().slice_rows(rows - 1, rows);
  const unit_state& head = *stage_.units_.back();
  c.device.rmsnorm(newest, {}, newest, {head.parameters().data(), d},
                   static_cast<float>(config.rms_norm_eps));
  c.device.matmul({logits_out.data(), 1, logits_out.size()}, newest,
                  matrix_of(head, 1));
}

} // namespace shoal::model
