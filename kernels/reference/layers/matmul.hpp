// kernels/reference/layers/matmul.hpp -- products in plain loops.
//
// Of floats for the backend, which checks shapes; of doubles for the test that
// compares gradients with differences. Private to kernels/reference.
#pragma once

#include "kernels/inference/packed_weight.hpp"
#include "kernels/layers/matmul.hpp"

namespace shoal::kernels::reference::loops {

/// A weight as [out, in], in either order of memory.
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

/// Rounds a factor as it is rounded before the product.
struct rounding {
  factor_type to;

  double operator()(double x) const {
    return to == factor_type::bf16 ? to_float(to_bf16(static_cast<float>(x)))
                                   : x;
  }
};

template <class Scalar>
void matmul(matrix_view<Scalar> y_TO, matrix_view<const Scalar> x_TI,
            weight<const Scalar> w, vector_view<const Scalar> bias_O,
            rounding rounded) {
  for (std::size_t t = 0; t != y_TO.rows; ++t)
    for (std::size_t o = 0; o != y_TO.cols; ++o) {
      double sum = bias_O.empty() ? 0 : bias_O[o];
      for (std::size_t i = 0; i != x_TI.cols; ++i)
        sum += rounded(x_TI(t, i)) * rounded(w(o, i));
      y_TO(t, o) = static_cast<Scalar>(sum);
    }
}

template <class Scalar>
void matmul_input_gradient(matrix_view<Scalar> dx_TI,
                           matrix_view<const Scalar> dy_TO,
                           weight<const Scalar> w, into mode,
                           rounding rounded) {
  for (std::size_t t = 0; t != dx_TI.rows; ++t)
    for (std::size_t i = 0; i != dx_TI.cols; ++i) {
      double sum = mode == into::add ? dx_TI(t, i) : 0;
      for (std::size_t o = 0; o != dy_TO.cols; ++o)
        sum += rounded(dy_TO(t, o)) * rounded(w(o, i));
      dx_TI(t, i) = static_cast<Scalar>(sum);
    }
}

template <class Scalar>
void matmul_weight_gradient(weight<Scalar> dw, matrix_view<const Scalar> dy_TO,
                            matrix_view<const Scalar> x_TI, rounding rounded) {
  for (std::size_t o = 0; o != dy_TO.cols; ++o)
    for (std::size_t i = 0; i != x_TI.cols; ++i) {
      double sum = dw(o, i);
      for (std::size_t t = 0; t != x_TI.rows; ++t)
        sum += rounded(dy_TO(t, o)) * rounded(x_TI(t, i));
      dw(o, i) = static_cast<Scalar>(sum);
    }
}

template <class Scalar>
void bias_gradient(vector_view<Scalar> db_O, matrix_view<const Scalar> dy_TO) {
  for (std::size_t o = 0; o != db_O.size; ++o) {
    double sum = db_O[o];
    for (std::size_t t = 0; t != dy_TO.rows; ++t)
      sum += dy_TO(t, o);
    db_O[o] = static_cast<Scalar>(sum);
  }
}

} // namespace shoal::kernels::reference::loops
