// kernels/inference/packed_weight.cpp -- what all backends use of packed weights.
#include "kernels/inference/packed_weight.hpp"

#include "kernels/common/check.hpp"
#include "kernels/inference/packed_layout.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace shoal::kernels {

float to_float(bf16 x) noexcept {
  const auto bits = std::uint32_t{x.bits} << 16;
  float out;
  std::memcpy(&out, &bits, sizeof out);
  return out;
}

bf16 to_bf16(float x) noexcept {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  if (x != x)
    return {0x7fc0};
  return {static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

const char* name_of(weight_type type) noexcept {
  switch (type) {
  case weight_type::f32:
    return "f32";
  case weight_type::bf16:
    return "bf16";
  case weight_type::q8:
    return "q8";
  case weight_type::q4:
    return "q4";
  }
  return "";
}

packed_weight::packed_weight(matrix_view<const float> w_OI,
                             std::shared_ptr<const void> owner)
  : type_(weight_type::f32), rows_(w_OI.rows), cols_(w_OI.cols),
    data_(reinterpret_cast<const std::byte*>(w_OI.data)),
    owner_(std::move(owner)) {
  SHOAL_KERNEL_ASSERT(w_OI.stride == w_OI.cols);
}

packed_weight::packed_weight(matrix_view<const bf16> w_OI,
                             std::shared_ptr<const void> owner)
  : type_(weight_type::bf16), rows_(w_OI.rows), cols_(w_OI.cols),
    data_(reinterpret_cast<const std::byte*>(w_OI.data)),
    owner_(std::move(owner)) {
  SHOAL_KERNEL_ASSERT(w_OI.stride == w_OI.cols);
}

packed_weight::packed_weight(weight_type type, std::size_t rows,
                             std::size_t cols,
                             std::shared_ptr<const std::byte> data)
  : type_(type), rows_(rows), cols_(cols), data_(data.get()),
    owner_(std::move(data)) {
  SHOAL_KERNEL_ASSERT(type == weight_type::q8 || type == weight_type::q4);
}

std::size_t packed_weight::bytes() const noexcept {
  switch (type_) {
  case weight_type::f32:
    return rows_ * cols_ * sizeof(float);
  case weight_type::bf16:
    return rows_ * cols_ * sizeof(bf16);
  case weight_type::q8:
  case weight_type::q4:
    break;
  }
  return panel_bytes(type_, rows_, cols_);
}

matrix_view<const float> packed_weight::floats() const noexcept {
  SHOAL_KERNEL_ASSERT(type_ == weight_type::f32);
  return {reinterpret_cast<const float*>(data_), rows_, cols_};
}

matrix_view<const bf16> packed_weight::halves() const noexcept {
  SHOAL_KERNEL_ASSERT(type_ == weight_type::bf16);
  return {reinterpret_cast<const bf16*>(data_), rows_, cols_};
}

void packed_weight::unpack_row(std::size_t row,
                               std::span<float> into) const noexcept {
  SHOAL_KERNEL_ASSERT(row < rows_ && into.size() == cols_);
  if (type_ == weight_type::f32) {
    std::copy_n(floats().row(row), cols_, into.data());
    return;
  }
  if (type_ == weight_type::bf16) {
    for (std::size_t i = 0; i != cols_; ++i)
      into[i] = to_float(halves()(row, i));
    return;
  }
  const auto lane = row % panel_rows;
  const auto* panel =
    data_ + row / panel_rows * chunks_of(cols_) * chunk_bytes(type_);
  for (std::size_t i = 0; i != cols_; ++i) {
    const auto* chunk = panel + i / chunk_cols * chunk_bytes(type_);
    const auto block = i % chunk_cols / block_cols;
    const auto g = i % block_cols / 4;
    const auto j = i % 4;
    bf16 scale;
    std::memcpy(&scale, chunk + 4 * lane + 2 * block, sizeof scale);
    const auto* codes = chunk + scale_bytes + 4 * lane + j;
    const auto code =
      type_ == weight_type::q8
        ? static_cast<float>(static_cast<int>(codes[64 * (8 * block + g)])
                             - code_offset)
        : static_cast<float>(
          q4_codes[static_cast<int>(codes[64 * g]) >> (4 * block) & 15]);
    into[i] = to_float(scale) * code;
  }
}

std::shared_ptr<std::byte> allocate_packed(std::size_t bytes) {
  constexpr std::size_t line = 64;
  constexpr std::size_t large_page = std::size_t{2} << 20;
  const auto boundary = bytes >= 2 * large_page ? large_page : line;
  const auto whole =
    std::max(line, (bytes + boundary - 1) / boundary * boundary);
  void* p = std::aligned_alloc(boundary, whole);
  if (p == nullptr)
    throw std::bad_alloc();
  if (boundary == large_page)
    static_cast<void>(::madvise(p, whole, MADV_HUGEPAGE)); // small ones also do
  return {static_cast<std::byte*>(p), [](std::byte* q) { std::free(q); }};
}

std::shared_ptr<std::byte> packed_memory::take(std::size_t bytes) {
  constexpr std::size_t line = 64;
  constexpr std::size_t slab_bytes = std::size_t{32} << 20;
  bytes = (bytes + line - 1) / line * line;
  if (bytes > slab_bytes / 2)
    return allocate_packed(bytes);
  if (bytes > left_) {
    slab_ = allocate_packed(slab_bytes);
    left_ = slab_bytes;
  }
  auto* const first = slab_.get() + (slab_bytes - left_);
  left_ -= bytes;
  return {slab_, first};
}

void packed_embedding(matrix_view<float> y_TD, const packed_weight& w_VD,
                      vector_view<const token_id> ids_T) {
  SHOAL_KERNEL_ASSERT(y_TD.rows == ids_T.size && y_TD.cols == w_VD.cols());
  for (std::size_t t = 0; t != ids_T.size; ++t) {
    SHOAL_KERNEL_ASSERT(ids_T[t] >= 0);
    w_VD.unpack_row(static_cast<std::size_t>(ids_T[t]),
                    {y_TD.row(t), y_TD.cols});
  }
}

} // namespace shoal::kernels
