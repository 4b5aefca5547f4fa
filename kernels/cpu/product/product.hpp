// kernels/cpu/product/product.hpp -- matrix products from packed panels.
//
//   c[m,n] (+)= sum_k a[m,k] * b[k,n]
//
// The sum is cut into blocks of k. The left operand is packed once into panels
// of rows, the right one into panels of columns: once as well if several tiles
// need the same columns, otherwise once per tile. Both are then stored in the
// order in which the innermost loop reads them, whatever the order of the
// operands. An engine defines what a panel is and how two are multiplied:
//
//   f32    Highway, any processor: rows and columns that fill its registers
//   bf16   both operands rounded to bf16, sums in float: AMX or AVX-512 BF16
//
// Threads:   the team's; every value of c is one sum in ascending order of k
//            with the same cuts, so neither tiles nor threads change a bit.
// Traffic:   each operand is read once or a few times and written once, packed,
//            against 2*M*N*K operations.
// Source:    K. Goto, R. van de Geijn: Anatomy of High-Performance Matrix
//            Multiplication, ACM TOMS 34 (2008). Tiles of both operands are
//            kept in the second-level cache here.
// Private to kernels/cpu.
#pragma once

#include "kernels/common/thread_team.hpp"
#include "kernels/cpu/isa/features.hpp"
#include "kernels/cpu/product/gemm.hpp"

#include <cstdlib>
#include <memory>

namespace shoal::kernels::cpu {

/// Memory on a boundary of 64 bytes; it grows, and never shrinks.
class growing_bytes {
public:
  std::byte* at_least(std::size_t bytes);

private:
  struct release {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, release> data_;
  std::size_t size_ = 0;
};

/// Kept between products.
struct product_scratch {
  growing_bytes left;
  growing_bytes right_of_all;       ///< columns that several tiles need
  std::vector<growing_bytes> right; ///< of each worker: those of one tile
};

/// A part of an operand that is packed as consecutive panels; the last one may
/// be smaller.
struct panel_source {
  gemm_operand from;
  std::size_t first, count; ///< rows of a, or columns of b
  std::size_t first_k, depth;
  std::size_t panel_bytes; ///< from one panel to the next
};

/// A product of packed panels, into rows and columns of c.
struct panel_product {
  const std::byte* left;
  const std::byte* right;
  std::size_t left_bytes, right_bytes; ///< from one panel to the next
  std::size_t depth;
  matrix_view<float> c;
  bool add;           ///< to c; otherwise c is overwritten
  const float* start; ///< of each row of c, if not `add`; may be null
};

/// How panels are made and multiplied.
struct product_engine {
  std::size_t left_rows, right_cols; ///< of a panel
  std::size_t depth_max;             ///< of a block of k
  std::size_t tile_cols;             ///< of c: a multiple of right_cols
  /// The bytes of a panel of `size` rows or columns; a multiple of 64.
  std::size_t (*panel_bytes)(std::size_t size, std::size_t depth);
  void (*pack_left)(const panel_source& from, std::byte* to);
  void (*pack_right)(const panel_source& from, std::byte* to);
  void (*multiply)(const panel_product& call);
};

product_engine f32_engine();
/// @pre with.bf16
product_engine bf16_engine(features with);

/// Computes c = a * b, or adds it to c. Each row of c begins with `start` if
/// that is not empty. @pre start is empty if `add`
void product(thread_team& team, product_scratch& scratch,
             const product_engine& engine, matrix_view<float> c, gemm_operand a,
             gemm_operand b, std::size_t depth, bool add,
             vector_view<const float> start = {});

} // namespace shoal::kernels::cpu
