// runtime/model/block_views.hpp -- the tensors of a block by their roles.
//
// Views are made again for each pass: some tens of pointers, which is little
// compared with products of thousands of rows. Private to runtime/model.
#pragma once

#include "runtime/model/block.hpp"

namespace shoal::model {

/// The MLP, or the expert, that a tensor belongs to.
template <class Tensors>
auto& mlp_of(Tensors& out, const tensor_info& t) {
  if (t.expert == no_expert)
    return out.mlp;
  if (t.expert >= out.experts.size())
    out.experts.resize(t.expert + 1);
  return out.experts[t.expert];
}

/// Stores the view of tensor `i` of a block by its role.
template <class Tensors, class Source>
void place_view(Tensors& out, const Source& from, const tensor_info& t,
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
    SHOAL_ASSERT(false); // not a tensor of a block
  }
}

/// Collects the tensors of a block. The members vector(), set(), set_qkv() and
/// set_qkv_bias() of `source` know where they lie.
template <class Tensors, class Source>
Tensors
block_views(const unit_layout& layout, unit_index unit, const Source& source) {
  Tensors out;
  std::size_t i = 0;
  for (const tensor_info& t : layout.tensors_of(unit))
    place_view(out, source, t, i++);
  return out;
}

} // namespace shoal::model
