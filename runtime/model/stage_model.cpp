// runtime/model/stage_model.cpp -- consecutive units computing on one device.
#include "runtime/model/stage_model.hpp"

#include "runtime/model/microbatch_state.hpp"

#include <algorithm>

namespace shoal::model {

stage_model::stage_model(std::vector<unit_state*> units,
                         kernels::backend& device, kernels::factor_type factors,
                         const logits_budget& logits)
  : units_(std::move(units)), device_(device), factors_(factors),
    logits_(logits), pool_(std::make_unique<activation_pool>()) {
  SHOAL_ASSERT(!units_.empty());
  for (std::size_t i = 0; i < units_.size(); ++i) {
    SHOAL_ASSERT(units_[i] != nullptr
                 && units_[i]->unit() == units_[0]->unit() + i
                 && &units_[i]->layout() == &units_[0]->layout());
  }
}

stage_model::~stage_model() = default;

unit_index stage_model::first_unit() const noexcept {
  return units_.front()->unit();
}

unit_index stage_model::last_unit() const noexcept {
  return units_.back()->unit() + 1;
}

bool stage_model::has_head() const noexcept {
  return units_.back()->unit() == layout().head_unit();
}

const unit_layout& stage_model::layout() const noexcept {
  return units_.front()->layout();
}

unit_state& stage_model::unit(unit_index unit) noexcept {
  SHOAL_ASSERT(unit >= first_unit() && unit < last_unit());
  return *units_[unit - first_unit()];
}

void stage_model::need_positions(std::size_t count) {
  SHOAL_ASSERT(count <= config().max_position_embeddings);
  if (count <= rope_.positions || !family_of(config()).rotary)
    return;
  // Rows of the table do not depend on its length, so it may grow by doubling.
  const std::size_t size = std::min<std::size_t>(
    config().max_position_embeddings, std::max(count, 2 * rope_.positions));
  rope_ = kernels::make_rope_table(config().head_dim, size, config().rope_theta,
                                   config().rope_scaling);
}

block_context stage_model::context(std::size_t sequences, std::size_t tokens,
                                   std::span<const std::int32_t> positions) {
  return {device_,
          *pool_,
          config(),
          family_of(config()),
          layers(device_, config(), factors_),
          rope_,
          sequences,
          tokens,
          positions,
          0,
          logits_};
}

block_context stage_model::backward_context(const microbatch_state& state) {
  auto c = context(state.sequences, state.tokens, state.positions);
  // The mean over blocks of the balance counts as a loss of each token.
  c.balance_scale = static_cast<float>(
    config().router_aux_loss_coef * static_cast<double>(state.loss_scale)
    * static_cast<double>(c.rows())
    / static_cast<double>(config().num_hidden_layers));
  return c;
}

forward_result stage_model::forward(const forward_work& work) {
  forward_result result;
  run(*begin_forward(work, result));
  return result;
}

void stage_model::input_gradient(microbatch_id microbatch,
                                 std::span<const float> d_hidden_out,
                                 std::span<float> d_hidden_in) {
  run(*begin_input_gradient(microbatch, d_hidden_out, d_hidden_in));
}

void stage_model::weight_gradient(microbatch_id microbatch,
                                  const unit_callback& after) {
  run(*begin_weight_gradient(microbatch, after));
}

void stage_model::reset() {
  kept_.clear();
  pool_->trim();
}

std::size_t stage_model::activation_bytes() const noexcept {
  return pool_->bytes();
}

bool valid_ids(const model_config& config, std::span<const token_id> ids,
               bool allow_ignored) {
  return std::ranges::all_of(ids, [&](token_id id) {
    return (id >= 0 && static_cast<std::uint64_t>(id) < config.vocab_size)
           || (allow_ignored && id == -1);
  });
}

} // namespace shoal::model
