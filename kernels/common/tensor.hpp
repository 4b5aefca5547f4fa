// kernels/common/tensor.hpp -- views of row-major memory that the caller owns.
//
// A view is a pointer and sizes; it is passed by value and never stored beyond
// a call. Names of views carry their shape in capitals: x_TD has T rows of D.
//
// Ownership: the caller keeps the memory alive for the length of the call.
// Errors:    none; kernels assert that the shapes of a call agree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace shoal::kernels {

/// A token id as in models and files; -1 means "ignore this row".
using token_id = std::int32_t;

/// Whether a result replaces the values of the output or is added to them.
enum class into { overwrite, add };

/// `size` contiguous values.
template <class Scalar>
struct vector_view {
  Scalar* data = nullptr;
  std::size_t size = 0;

  vector_view() = default;
  vector_view(Scalar* first, std::size_t count) : data(first), size(count) {}
  vector_view(std::vector<std::remove_const_t<Scalar>>& from)
    : data(from.data()), size(from.size()) {}
  template <class Other>
  requires std::is_same_v<Scalar, const Other>
  vector_view(const std::vector<Other>& from)
    : data(from.data()), size(from.size()) {}
  template <class Other>
  requires std::is_same_v<Scalar, const Other>
  vector_view(vector_view<Other> from) : data(from.data), size(from.size) {}
  vector_view(std::span<Scalar> from) : data(from.data()), size(from.size()) {}
  template <class Other>
  requires std::is_same_v<Scalar, const Other>
  vector_view(std::span<Other> from) : data(from.data()), size(from.size()) {}

  bool empty() const { return size == 0; }
  Scalar& operator[](std::size_t i) const { return data[i]; }
};

/// `rows` rows of `cols` contiguous values; rows start `stride` values apart.
template <class Scalar>
struct matrix_view {
  Scalar* data = nullptr;
  std::size_t rows = 0;
  std::size_t cols = 0;
  std::size_t stride = 0; ///< >= cols

  matrix_view() = default;
  matrix_view(Scalar* first, std::size_t row_count, std::size_t col_count)
    : data(first), rows(row_count), cols(col_count), stride(col_count) {}
  matrix_view(Scalar* first, std::size_t row_count, std::size_t col_count,
              std::size_t row_stride)
    : data(first), rows(row_count), cols(col_count), stride(row_stride) {}
  template <class Other>
  requires std::is_same_v<Scalar, const Other>
  matrix_view(matrix_view<Other> from)
    : data(from.data), rows(from.rows), cols(from.cols), stride(from.stride) {}

  bool empty() const { return rows == 0 || cols == 0; }
  Scalar* row(std::size_t r) const { return data + r * stride; }
  Scalar& operator()(std::size_t r, std::size_t c) const {
    return data[r * stride + c];
  }
  /// Rows [first, last).
  matrix_view slice_rows(std::size_t first, std::size_t last) const {
    return {row(first), last - first, cols, stride};
  }
  /// Columns [first, last).
  matrix_view slice_cols(std::size_t first, std::size_t last) const {
    return {data + first, rows, last - first, stride};
  }
};

} // namespace shoal::kernels
