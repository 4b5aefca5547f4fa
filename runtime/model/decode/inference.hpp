// runtime/model/decode/inference.hpp -- consecutive units for generation.
//
// Weights are held in the type in which they are multiplied: as stored in the
// file (F32 and BF16 stay mapped, without a copy; F16 as floats), or made
// smaller at load (bf16, q8, q4). Norms are always floats; routers and learned
// positions keep their stored type. The embedding and the head are weights like
// others; tied ones are held once.
//
// Precision: kernels/inference/packed_weight.hpp. Activations are floats.
// Threads:   loading uses the team of the device; otherwise one call at a time.
// Ownership: a unit shares the mapped files that it reads; the device and,
//            for views, the states belong to the caller and outlive it.
// Errors:    a failure names file and tensor.
#pragma once

#include "kernels/inference/packed_weight.hpp"
#include "kernels/layers/rope.hpp"
#include "runtime/model/files/safetensors.hpp"
#include "runtime/model/stage_model.hpp"

#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace shoal::model {

/// The type that matrices get at load, except for routers and learned
/// positions; nothing: as they are stored.
using weight_choice = std::optional<kernels::weight_type>;

/// Weights that are packed already, by name: tied tensors share them.
using weights_by_name = std::map<std::string, kernels::packed_weight>;

/// The tensors of one unit. Movable; copies share the memory.
class inference_unit {
public:
  /// Views of a state, which must outlive this; copies of weights that are
  /// stored [in, out].
  inference_unit(const unit_state& of, kernels::backend& device);
  /// @pre `tensors` are those of the layout, in its order; products [out, in]
  inference_unit(std::shared_ptr<const unit_layout> layout, unit_index unit,
                 std::vector<kernels::packed_weight> tensors);
  static result<inference_unit>
  load(std::shared_ptr<const unit_layout> layout, unit_index unit,
       const safetensors_source& from, weight_choice choice,
       kernels::backend& device, weights_by_name& packed);

  unit_index unit() const noexcept { return unit_; }
  const unit_layout& layout() const noexcept { return *layout_; }
  /// Tensor `index` of the unit, in the order of the layout; products are
  /// [out, in] in every family.
  const kernels::packed_weight& matrix(std::size_t index) const {
    return tensors_.at(index);
  }
  kernels::vector_view<const float> vector(std::size_t index) const;
  /// Bytes of all tensors.
  std::size_t bytes() const noexcept;

private:
  inference_unit() = default;

  std::shared_ptr<const unit_layout> layout_;
  unit_index unit_ = 0;
  std::vector<kernels::packed_weight> tensors_;
};

/// Units [first, last) that compute forward only, for paged_cache.
class inference_stage {
public:
  /// @pre units are consecutive and of one layout, and there is at least one
  inference_stage(std::vector<inference_unit> units, kernels::backend& device);
  /// Reads the parameters of `stage`, which must outlive this, in place.
  explicit inference_stage(stage_model& stage);
  ~inference_stage();
  inference_stage(const inference_stage&) = delete;
  inference_stage& operator=(const inference_stage&) = delete;

  bool has_embedding() const noexcept { return units_.front().unit() == 0; }
  bool has_head() const noexcept {
    return units_.back().unit() == layout().head_unit();
  }
  std::span<const inference_unit> units() const noexcept { return units_; }
  const unit_layout& layout() const noexcept { return units_.front().layout(); }
  const model_config& config() const noexcept { return layout().config(); }
  kernels::backend& device() noexcept { return device_; }
  /// Bytes of weights that each token reads: all but the embedding; of the
  /// experts, as many as a token uses.
  std::size_t bytes_per_token() const noexcept;
  /// Values of the blocks' matrices that each token is multiplied by.
  std::size_t block_products() const noexcept;

private:
  friend class paged_cache; // runtime/model/decode/paged_cache.hpp

  /// Grows the table of angles, to twice its size at least.
  void need_positions(std::size_t count);

  std::vector<inference_unit> units_;
  kernels::backend& device_;
  kernels::rope_table rope_;
  std::unique_ptr<activation_pool> pool_;
};

} // namespace shoal::model
