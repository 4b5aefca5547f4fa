// runtime/model/stage_model.cpp -- consecutive units computing on one device.
#include "runtime/model/stage_model.hpp"

#include "runtime/model/activation_pool.hpp"
#include "runtime/model/block.hpp"
#include "runtime/model/stage_parts.hpp"

#include <algorithm>

namespace shoal::model {

using kernels::matrix_view;

namespace {

enum class phase : std::uint8_t { forward, input_gradient };

} // namespace

/// In a stage that is the whole model, B computes nothing: nobody waits for its
/// input gradient. W then runs B and W of each unit in turn, so that the values
/// between them are held for one unit only.
struct microbatch_state {
  phase done = phase::forward;
  std::size_t sequences = 0;
  std::size_t tokens = 0;
  float loss_scale = 0;
  std::vector<std::int32_t> positions; ///< B*T
  std::vector<token_id> ids;           ///< first stage only
  activation d_embedding_TD;           ///< first stage only, from B on
  std::vector<block_activations> blocks;
  head_activations head;
};

stage_model::stage_model(std::vector<unit_state*> units,
                         kernels::backend& device, communicator* reducer,
                         kernels::factor_type factors,
                         const logits_budget& logits)
  : units_(std::move(units)), device_(device),
    reducer_(reducer != nullptr ? *reducer : no_reducer_), factors_(factors),
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
          reducer_,
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

forward_result stage_model::forward(const forward_work& work) {
  const std::size_t rows = work.sequences * work.tokens;
  const std::size_t d = config().hidden_size;
  SHOAL_ASSERT(rows > 0 && !kept_.contains(work.microbatch));
  need_positions(work.tokens);
  auto state = std::make_unique<microbatch_state>();
  state->sequences = work.sequences;
  state->tokens = work.tokens;
  state->loss_scale = work.loss_scale;
  state->positions.resize(rows);
  for (std::size_t i = 0; i < rows; ++i)
    state->positions[i] = static_cast<std::int32_t>(i % work.tokens);
  const auto c = context(work.sequences, work.tokens, state->positions);

  activation x_TD = c.take(d);
  if (has_embedding()) {
    SHOAL_ASSERT(work.ids.size() == rows);
    state->ids.assign(work.ids.begin(), work.ids.end());
    embed(c, *units_.front(), work.ids, x_TD.matrix());
  } else {
    SHOAL_ASSERT(work.hidden_in.size() == rows * d);
    c.device.copy(x_TD.vector(), work.hidden_in);
  }
  for (unit_state* unit : units_) {
    if (unit->unit() == 0 || unit->unit() == layout().head_unit())
      continue;
    block_activations a;
    a.x_TD = std::move(x_TD);
    x_TD = c.take(d);
    block_forward(c, *unit, a, x_TD.matrix());
    if (work.keep)
      state->blocks.push_back(std::move(a));
  }
  forward_result result;
  if (has_head()) {
    result =
      head_forward(c, *units_.back(), std::move(x_TD), work, state->head);
  } else {
    SHOAL_ASSERT(work.hidden_out.size() == rows * d);
    c.device.copy(work.hidden_out, x_TD.vector());
  }
  if (work.keep)
    kept_.emplace(work.microbatch, std::move(state));
  return result;
}

void stage_model::input_gradient(microbatch_id microbatch,
                                 std::span<const float> d_hidden_out,
                                 std::span<float> d_hidden_in) {
  auto found = kept_.find(microbatch);
  SHOAL_ASSERT(found != kept_.end() && found->second->done == phase::forward);
  microbatch_state& state = *found->second;
  state.done = phase::input_gradient;
  if (has_embedding() && has_head()) {
    SHOAL_ASSERT(d_hidden_out.empty() && d_hidden_in.empty());
    return;
  }
  const auto c = backward_context(state);
  const std::size_t size = c.rows() * config().hidden_size;
  activation d_TD = c.take(config().hidden_size);
  if (has_head()) {
    SHOAL_ASSERT(d_hidden_out.empty());
    head_input_gradient(c, *units_.back(), state.head, d_TD.matrix());
  } else {
    SHOAL_ASSERT(d_hidden_out.size() == size);
    c.device.copy(d_TD.vector(), d_hidden_out);
  }
  std::size_t block = state.blocks.size();
  for (auto it = units_.rbegin(); it != units_.rend(); ++it) {
    if ((*it)->unit() == 0 || (*it)->unit() == layout().head_unit())
      continue;
    block_activations& a = state.blocks[--block];
    a.dy_TD = std::move(d_TD);
    d_TD = c.take(config().hidden_size);
    block_input_gradient(c, **it, a, d_TD.matrix());
  }
  if (has_embedding()) {
    SHOAL_ASSERT(d_hidden_in.empty());
    state.d_embedding_TD = std::move(d_TD);
  } else {
    SHOAL_ASSERT(d_hidden_in.size() == size);
    c.device.copy(d_hidden_in, d_TD.vector());
  }
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

void stage_model::whole_gradient(microbatch_state& state,
                                 const unit_callback& after) {
  const auto c = backward_context(state);
  activation d_TD = c.take(config().hidden_size);
  for (auto it = units_.rbegin(); it != units_.rend(); ++it) {
    unit_state& unit = **it;
    SHOAL_ASSERT(unit.trains());
    if (unit.unit() == layout().head_unit()) {
      head_input_gradient(c, unit, state.head, d_TD.matrix());
      head_weight_gradient(c, unit, state.head);
      state.head = {};
    } else if (unit.unit() == 0) {
      embed_weight_gradient(c, unit, state.ids, d_TD.matrix());
    } else {
      block_activations& a = state.blocks.back();
      a.dy_TD = std::move(d_TD);
      d_TD = c.take(config().hidden_size);
      block_input_gradient(c, unit, a, d_TD.matrix());
      block_weight_gradient(c, unit, a);
      state.blocks.pop_back();
    }
    if (after)
      after(unit.unit());
  }
}

void stage_model::weight_gradient(microbatch_id microbatch,
                                  const unit_callback& after) {
  auto found = kept_.find(microbatch);
  SHOAL_ASSERT(found != kept_.end()
               && found->second->done == phase::input_gradient);
  microbatch_state& state = *found->second;
  if (has_embedding() && has_head()) {
    whole_gradient(state, after);
    kept_.erase(found);
    return;
  }
  const auto c = context(state.sequences, state.tokens, state.positions);
  for (auto it = units_.rbegin(); it != units_.rend(); ++it) {
    unit_state& unit = **it;
    SHOAL_ASSERT(unit.trains());
    if (unit.unit() == layout().head_unit()) {
      head_weight_gradient(c, unit, state.head);
    } else if (unit.unit() == 0) {
      embed_weight_gradient(c, unit, state.ids, state.d_embedding_TD.matrix());
    } else {
      block_weight_gradient(c, unit, state.blocks.back());
      state.blocks.pop_back();
    }
    if (after)
      after(unit.unit());
  }
  kept_.erase(found);
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
