// runtime/model/decode/inference.cpp -- consecutive units for generation.
#include "runtime/model/decode/inference.hpp"

#include "kernels/backend.hpp"
#include "runtime/model/activation_pool.hpp"

#include <algorithm>

namespace shoal::model {

using kernels::bf16;
using kernels::matrix_view;
using kernels::packed_weight;
using kernels::weight_type;

namespace {

/// Whether a tensor is stored [in, out]: a weight of a block in some families.
bool is_turned(const unit_layout& layout, const tensor_info& t) {
  return family_of(layout.config()).in_out_weights && t.shape.size() == 2
         && t.unit != 0 && t.unit != layout.head_unit();
}

/// The weight [out, in] of values [in, out].
packed_weight turned(const float* values, const tensor_info& t,
                     weight_type type, kernels::backend& device) {
  const std::size_t inputs = t.shape[0];
  const std::size_t outputs = t.shape[1];
  return device.pack_weight(type, outputs, inputs,
                            [&](std::size_t row, float* into) {
                              for (std::size_t i = 0; i < inputs; ++i)
                                into[i] = values[i * outputs + row];
                            });
}

} // namespace

inference_unit::inference_unit(const unit_state& of, kernels::backend& device)
  : layout_(of.shared_layout()), unit_(of.unit()) {
  for (const tensor_info& t : layout_->tensors_of(unit_)) {
    const float* values = of.parameters().data() + t.offset;
    if (is_turned(*layout_, t)) {
      tensors_.push_back(turned(values, t, weight_type::f32, device));
      continue;
    }
    const bool vector = t.shape.size() == 1;
    const std::size_t rows = vector ? 1 : t.shape[0];
    tensors_.emplace_back(matrix_view<const float>(values, rows, t.size / rows),
                          nullptr);
  }
}

inference_unit::inference_unit(std::shared_ptr<const unit_layout> layout,
                               unit_index unit,
                               std::vector<packed_weight> tensors)
  : layout_(std::move(layout)), unit_(unit), tensors_(std::move(tensors)) {
  const auto infos = layout_->tensors_of(unit);
  SHOAL_ASSERT(tensors_.size() == infos.size());
  for (std::size_t i = 0; i != infos.size(); ++i)
    SHOAL_ASSERT(tensors_[i].rows() * tensors_[i].cols() == infos[i].size);
}

namespace {

template <class Value>
bool aligned(std::span<const std::byte> bytes) {
  return reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(Value) == 0;
}

std::size_t size_of(stored_type type) {
  return type == stored_type::f32 ? 4 : 2;
}

/// A matrix as it is stored in the file, if it can be multiplied like that.
std::optional<packed_weight>
in_place(const stored_values& stored, std::size_t rows, std::size_t cols) {
  const auto* data = stored.bytes.data();
  if (stored.type == stored_type::bf16 && aligned<bf16>(stored.bytes))
    return packed_weight(
      matrix_view(reinterpret_cast<const bf16*>(data), rows, cols),
      stored.keep);
  if (stored.type == stored_type::f32 && aligned<float>(stored.bytes))
    return packed_weight(
      matrix_view(reinterpret_cast<const float*>(data), rows, cols),
      stored.keep);
  return std::nullopt;
}

/// Whether a matrix keeps its stored type: small ones, of which a slight change
/// has a large effect. A router picks experts by comparing its logits; each
/// learned position is added to every value at its place.
bool keeps_type(const tensor_info& t) {
  return t.role == tensor_role::router
         || t.role == tensor_role::position_embedding;
}

weight_type type_of(stored_type type) {
  return type == stored_type::bf16 ? weight_type::bf16 : weight_type::f32;
}

/// A matrix in the requested type.
packed_weight
matrix_of(const stored_values& stored, std::size_t rows, std::size_t cols,
          weight_choice choice, kernels::backend& device) {
  const weight_type type = choice.value_or(type_of(stored.type));
  if (type == type_of(stored.type))
    if (auto view = in_place(stored, rows, cols))
      return *view;
  const std::size_t row_bytes = cols * size_of(stored.type);
  return device.pack_weight(
    type, rows, cols, [&](std::size_t row, float* into) {
      widen(stored.type, stored.bytes.data() + row * row_bytes, {into, cols});
    });
}

} // namespace

result<inference_unit>
inference_unit::load(std::shared_ptr<const unit_layout> layout, unit_index unit,
                     const safetensors_source& from, weight_choice choice,
                     kernels::backend& device, weights_by_name& packed) {
  inference_unit out;
  out.layout_ = std::move(layout);
  out.unit_ = unit;
  for (const tensor_info& info : out.layout_->tensors_of(unit)) {
    const tensor_info& t =
      info.copy_of ? out.layout_->tensors()[*info.copy_of] : info;
    if (const auto known = packed.find(t.name); known != packed.end()) {
      out.tensors_.push_back(known->second);
      continue;
    }
    const std::string_view name = stored_name(t, from);
    if (status good = from.check(name, t.shape); !good)
      return good.why();
    const stored_values stored = from.stored(name);
    if (is_turned(*out.layout_, t)) {
      std::vector<float> values(t.size);
      widen(stored.type, stored.bytes.data(), values);
      out.tensors_.push_back(turned(
        values.data(), t, choice.value_or(type_of(stored.type)), device));
      continue;
    }
    const bool vector = t.shape.size() == 1;
    const std::size_t rows = vector ? 1 : t.shape[0];
    const weight_choice type = vector          ? weight_type::f32
                               : keeps_type(t) ? weight_choice()
                                               : choice;
    out.tensors_.push_back(
      matrix_of(stored, rows, t.size / rows, type, device));
    if (info.copy_of || unit == 0)
      packed.emplace(t.name, out.tensors_.back());
  }
  return out;
}

kernels::vector_view<const float>
inference_unit::vector(std::size_t index) const {
  const auto values = tensors_.at(index).floats();
  SHOAL_ASSERT(values.rows == 1);
  return {values.data, values.cols};
}

std::size_t inference_unit::bytes() const noexcept {
  std::size_t sum = 0;
  for (const packed_weight& w : tensors_)
    sum += w.bytes();
  return sum;
}

inference_stage::inference_stage(std::vector<inference_unit> units,
                                 kernels::backend& device)
  : units_(std::move(units)), device_(device),
    pool_(std::make_unique<activation_pool>()) {
  SHOAL_ASSERT(!units_.empty());
  for (std::size_t i = 0; i < units_.size(); ++i)
    SHOAL_ASSERT(units_[i].unit() == units_[0].unit() + i
                 && &units_[i].layout() == &units_[0].layout());
}

namespace {

std::vector<inference_unit> views_of(stage_model& stage) {
  std::vector<inference_unit> units;
  for (unit_index u = stage.first_unit(); u != stage.last_unit(); ++u)
    units.emplace_back(stage.unit(u), stage.device());
  return units;
}

} // namespace

inference_stage::inference_stage(stage_model& stage)
  : inference_stage(views_of(stage), stage.device()) {
}

inference_stage::~inference_stage() = default;

namespace {

/// A token uses k of all experts.
std::size_t
per_token(const model_config& c, const tensor_info& t, std::size_t size) {
  return t.expert == no_expert ? size
                               : size * c.num_experts_per_tok / c.num_experts;
}

} // namespace

std::size_t inference_stage::bytes_per_token() const noexcept {
  std::size_t sum = 0;
  for (const inference_unit& unit : units_)
    if (const auto infos = layout().tensors_of(unit.unit()); unit.unit() != 0)
      for (std::size_t i = 0; i != infos.size(); ++i)
        sum += per_token(config(), infos[i], unit.matrix(i).bytes());
  return sum;
}

std::size_t inference_stage::block_products() const noexcept {
  std::size_t sum = 0;
  for (const inference_unit& unit : units_)
    for (const tensor_info& t : layout().tensors_of(unit.unit()))
      if (unit.unit() != 0 && unit.unit() != layout().head_unit()
          && t.shape.size() == 2)
        sum += per_token(config(), t, t.size);
  return sum;
}

void inference_stage::need_positions(std::size_t count) {
  const std::size_t most = config().max_position_embeddings;
  SHOAL_ASSERT(count <= most);
  if (count > rope_.positions && family_of(config()).rotary)
    rope_ = kernels::make_rope_table(
      config().head_dim, std::min(most, std::max(count, 2 * rope_.positions)),
      config().rope_theta, config().rope_scaling);
}

} // namespace shoal::model
