// kernels/reference/rope.cpp -- rotation of pairs (i, i + H/2), and the table.
#include "kernels/check.hpp"
#include "kernels/reference/backend.hpp"

#include <cmath>

namespace shoal::kernels {

rope_table
make_rope_table(std::size_t head_size, std::size_t positions, double theta) {
  SHOAL_KERNEL_ASSERT(head_size != 0 && head_size % 2 == 0 && theta > 0);
  auto half = head_size / 2;
  rope_table table;
  table.head_size = head_size;
  table.positions = positions;
  table.cos_PH2.resize(positions * half);
  table.sin_PH2.resize(positions * half);
  for (std::size_t i = 0; i != half; ++i) {
    // Rounded to float at the same points as in transformers, since an angle
    // of some hundred turns depends on every bit of the frequency.
    auto exponent = static_cast<float>(2 * i) / static_cast<float>(head_size);
    auto power = static_cast<float>(std::pow(theta, double{exponent}));
    auto frequency = 1.0f / power;
    for (std::size_t p = 0; p != positions; ++p) {
      auto angle = static_cast<float>(p) * frequency;
      auto at = p * half + i;
      table.cos_PH2[at] = static_cast<float>(std::cos(double{angle}));
      table.sin_PH2[at] = static_cast<float>(std::sin(double{angle}));
    }
  }
  return table;
}

namespace reference {

namespace {

/// `direction` is 1 for the rotation and -1 for its inverse.
void rotate(matrix_view<float> x_TNH,
            vector_view<const std::int32_t> positions_T,
            const rope_table& table, float direction) {
  SHOAL_KERNEL_ASSERT(positions_T.size == x_TNH.rows
                      && x_TNH.cols % table.head_size == 0);
  auto half = table.head_size / 2;
  for (std::size_t t = 0; t != x_TNH.rows; ++t) {
    SHOAL_KERNEL_ASSERT(positions_T[t] >= 0);
    auto p = static_cast<std::size_t>(positions_T[t]);
    SHOAL_KERNEL_ASSERT(p < table.positions);
    for (std::size_t h = 0; h != x_TNH.cols; h += table.head_size)
      for (std::size_t i = 0; i != half; ++i) {
        auto cos = table.cos_PH2[p * half + i];
        auto sin = table.sin_PH2[p * half + i] * direction;
        auto a = x_TNH(t, h + i);
        auto b = x_TNH(t, h + half + i);
        x_TNH(t, h + i) = a * cos - b * sin;
        x_TNH(t, h + half + i) = b * cos + a * sin;
      }
  }
}

} // namespace

void reference_backend::rope(matrix_view<float> x_TNH,
                             vector_view<const std::int32_t> positions_T,
                             const rope_table& table) {
  rotate(x_TNH, positions_T, table, 1);
}

void reference_backend::rope_backward(
  matrix_view<float> dx_TNH, vector_view<const std::int32_t> positions_T,
  const rope_table& table) {
  rotate(dx_TNH, positions_T, table, -1);
}

} // namespace reference

} // namespace shoal::kernels
