// runtime/model/decode/decoder.cpp -- a stage that computes token after token.
#include "runtime/model/decode/decoder.hpp"

#include "runtime/model/decode/block_cached.hpp"

#include <algorithm>
#include <numeric>

namespace shoal::model {

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

/// A step goes through the blocks in parts of decode_rows_max tokens.
class stage_decoder::append_pass final : public pass {
public:
  append_pass(stage_decoder& decoder, std::span<const token_id> ids,
              std::span<const float> hidden_in, std::span<float> hidden_out,
              std::span<float> logits_out)
    : decoder_(decoder), stage_(decoder.stage_), ids_(ids),
      hidden_in_(hidden_in), hidden_out_(hidden_out), logits_out_(logits_out),
      width_(stage_.config().hidden_size),
      vocabulary_(stage_.config().vocab_size),
      rows_(stage_.has_embedding() ? ids.size() : hidden_in.size() / width_) {
    SHOAL_ASSERT(rows_ > 0 && decoder.position_ + rows_ <= decoder.capacity_);
    SHOAL_ASSERT(stage_.has_embedding() || hidden_in.size() == rows_ * width_);
    SHOAL_ASSERT(stage_.has_head() || hidden_out.size() == rows_ * width_);
    SHOAL_ASSERT(!stage_.has_head() || logits_out.size() == vocabulary_
                 || logits_out.size() == rows_ * vocabulary_);
  }

  std::optional<exchange> advance() override {
    SHOAL_ASSERT(!done());
    if (!c_)
      begin_part();
    if (next_ == decoder_.keys_.size()) {
      end_part();
      return std::nullopt;
    }
    if (!block_)
      begin_block();
    const auto met = block_->advance();
    if (block_->done()) {
      block_.reset();
      ++next_;
    }
    return met;
  }

  bool done() const override { return first_ == rows_; }

private:
  void begin_part() {
    part_ = std::min(decode_rows_max, rows_ - first_);
    positions_.resize(part_);
    std::iota(positions_.begin(), positions_.end(),
              static_cast<std::int32_t>(decoder_.position_));
    const model_config& config = stage_.config();
    c_.emplace(block_context{stage_.device_, *stage_.pool_, config,
                             family_of(config), layers(stage_.device_, config),
                             stage_.rope_, 1, part_, positions_});
    x_TD_ = c_->take(width_);
    if (stage_.has_embedding())
      embed(*c_, stage_.units_.front(), ids_.subspan(first_, part_),
            x_TD_.matrix());
    else
      c_->device.copy(x_TD_.vector(), of_part(hidden_in_, width_));
    next_ = 0;
  }

  void begin_block() {
    const std::size_t capacity = decoder_.capacity_, width = decoder_.width_;
    block_ = begin_block_cached(
      *c_, stage_.units_[next_ + (stage_.has_embedding() ? 1 : 0)],
      x_TD_.matrix(), {decoder_.keys_[next_].data(), capacity, width},
      {decoder_.values_[next_].data(), capacity, width}, decoder_.position_);
  }

  void end_part() {
    decoder_.position_ += part_;
    if (stage_.has_head())
      write_logits();
    else
      c_->device.copy(of_part(hidden_out_, width_), x_TD_.vector());
    x_TD_.release();
    c_.reset();
    first_ += part_;
  }

  /// Of all rows, or of the newest one in the last part.
  void write_logits() {
    const bool all = logits_out_.size() == rows_ * vocabulary_;
    if (!all && first_ + part_ != rows_)
      return;
    const std::size_t count = all ? part_ : 1;
    float* const to = logits_out_.data() + (all ? first_ * vocabulary_ : 0);
    head_logits(*c_, stage_.units_.back(),
                x_TD_.matrix().slice_rows(part_ - count, part_),
                {to, count, vocabulary_});
  }

  template <class Value>
  std::span<Value> of_part(std::span<Value> all, std::size_t width) const {
    return all.subspan(first_ * width, part_ * width);
  }

  stage_decoder& decoder_;
  inference_stage& stage_;
  const std::span<const token_id> ids_;
  const std::span<const float> hidden_in_;
  const std::span<float> hidden_out_, logits_out_;
  const std::size_t width_, vocabulary_;
  const std::size_t rows_;
  std::size_t first_ = 0; ///< row of the part in progress, or of the next
  // Of the part in progress.
  std::size_t part_ = 0; ///< rows
  std::vector<std::int32_t> positions_;
  std::optional<block_context> c_; ///< empty between parts
  activation x_TD_;
  std::size_t next_ = 0; ///< block
  std::unique_ptr<pass> block_;
};

std::unique_ptr<pass>
stage_decoder::begin_append(std::span<const token_id> ids,
                            std::span<const float> hidden_in,
                            std::span<float> hidden_out,
                            std::span<float> logits_out) {
  return std::make_unique<append_pass>(*this, ids, hidden_in, hidden_out,
                                       logits_out);
}

} // namespace shoal::model
