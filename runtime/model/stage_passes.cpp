// runtime/model/stage_passes.cpp -- forward, B and W of a stage: the passes of
// its units, one after another.
#include "runtime/model/microbatch_state.hpp"
#include "runtime/model/stage_model.hpp"

namespace shoal::model {

using phase = microbatch_state::phase;

class stage_model::forward_pass final : public pass {
public:
  forward_pass(stage_model& stage, const forward_work& work,
               forward_result& result)
    : stage_(stage), work_(work), result_(result), state_(state_of(work)),
      c_(stage.context(work.sequences, work.tokens, state_->positions)) {
    SHOAL_ASSERT(!stage.kept_.contains(work.microbatch));
    stage.need_positions(work.tokens);
    result = {};
  }

  std::optional<exchange> advance() override {
    SHOAL_ASSERT(!done());
    if (next_ == 0)
      take_input();
    unit_state& unit = *stage_.units_[next_];
    std::optional<exchange> met;
    if (stage_.is_block(unit.unit())) {
      if (!block_)
        begin_block(unit);
      met = block_->advance();
      if (!block_->done())
        return met;
      end_block();
    } else if (unit.unit() != 0) {
      result_ = head_forward(c_, unit, std::move(x_TD_), work_, state_->head);
    }
    if (++next_ == stage_.units_.size())
      finish();
    return met;
  }

  bool done() const override { return next_ == stage_.units_.size(); }

private:
  static std::unique_ptr<microbatch_state> state_of(const forward_work& work) {
    auto state = std::make_unique<microbatch_state>();
    SHOAL_ASSERT(work.sequences > 0 && work.tokens > 0);
    state->sequences = work.sequences;
    state->tokens = work.tokens;
    state->loss_scale = work.loss_scale;
    state->positions.resize(work.sequences * work.tokens);
    for (std::size_t i = 0; i < state->positions.size(); ++i)
      state->positions[i] = static_cast<std::int32_t>(i % work.tokens);
    return state;
  }

  /// Embeds the ids, or takes the hidden states.
  void take_input() {
    if (!x_TD_.empty() || block_)
      return; // the first block is in progress
    x_TD_ = c_.take(c_.config.hidden_size);
    if (stage_.has_embedding()) {
      SHOAL_ASSERT(work_.ids.size() == c_.rows());
      state_->ids.assign(work_.ids.begin(), work_.ids.end());
      embed(c_, *stage_.units_.front(), work_.ids, x_TD_.matrix());
    } else {
      SHOAL_ASSERT(work_.hidden_in.size() == x_TD_.vector().size);
      c_.device.copy(x_TD_.vector(), work_.hidden_in);
    }
  }

  void begin_block(const unit_state& unit) {
    a_.x_TD = std::move(x_TD_);
    x_TD_ = c_.take(c_.config.hidden_size);
    block_ = begin_block_forward(c_, unit, a_, x_TD_.matrix());
  }

  void end_block() {
    block_.reset();
    if (work_.keep)
      state_->blocks.push_back(std::move(a_));
    a_ = {};
  }

  void finish() {
    if (!stage_.has_head()) {
      SHOAL_ASSERT(work_.hidden_out.size() == x_TD_.vector().size);
      c_.device.copy(work_.hidden_out, x_TD_.vector());
      x_TD_.release();
    }
    if (work_.keep) {
      const bool added =
        stage_.kept_.emplace(work_.microbatch, std::move(state_)).second;
      SHOAL_ASSERT(added);
    }
  }

  stage_model& stage_;
  const forward_work work_;
  forward_result& result_;
  std::unique_ptr<microbatch_state> state_; ///< until it is kept
  const block_context c_;
  std::size_t next_ = 0; ///< of the stage's units
  activation x_TD_;      ///< result of the last unit, or of the block
  block_activations a_;  ///< of the block in progress
  std::unique_ptr<pass> block_;
};

class stage_model::input_gradient_pass final : public pass {
public:
  input_gradient_pass(stage_model& stage, microbatch_state& state,
                      std::span<const float> d_hidden_out,
                      std::span<float> d_hidden_in)
    : stage_(stage), state_(state), d_hidden_out_(d_hidden_out),
      d_hidden_in_(d_hidden_in), c_(stage.backward_context(state)),
      left_(stage.units_.size()), block_index_(state.blocks.size()) {
    SHOAL_ASSERT(state.done == phase::forward);
    SHOAL_ASSERT(stage.has_head() == d_hidden_out.empty());
    SHOAL_ASSERT(stage.has_embedding() == d_hidden_in.empty());
    state.done = phase::in_pass;
    if (stage.has_embedding() && stage.has_head()) {
      left_ = 0;
      state.done = phase::input_gradient;
    }
  }

  std::optional<exchange> advance() override {
    SHOAL_ASSERT(!done());
    if (left_ == stage_.units_.size() && !block_)
      take_input();
    unit_state& unit = *stage_.units_[left_ - 1];
    std::optional<exchange> met;
    if (stage_.is_block(unit.unit())) {
      if (!block_)
        begin_block(unit);
      met = block_->advance();
      if (!block_->done())
        return met;
      block_.reset();
    } else if (unit.unit() != 0) {
      head_input_gradient(c_, unit, state_.head, d_TD_.matrix());
    }
    if (--left_ == 0)
      finish();
    return met;
  }

