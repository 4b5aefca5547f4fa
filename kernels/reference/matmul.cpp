// kernels/reference/matmul.cpp -- products in plain loops.
#include "kernels/check.hpp"
#include "kernels/reference/backend.hpp"

namespace shoal::kernels::reference {

namespace {

/// A weight as [out, in], however it lies.
template <class Scalar>
struct weight {
  matrix_view<Scalar> w;
  weight_order order;

  std::size_t outputs() const {
    return order == weight_order::out_in ? w.rows : w.cols;
  }
  std::size_t inputs() const {
    return order == weight_order::out_in ? w.cols : w.rows;
  }
  Scalar& operator()(std::size_t o, std::size_t i) const {
    return order == weight_order::out_in ? w(o, i) : w(i, o);
  }
};

/// A factor as it is multiplied.
struct rounding {
  factor_type to;

  double operator()(float x) const {
    return to == factor_type::bf16 ? to_float(to_bf16(x)) : x;
  }
};

} // namespace

void reference_backend::matmul(matrix_view<float> y_TO,
                               matrix_view<const float> x_TI,
                               matrix_view<const float> w_OI,
                               vector_view<const float> bias_O,
                               weight_order order, factor_type factors) {
  const rounding at{factors};
  const weight<const float> w{w_OI, order};
  SHOAL_KERNEL_ASSERT(y_TO.rows == x_TI.rows && y_TO.cols == w.outputs()
                      && x_TI.cols == w.inputs()
                      && (bias_O.empty() || bias_O.size == y_TO.cols));
  for (std::size_t t = 0; t != y_TO.rows; ++t)
    for (std::size_t o = 0; o != y_TO.cols; ++o) {
      double sum = bias_O.empty() ? 0 : bias_O[o];
      for (std::size_t i = 0; i != x_TI.cols; ++i)
        sum += at(x_TI(t, i)) * at(w(o, i));
      y_TO(t, o) = static_cast<float>(sum);
    }
}

void reference_backend::matmul_input_gradient(matrix_view<float> dx_TI,
                                              matrix_view<const float> dy_TO,
                                              matrix_view<const float> w_OI,
                                              into mode, weight_order order,
                                              factor_type factors) {
  const rounding at{factors};
  const weight<const float> w{w_OI, order};
  SHOAL_KERNEL_ASSERT(dx_TI.rows == dy_TO.rows && dx_TI.cols == w.inputs()
                      && dy_TO.cols == w.outputs());
  for (std::size_t t = 0; t != dx_TI.rows; ++t)
    for (std::size_t i = 0; i != dx_TI.cols; ++i) {
      double sum = mode == into::add ? dx_TI(t, i) : 0;
      for (std::size_t o = 0; o != dy_TO.cols; ++o)
        sum += at(dy_TO(t, o)) * at(w(o, i));
      dx_TI(t, i) = static_cast<float>(sum);
    }
}

void reference_backend::matmul_weight_gradient(matrix_view<float> dw_OI,
                                               matrix_view<const float> dy_TO,
                                               matrix_view<const float> x_TI,
                                               weight_order order,
                                               factor_type factors) {
  const rounding at{factors};
  const weight<float> dw{dw_OI, order};
  SHOAL_KERNEL_ASSERT(dw.outputs() == dy_TO.cols && dw.inputs() == x_TI.cols
                      && dy_TO.rows == x_TI.rows);
  for (std::size_t o = 0; o != dy_TO.cols; ++o)
    for (std::size_t i = 0; i != x_TI.cols; ++i) {
      double sum = dw(o, i);
      for (std::size_t t = 0; t != x_TI.rows; ++t)
        sum += at(dy_TO(t, o)) * at(x_TI(t, i));
      dw(o, i) = static_cast<float>(sum);
    }
}

void reference_backend::bias_gradient(vector_view<float> db_O,
                                      matrix_view<const float> dy_TO) {
  SHOAL_KERNEL_ASSERT(db_O.size == dy_TO.cols);
  for (std::size_t o = 0; o != db_O.size; ++o) {
    double sum = db_O[o];
    for (std::size_t t = 0; t != dy_TO.rows; ++t)
      sum += dy_TO(t, o);
    db_O[o] = static_cast<float>(sum);
  }
}

} // namespace shoal::kernels::reference
