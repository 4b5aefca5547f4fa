// runtime/model/unit_state.hpp -- parameters and training state of one unit.
//
// Parameters, gradients and both AdamW moments each lie in one contiguous
// buffer of floats, in the order of unit_layout, so that reducing, sending and
// saving a unit are operations on one span.
//
// Threads: none of its own; one writer at a time.
#pragma once

#include "kernels/memory/aligned_buffer.hpp"
#include "runtime/model/units.hpp"

#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace shoal::kernels {
class backend;        // kernels/backend.hpp
struct adamw_options; // kernels/training/adamw.hpp
} // namespace shoal::kernels

namespace shoal::model {

class safetensors_source; // runtime/model/files/safetensors.hpp

/// The purpose that a unit is held for.
enum class purpose {
  serving, ///< parameters only
  training ///< and gradients, first and second moments
};

/// The values of one unit. Movable, not copyable.
class unit_state {
public:
  /// All values are 0. The gradients lie in `gradients`, from which they may be
  /// sent, everything else in `state` (null: large_pages()).
  /// @pre unit < layout->unit_count()
  unit_state(std::shared_ptr<const unit_layout> layout, unit_index unit,
             purpose use, aligned_buffer::memory_ptr gradients = nullptr,
             const aligned_buffer::memory_ptr& state = nullptr);

  unit_index unit() const noexcept { return unit_; }
  const unit_layout& layout() const noexcept { return *layout_; }
  const std::shared_ptr<const unit_layout>& shared_layout() const noexcept {
    return layout_;
  }
  bool trains() const noexcept { return !gradients_.empty(); }
  std::size_t size() const noexcept { return parameters_.size(); }

  /// Whole buffers; the last three are empty for purpose::serving.
  std::span<float> parameters() noexcept { return parameters_.span(); }
  std::span<float> gradients() noexcept { return gradients_.span(); }
  std::span<float> first_moment() noexcept { return first_moment_.span(); }
  std::span<float> second_moment() noexcept { return second_moment_.span(); }
  std::span<const float> parameters() const noexcept {
    return parameters_.span();
  }
  std::span<const float> gradients() const noexcept {
    return gradients_.span();
  }
  std::span<const float> first_moment() const noexcept {
    return first_moment_.span();
  }
  std::span<const float> second_moment() const noexcept {
    return second_moment_.span();
  }

  /// The part of such a buffer that belongs to one tensor.
  /// @pre the tensor belongs to this unit
  std::span<float> tensor(std::span<float> buffer, tensor_index t) const;
  std::span<const float>
  tensor(std::span<const float> buffer, tensor_index t) const;

  void zero_gradients(kernels::backend& device);

private:
  std::shared_ptr<const unit_layout> layout_;
  unit_index unit_;
  aligned_buffer parameters_;
  aligned_buffer gradients_;
  aligned_buffer first_moment_;
  aligned_buffer second_moment_;
};

/// Sets the parameters to their values at step 0: norms 1 (in Gemma 0, which
/// stands for 1), biases 0, all others normal with deviation initializer_range,
/// divided by sqrt(2 L) where GPT-2 adds to the residual. A value is a function
/// of (seed, tensor name, index) made of correctly rounded operations: the same
/// bits on every machine and in every layout. Moments become 0.
void initialise(unit_state& state, std::uint64_t seed);

/// The name of a tensor in files: its own, or short_name() if they only have
/// that.
std::string_view
stored_name(const tensor_info& tensor, const safetensors_source& in);

/// Reads the parameters from files; moments become 0. A model with tied
/// embeddings may lack lm_head.weight.
status load(unit_state& state, const safetensors_source& from);

/// Adds the gradients of both sides of tied embeddings and puts the sum into
/// both: gradient = embedding + head. The spans are the gradients of
/// tied()->embedding and tied()->head; one of them may be a received copy.
/// @pre equal sizes
void sum_tied(std::span<float> embedding, std::span<float> head,
              kernels::backend& device);

/// The sum of squares of each tensor's gradient, in the order of
/// tensors_of(unit). A copy (see units.hpp) gives 0: its original counts.
std::vector<double>
sums_of_squares(const unit_state& state, kernels::backend& device);

/// The sum of these over the tensors, in their order.
double sum_of_squares(const unit_state& state, kernels::backend& device);

/// The norm of all gradients: the root of the sum over units in their order,
/// of what sum_of_squares() gives for each.
double gradient_norm(std::span<const double> squares);

/// The factor for gradients that brings their norm to at most `norm_max`:
/// min(1, norm_max / (norm + 1e-6)), the rule of PyTorch's clip_grad_norm_.
/// `norm_max` 0 means no clipping.
float clip_scale(double norm, double norm_max);

/// Applies one AdamW step to all values of the unit. Weight decay applies to
/// all parameters, norms included, as torch.optim.AdamW does over
/// model.parameters(). Gradients are kept.
/// @pre state.trains(), options.step >= 1
void apply(unit_state& state, kernels::backend& device,
           const kernels::adamw_options& options);

} // namespace shoal::model