  bool done() const override { return left_ == 0; }

private:
  void take_input() {
    d_TD_ = c_.take(c_.config.hidden_size);
    if (stage_.has_head())
      return; // the head's unit computes it
    SHOAL_ASSERT(d_hidden_out_.size() == d_TD_.vector().size);
    c_.device.copy(d_TD_.vector(), d_hidden_out_);
  }

  void begin_block(const unit_state& unit) {
    block_activations& a = state_.blocks[--block_index_];
    a.dy_TD = std::move(d_TD_);
    d_TD_ = c_.take(c_.config.hidden_size);
    block_ = begin_block_input_gradient(c_, unit, a, d_TD_.matrix());
  }

  void finish() {
    if (stage_.has_embedding()) {
      state_.d_embedding_TD = std::move(d_TD_);
    } else {
      SHOAL_ASSERT(d_hidden_in_.size() == d_TD_.vector().size);
      c_.device.copy(d_hidden_in_, d_TD_.vector());
      d_TD_.release();
    }
    state_.done = phase::input_gradient;
  }

  stage_model& stage_;
  microbatch_state& state_;
  const std::span<const float> d_hidden_out_;
  const std::span<float> d_hidden_in_;
  const block_context c_;
  std::size_t left_;        ///< units; the last of them is next
  std::size_t block_index_; ///< of the block in progress, or after the next
  activation d_TD_;         ///< gradient of the last result, or of the block's
  std::unique_ptr<pass> block_;
};

class stage_model::weight_gradient_pass final : public pass {
public:
  weight_gradient_pass(stage_model& stage, microbatch_id microbatch,
                       microbatch_state& state, unit_callback after)
    : stage_(stage), microbatch_(microbatch), state_(state),
      after_(std::move(after)),
      whole_(stage.has_embedding() && stage.has_head()),
      c_(whole_
           ? stage.backward_context(state)
           : stage.context(state.sequences, state.tokens, state.positions)),
      left_(stage.units_.size()) {
    SHOAL_ASSERT(state.done == phase::input_gradient);
    state.done = phase::in_pass;
    for (const unit_state* unit : stage.units_)
      SHOAL_ASSERT(unit->trains());
  }

  std::optional<exchange> advance() override {
    SHOAL_ASSERT(!done());
    unit_state& unit = *stage_.units_[left_ - 1];
    std::optional<exchange> met;
    if (stage_.is_block(unit.unit())) {
      if (!block_)
        begin_block(unit);
      met = block_->advance();
      if (!block_->done())
        return met;
      if (!adds_) {
        begin_to_add(unit);
        return met;
      }
      block_.reset();
      state_.blocks.pop_back();
    } else if (unit.unit() != 0) {
      head(unit);
    } else {
      embed_weight_gradient(c_, unit, state_.ids,
                            (whole_ ? d_TD_ : state_.d_embedding_TD).matrix());
    }
    if (after_)
      after_(unit.unit());
    if (--left_ == 0)
      finish();
    return met;
  }

  bool done() const override { return left_ == 0; }

private:
  void head(unit_state& unit) {
    if (whole_) {
      d_TD_ = c_.take(c_.config.hidden_size);
      head_input_gradient(c_, unit, state_.head, d_TD_.matrix());
    }
    head_weight_gradient(c_, unit, state_.head);
    if (whole_)
      state_.head = {};
  }

  /// W; or B first.
  void begin_block(unit_state& unit) {
    if (!whole_)
      return begin_to_add(unit);
    block_activations& a = state_.blocks.back();
    a.dy_TD = std::move(d_TD_);
    d_TD_ = c_.take(c_.config.hidden_size);
    block_ = begin_block_input_gradient(c_, unit, a, d_TD_.matrix());
    adds_ = false;
  }

  void begin_to_add(unit_state& unit) {
    block_ = begin_block_weight_gradient(c_, unit, state_.blocks.back());
    adds_ = true;
  }

  void finish() {
    d_TD_.release();
    stage_.kept_.erase(microbatch_);
  }

  stage_model& stage_;
  const microbatch_id microbatch_;
  microbatch_state& state_; ///< gone when the pass is done
  const unit_callback after_;
  const bool whole_; ///< the stage is the whole model: W runs B, too
  const block_context c_;
  std::size_t left_; ///< units; the last of them is next
  activation d_TD_;  ///< if whole: gradient of the last result, or of the
                     ///< block's
  std::unique_ptr<pass> block_;
  bool adds_ = false; ///< the block in progress is at its W
};

std::unique_ptr<pass>
stage_model::begin_forward(const forward_work& work, forward_result& result) {
  return std::make_unique<forward_pass>(*this, work, result);
}

std::unique_ptr<pass>
stage_model::begin_input_gradient(microbatch_id microbatch,
                                  std::span<const float> d_hidden_out,
                                  std::span<float> d_hidden_in) {
  const auto found = kept_.find(microbatch);
  SHOAL_ASSERT(found != kept_.end());
  return std::make_unique<input_gradient_pass>(*this, *found->second,
                                               d_hidden_out, d_hidden_in);
}

std::unique_ptr<pass>
stage_model::begin_weight_gradient(microbatch_id microbatch,
                                   unit_callback after) {
  const auto found = kept_.find(microbatch);
  SHOAL_ASSERT(found != kept_.end());
  return std::make_unique<weight_gradient_pass>(
    *this, microbatch, *found->second, std::move(after));
}

} // namespace shoal::model
