// kernels/cpu/product/gemm.cpp -- oneDNN's sgemm, held to one thread.
#include "kernels/cpu/product/gemm.hpp"

#include "kernels/common/check.hpp"

#include <oneapi/dnnl/dnnl.h>

// Declared here because oneDNN brings GCC's OpenMP runtime with it whatever
// compiler builds this file, and <omp.h> may belong to another one.
extern "C" void omp_set_num_threads(int);
extern "C" int omp_get_max_threads(void);

namespace shoal::kernels::cpu {

namespace {

/// Limits the calling thread's OpenMP regions to one thread. The setting is per
/// thread, so other threads of the process are not affected.
class one_thread {
public:
  one_thread() : before_(omp_get_max_threads()) {
    if (before_ != 1)
      omp_set_num_threads(1);
  }
  ~one_thread() {
    if (before_ != 1)
      omp_set_num_threads(before_);
  }
  one_thread(const one_thread&) = delete;
  one_thread& operator=(const one_thread&) = delete;

private:
  int before_;
};

} // namespace

void gemm(matrix_view<float> c, gemm_operand a, gemm_operand b,
          std::size_t depth, float alpha, float beta) {
  if (c.empty())
    return;
  if (depth == 0) {
    for (std::size_t r = 0; r != c.rows; ++r)
      for (std::size_t i = 0; i != c.cols; ++i)
        c(r, i) = beta == 0 ? 0 : c(r, i) * beta;
    return;
  }
  one_thread guard;
  auto size = [](std::size_t n) { return static_cast<dnnl_dim_t>(n); };
  auto status =
    dnnl_sgemm(a.order == transposed::yes ? 'T' : 'N',
               b.order == transposed::yes ? 'T' : 'N', size(c.rows),
               size(c.cols), size(depth), alpha, a.data, size(a.stride), b.data,
               size(b.stride), beta, c.data, size(c.stride));
  SHOAL_KERNEL_ASSERT(status == dnnl_success);
}

} // namespace shoal::kernels::cpu
