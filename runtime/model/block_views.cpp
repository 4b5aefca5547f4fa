// runtime/model/block_views.cpp -- the tensors of a block by their roles.
#include "runtime/model/block_views.hpp"

namespace shoal::model {

namespace {

using kernels::matrix_view;
using kernels::vector_view;

/// The place of the tensors of a unit: in one buffer, in the layout's order.
template <class Scalar>
class buffer_tensors {
public:
  buffer_tensors(const unit_layout& layout, unit_index unit,
                 std::span<Scalar> values)
    : config_(layout.config()), values_(values) {
    SHOAL_ASSERT(values.size() == layout.unit_size(unit));
  }

  vector_view<Scalar> vector(const tensor_info& t, std::size_t) const {
    return {values_.data() + t.offset, t.size};
  }
  void set(linear_view<Scalar>& to, const tensor_info& t, std::size_t) const {
    to.w = matrix(t);
  }

  /// q, k and v are adjacent, as outputs of one product.
  void
  set_qkv(block_tensors<Scalar>& to, const tensor_info& t, std::size_t) const {
    const auto [q, kv] = sizes();
    to.q.w = outputs(t, 0, q);
    to.k.w = outputs(t, q, q + kv);
    to.v.w = outputs(t, q + kv, q + 2 * kv);
  }
  void set_qkv_bias(block_tensors<Scalar>& to, const tensor_info& t,
                    std::size_t) const {
    const auto [q, kv] = sizes();
    Scalar* const first = values_.data() + t.offset;
    to.q.bias = {first, q};
    to.k.bias = {first + q, kv};
    to.v.bias = {first + q + kv, kv};
  }

private:
  std::pair<std::size_t, std::size_t> sizes() const {
    return {config_.num_attention_heads * config_.head_dim,
            config_.num_key_value_heads * config_.head_dim};
  }
  matrix_view<Scalar> matrix(const tensor_info& t) const {
    return {values_.data() + t.offset, t.shape[0], t.shape[1]};
  }
  matrix_view<Scalar>
  outputs(const tensor_info& t, std::size_t first, std::size_t last) const {
    return family_of(config_).in_out_weights
             ? matrix(t).slice_cols(first, last)
             : matrix(t).slice_rows(first, last);
  }

  const model_config& config_;
  std::span<Scalar> values_;
};

} // namespace

block_tensors<const float> block_parameters(const unit_state& unit) {
  return block_views<block_tensors<const float>>(
    unit.layout(), unit.unit(),
    buffer_tensors<const float>(unit.layout(), unit.unit(), unit.parameters()));
}

block_tensors<float> block_gradients(unit_state& unit) {
  return block_views<block_tensors<float>>(
    unit.layout(), unit.unit(),
    buffer_tensors<float>(unit.layout(), unit.unit(), unit.gradients()));
}

} // namespace shoal::model
