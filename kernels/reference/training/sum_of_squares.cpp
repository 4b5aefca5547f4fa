// kernels/reference/training/sum_of_squares.cpp -- the sum in its defined order.
#include "kernels/reference/backend.hpp"

#include <algorithm>

namespace shoal::kernels::reference {

double reference_backend::sum_of_squares(vector_view<const float> g_P) {
  double total = 0;
  for (std::size_t first = 0; first < g_P.size; first += sum_chunk) {
    auto last = std::min(first + sum_chunk, g_P.size);
    double lane[sum_lanes] = {};
    for (std::size_t i = first; i != last; ++i)
      lane[(i - first) % sum_lanes] += double{g_P[i]} * g_P[i];
    total += ((lane[0] + lane[4]) + (lane[2] + lane[6]))
             + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
  }
  return total;
}

} // namespace shoal::kernels::reference
