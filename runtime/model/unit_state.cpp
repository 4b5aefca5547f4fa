// runtime/model/unit_state.cpp -- parameters and training state of one unit.
#include "runtime/model/unit_state.hpp"

#include "kernels/backend.hpp"
#include "runtime/model/files/safetensors.hpp"
#include "runtime/model/random_normal.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::model {

unit_state::unit_state(std::shared_ptr<const unit_layout> layout,
                       unit_index unit, purpose use,
                       aligned_buffer::memory_ptr gradients,
                       const aligned_buffer::memory_ptr& state)
  : layout_(std::move(layout)), unit_(unit),
    parameters_(layout_->unit_size(unit), state) {
  if (use == purpose::training) {
    gradients_ = aligned_buffer(parameters_.size(), std::move(gradients));
    first_moment_ = aligned_buffer(parameters_.size(), state);
    second_moment_ = aligned_buffer(parameters_.size(), state);
  }
}

std::span<float>
unit_state::tensor(std::span<float> buffer, tensor_index t) const {
  const tensor_info& info = layout_->tensors()[t];
  SHOAL_ASSERT(info.unit == unit_ && buffer.size() == size());
  return buffer.subspan(info.offset, info.size);
}

std::span<const float>
unit_state::tensor(std::span<const float> buffer, tensor_index t) const {
  const tensor_info& info = layout_->tensors()[t];
  SHOAL_ASSERT(info.unit == unit_ && buffer.size() == size());
  return buffer.subspan(info.offset, info.size);
}

void unit_state::zero_gradients(kernels::backend& device) {
  device.fill(gradients(), 0);
}

namespace {

void zero_moments(unit_state& state) {
  std::ranges::fill(state.first_moment(), 0.0f);
  std::ranges::fill(state.second_moment(), 0.0f);
}

} // namespace

namespace {

bool is_norm(tensor_role role) {
  using enum tensor_role;
  return role == attention_norm || role == attention_post_norm
         || role == mlp_norm || role == mlp_post_norm || role == final_norm
         || role == q_norm || role == k_norm;
}

} // namespace

void initialise(unit_state& state, std::uint64_t seed) {
  const unit_layout& layout = state.layout();
  const model_config& config = layout.config();
  const family& kind = family_of(config);
  const double usual = config.initializer_range;
  const double last =
    usual / std::sqrt(2 * static_cast<double>(config.num_hidden_layers));
  for (const tensor_info& info : layout.tensors_of(state.unit())) {
    auto values = state.parameters().subspan(info.offset, info.size);
    if (info.shape.size() == 1) {
      const float norm = 1 - kind.norm_offset;
      std::ranges::fill(values, is_norm(info.role) ? norm : 0.0f);
      continue;
    }
    const bool adds =
      info.role == tensor_role::o || info.role == tensor_role::down;
    const double deviation = kind.model_type == "gpt2" && adds ? last : usual;
    const tensor_info& source =
      info.copy_of ? layout.tensors()[*info.copy_of] : info;
    fill_normal(values, stream_key(seed, source.name), deviation);
  }
  zero_moments(state);
}

std::string_view
stored_name(const tensor_info& tensor, const safetensors_source& in) {
  const std::string_view brief = short_name(tensor);
  return in.find(tensor.name) == nullptr && in.find(brief) != nullptr
           ? brief
           : std::string_view(tensor.name);
}

status load(unit_state& state, const safetensors_source& from) {
  const unit_layout& layout = state.layout();
  for (const tensor_info& info : layout.tensors_of(state.unit())) {
    const tensor_info& source =
      info.copy_of ? layout.tensors()[*info.copy_of] : info;
    auto values = state.parameters().subspan(info.offset, info.size);
    const std::string_view name = stored_name(source, from);
    if (status read = from.read(name, source.shape, values); !read)
      return read;
  }
  zero_moments(state);
  return done{};
}

void sum_tied(std::span<float> embedding, std::span<float> head,
              kernels::backend& device) {
  SHOAL_ASSERT(embedding.size() == head.size());
  device.add_both({embedding.data(), embedding.size()},
                  {head.data(), head.size()});
}

std::vector<double>
sums_of_squares(const unit_state& state, kernels::backend& device) {
  std::vector<double> sums;
  auto gradients = state.gradients();
  SHOAL_ASSERT(state.trains());
  for (const tensor_info& info : state.layout().tensors_of(state.unit()))
    sums.push_back(info.copy_of ? 0.0
                                : device.sum_of_squares(
                                  gradients.subspan(info.offset, info.size)));
  return sums;
}

double sum_of_squares(const unit_state& state, kernels::backend& device) {
  double sum = 0;
  for (const double of_tensor : sums_of_squares(state, device))
    sum += of_tensor;
  return sum;
}

double gradient_norm(std::span<const double> squares) {
  double total = 0;
  for (const double of_unit : squares)
    total += of_unit;
  return std::sqrt(total);
}

float clip_scale(double norm, double norm_max) {
  if (norm_max <= 0)
    return 1.0f;
  return static_cast<float>(std::min(1.0, norm_max / (norm + 1e-6)));
}

void apply(unit_state& state, kernels::backend& device,
           const kernels::adamw_options& options) {
  SHOAL_ASSERT(state.trains() && options.step >= 1);
  device.adamw(state.parameters(), state.first_moment(), state.second_moment(),
               std::span<const float>(state.gradients()), options);
}

} // namespace shoal::model
