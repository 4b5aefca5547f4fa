// runtime/model/stage_model.hpp -- consecutive units computing on one device.
//
// A microbatch passes forward (keeping its activations), then input_gradient
// (B, keeping the values that W needs), then weight_gradient (W, adding to the
// units' gradients and releasing everything kept). Any number of microbatches
// may be between these points; the caller numbers them.
//
//   forward         ids or hidden in  -> hidden out, or losses of the tokens
//   input_gradient  d hidden out      -> d hidden in
//   weight_gradient                   -> gradients of the units, last to first
//
// Each is a pass in segments (pass.hpp): begin_forward() and so on return it,
// forward() and so on run it from end to end. All arithmetic happens in
// segments, which belong on the device's thread.
//
// Shapes:    B sequences of T tokens: ids and targets B*T, hidden states B*T
//            rows of D, row b*T + t. Positions start at 0 in each sequence.
// Precision: fp32; or the factors of products in bf16 and everything else in
//            fp32: parameters, sums, gradients. Neither the cut of units into
//            stages nor the number of threads changes the arithmetic: the bits
//            are the same.
// Threads:   one call at a time, of the stage and of all its passes.
// Ownership: the units and the backend belong to the caller and outlive the
//            stage, which outlives its passes.
// Errors:    wrong sizes and unknown microbatches are bugs and abort; token
//            ids must have been checked against the vocabulary (valid_ids()).
#pragma once

#include "kernels/common/tensor.hpp"
#include "kernels/layers/matmul.hpp"
#include "kernels/layers/rope.hpp"
#include "runtime/model/pass.hpp"
#include "runtime/model/unit_state.hpp"

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace shoal::kernels {
class backend; // kernels/backend.hpp
}

namespace shoal::model {

using kernels::token_id;
using microbatch_id = std::uint64_t;

/// One microbatch going forward. A stage reads and writes only the fields of
/// its place: ids on the first stage, hidden_in on all others, hidden_out on
/// all but the last, targets on the last.
struct forward_work {
  microbatch_id microbatch = 0;
  std::size_t sequences = 1;         ///< B
  std::size_t tokens = 0;            ///< T, at most max_position_embeddings
  std::span<const token_id> ids;     ///< B*T
  std::span<const float> hidden_in;  ///< B*T*D
  std::span<float> hidden_out;       ///< B*T*D
  std::span<const token_id> targets; ///< B*T; -1 = no prediction here
  /// The loss of a step is the sum of all its tokens' losses times this: 1 /
  /// (predicted tokens of the whole step, all replicas). Every stage whose
  /// blocks have experts needs it, for their balance.
  float loss_scale = 0;
  /// If false, nothing is kept and no backward pass may follow.
  bool keep = true;
  /// If not empty, gets the loss of each token in nats: B*T.
  std::span<float> losses_out;
  /// If not empty, gets the logits: B*T*V. Only on the last stage; targets may
  /// then be empty, if keep is false.
  std::span<float> logits_out;
};

/// The result of a forward pass on the last stage; zeros on all others.
struct forward_result {
  double loss_sum = 0;         ///< of all predicted tokens, in nats, unscaled
  std::uint64_t predicted = 0; ///< targets that are not -1
};

/// Runs after the weight gradients of a unit have been added, from the last
/// unit of the stage to the first.
using unit_callback = std::function<void(unit_index)>;

struct microbatch_state; // private: the values kept of one microbatch
class activation_pool;   // runtime/model/activation_pool.hpp
struct block_context;    // runtime/model/block.hpp

/// Units [first, last) on one device.
class stage_model {
public:
  /// @pre units are consecutive and in order, of one layout, none is null.
  /// `factors` is the type of products, also of gradients. For the same bits,
  /// all stages of a model, and every node that repeats their work, need the
  /// same budget.
  stage_model(std::vector<unit_state*> units, kernels::backend& device,
              kernels::factor_type factors = kernels::factor_type::f32,
              const logits_budget& logits = {});
  ~stage_model();
  stage_model(const stage_model&) = delete;
  stage_model& operator=(const stage_model&) = delete;

  unit_index first_unit() const noexcept;
  unit_index last_unit() const noexcept; ///< one past the last
  bool has_embedding() const noexcept { return first_unit() == 0; }
  bool has_head() const noexcept;
  const unit_layout& layout() const noexcept;
  const model_config& config() const noexcept { return layout().config(); }
  kernels::backend& device() noexcept { return device_; }
  /// @pre the unit belongs to this stage
  unit_state& unit(unit_index unit) noexcept;

  /// Begins to compute one microbatch, which is in flight when the pass is done
  /// if work.keep. Until then `result` and the memory of `work` must stay.
  /// @pre the microbatch is neither in flight nor in a pass
  std::unique_ptr<pass>
  begin_forward(const forward_work& work, forward_result& result);

  /// B. `d_hidden_out` is empty on the last stage, `d_hidden_in` on the first.
  /// @pre the microbatch is in flight, and has passed forward only
  std::unique_ptr<pass>
  begin_input_gradient(microbatch_id microbatch,
                       std::span<const float> d_hidden_out,
                       std::span<float> d_hidden_in);

  /// W, and B if the stage is the whole model. After the last microbatch of a
  /// step, `after` tells which units' gradients are final while the others are
  /// still being computed. For the same bits every time, one W has to be done
  /// before the next begins. @pre B is done for this microbatch
  std::unique_ptr<pass>
  begin_weight_gradient(microbatch_id microbatch, unit_callback after = {});

  /// The same from end to end.
  forward_result forward(const forward_work& work);
  void
  input_gradient(microbatch_id microbatch, std::span<const float> d_hidden_out,
                 std::span<float> d_hidden_in);
  void
  weight_gradient(microbatch_id microbatch, const unit_callback& after = {});

  /// Forgets all microbatches in flight. @pre no pass is under way
  void reset();
  std::size_t in_flight() const noexcept { return kept_.size(); }
  /// Bytes of activations that are held, in use or ready for reuse.
  std::size_t activation_bytes() const noexcept;

private:
  class forward_pass; // stage_passes.cpp
  class input_gradient_pass;
  class weight_gradient_pass;

  bool is_block(unit_index unit) const noexcept {
    return unit != 0 && unit != layout().head_unit();
  }
  block_context context(std::size_t sequences, std::size_t tokens,
                        std::span<const std::int32_t> positions);
  block_context backward_context(const microbatch_state& state);
  void need_positions(std::size_t count);

  std::vector<unit_state*> units_;
  kernels::backend& device_;
  kernels::factor_type factors_;
  logits_budget logits_;
  kernels::rope_table rope_;
  std::unique_ptr<activation_pool> pool_;
  std::map<microbatch_id, std::unique_ptr<microbatch_state>> kept_;
};

/// Whether every id is in [0, vocab_size), or -1 if `allow_ignored`.
bool valid_ids(const model_config& config, std::span<const token_id> ids,
               bool allow_ignored = false);

} // namespace shoal::model
