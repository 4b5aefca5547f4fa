// runtime/model/block_views.cpp -- the tensors of a block by their roles.
//
// Views are made anew for each pass: some tens of pointers beside products of
// thousands of rows.
#include "runtime/model/block.hpp"

namespace shoal::model {

namespace {

using kernels::matrix_view;
using kernels::vector_view;

/// Where the tensors of a unit lie: in one buffer, in the layout's order.
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

  /// q, k and v lie beside each other as outputs of one product.
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

/// The same of a unit for inference, which holds them one by one.
struct inference_tensors {
  const inference_unit& unit;

  vector_view<const float> vector(const tensor_info&, std::size_t i) const {
    return unit.vector(i);
  }
  void set(packed_view& to, const tensor_info&, std::size_t i) const {
    to.w = &unit.matrix(i);
  }
  void set_qkv(packed_tensors& to, const tensor_info&, std::size_t i) const {
    to.qkv.w = &unit.matrix(i);
  }
  void
  set_qkv_bias(packed_tensors& to, const tensor_info&, std::size_t i) const {
    to.qkv.bias = unit.vector(i);
  }
};

/// The MLP, or the expert, that a tensor belongs to.
template <class Tensors>
auto& mlp_of(Tensors& out, const tensor_info& t) {
  if (t.expert == no_expert)
    return out.mlp;
  if (t.expert >= out.experts.size())
    out.experts.resize(t.expert + 1);
  return out.experts[t.expert];
}

/// Puts the view of tensor `i` of a block where its role says.
template <class Tensors, class Source>
void place(Tensors& out, const Source& from, const tensor_info& t,
           std::size_t i) {
  using enum tensor_role;
  switch (t.role) {
  case attention_norm:
    out.attention_norm.w_D = from.vector(t, i);
    break;
  case attention_norm_bias:
    out.attention_norm.b_D = from.vector(t, i);
    break;
  case q:
    from.set(out.q, t, i);
    break;
  case q_bias:
    out.q.bias = from.vector(t, i);
    break;
  case k:
    from.set(out.k, t, i);
    break;
  case k_bias:
    out.k.bias = from.vector(t, i);
    break;
  case v:
    from.set(out.v, t, i);
    break;
  case v_bias:
    out.v.bias = from.vector(t, i);
    break;
  case qkv:
    from.set_qkv(out, t, i);
    break;
  case qkv_bias:
    from.set_qkv_bias(out, t, i);
    break;
  case q_norm:
    out.q_norm_H = from.vector(t, i);
    break;
  case k_norm:
    out.k_norm_H = from.vector(t, i);
    break;
  case o:
    from.set(out.o, t, i);
    break;
  case o_bias:
    out.o.bias = from.vector(t, i);
    break;
  case attention_post_norm:
    out.attention_post_norm.w_D = from.vector(t, i);
    break;
  case mlp_norm:
    out.mlp_norm.w_D = from.vector(t, i);
    break;
  case mlp_norm_bias:
    out.mlp_norm.b_D = from.vector(t, i);
    break;
  case router:
    from.set(out.router, t, i);
    break;
  case gate:
    from.set(mlp_of(out, t).gate, t, i);
    break;
  case gate_bias:
    mlp_of(out, t).gate.bias = from.vector(t, i);
    break;
  case up:
    from.set(mlp_of(out, t).up, t, i);
    break;
  case up_bias:
    mlp_of(out, t).up.bias = from.vector(t, i);
    break;
  case down:
    from.set(mlp_of(out, t).down, t, i);
    break;
  case down_bias:
    mlp_of(out, t).down.bias = from.vector(t, i);
    break;
  case mlp_post_norm:
    out.mlp_post_norm.w_D = from.vector(t, i);
    break;
  default:
    SHOAL_ASSERT(false); // not of a block
  }
}

template <class Tensors, class Source>
Tensors
views(const unit_layout& layout, unit_index unit, const Source& source) {
  Tensors out;
  std::size_t i = 0;
  for (const tensor_info& t : layout.tensors_of(unit))
    place(out, source, t, i++);
  return out;
}

} // namespace

block_tensors<const float> block_parameters(const unit_state& unit) {
  return views<block_tensors<const float>>(
    unit.layout(), unit.unit(),
    buffer_tensors<const float>(unit.layout(), unit.unit(), unit.parameters()));
}

block_tensors<float> block_gradients(unit_state& unit) {
  return views<block_tensors<float>>(
    unit.layout(), unit.unit(),
    buffer_tensors<float>(unit.layout(), unit.unit(), unit.gradients()));
}

packed_tensors block_weights(const inference_unit& unit) {
  return views<packed_tensors>(unit.layout(), unit.unit(),
                               inference_tensors{unit});
}

} // namespace shoal::model
