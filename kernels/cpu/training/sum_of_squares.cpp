// kernels/cpu/training/sum_of_squares.cpp -- the sum in its defined order, by chunks.
#include "kernels/cpu/backend.hpp"
#include "kernels/cpu/isa/parallel.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/training/sum_of_squares.cpp"
// foreach_target.h must come before the others.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace shoal::kernels::cpu::HWY_NAMESPACE {

// The eight lanes are an array: the compiler puts them into the registers that
// the target has, and the order stays the same.
double squares_of_chunk(const float* g, std::size_t size) {
  double lane[sum_lanes] = {};
  std::size_t i = 0;
  for (; i + sum_lanes <= size; i += sum_lanes)
    for (std::size_t j = 0; j != sum_lanes; ++j)
      lane[j] += double{g[i + j]} * double{g[i + j]};
  for (std::size_t j = 0; i + j != size; ++j)
    lane[j] += double{g[i + j]} * double{g[i + j]};
  return ((lane[0] + lane[4]) + (lane[2] + lane[6]))
         + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

} // namespace shoal::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::kernels::cpu {

HWY_EXPORT(squares_of_chunk);

double cpu_backend::sum_of_squares(vector_view<const float> g_P) {
  auto chunk = HWY_DYNAMIC_DISPATCH(squares_of_chunk);
  auto chunks = (g_P.size + sum_chunk - 1) / sum_chunk;
  std::vector<double> sums(chunks);
  for_ranges(
    team_, chunks, sum_chunk / 2, [&](std::size_t first, std::size_t last) {
      for (auto c = first; c != last; ++c) {
        auto first = c * sum_chunk;
        sums[c] =
          chunk(g_P.data + first, std::min(sum_chunk, g_P.size - first));
      }
    });
  double total = 0;
  for (auto sum : sums)
    total += sum;
  return total;
}

} // namespace shoal::kernels::cpu
#endif
