// kernels/cpu/product/product.cpp -- cuts a product into blocks, panels and tiles.
#include "kernels/cpu/product/product.hpp"

#include "kernels/common/check.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace shoal::kernels::cpu {

namespace {

/// Below this number of multiply-adds a second thread costs more than it gains:
/// some 10 us on one thread.
constexpr std::size_t parallel_work = 1 << 19;
/// The least number of tiles for each thread, if there is enough work: the last
/// thread keeps the others waiting for a tenth of the time at most.
constexpr std::size_t tiles_per_thread = 6;
/// Bytes of the packed left operand held at once. A tile reads all of its rows,
/// so it should not be much larger than the caches.
constexpr std::size_t left_bytes_max = std::size_t{8} << 20;
/// Panels of the left operand that one task packs: enough to read rows of
/// memory a page at a time if the operand is transposed.
constexpr std::size_t panels_packed = 8;
/// Blocks of k that are packed together if there are many rows.
constexpr std::size_t blocks_together = 4;

constexpr std::size_t large_page = std::size_t{2} << 20;

std::size_t parts_of(std::size_t size, std::size_t part) {
  return (size + part - 1) / part;
}

/// One product and how it is cut.
struct plan {
  thread_team& team;
  product_scratch& scratch;
  const product_engine& engine;
  matrix_view<float> c;
  gemm_operand a, b;
  std::size_t depth;
  bool add;
  vector_view<const float> start;

  bool alone;                          ///< too little for a second thread
  std::size_t block;                   ///< values of k
  std::size_t blocks;                  ///< of k
  std::size_t left_bytes, right_bytes; ///< of a panel

  std::size_t depth_of(std::size_t k) const {
    return std::min(block, depth - k * block);
  }
  template <class Body>
  void run(std::size_t tasks, const Body& body) {
    if (alone)
      for (std::size_t task = 0; task != tasks; ++task)
        body(task, 0);
    else
      team.run(tasks, body);
  }
};

plan make_plan(thread_team& team, product_scratch& scratch,
               const product_engine& engine, matrix_view<float> c,
               gemm_operand a, gemm_operand b, std::size_t depth, bool add,
               vector_view<const float> start) {
  plan p{team, scratch, engine, c, a, b, depth, add, start, 0, 0, 0, 0, 0};
  p.alone = team.size() == 1 || c.rows * c.cols * depth < parallel_work;
  p.blocks = parts_of(depth, engine.depth_max);
  p.block = parts_of(parts_of(depth, p.blocks), 32) * 32;
  p.blocks = parts_of(depth, p.block);
  p.left_bytes = engine.panel_bytes(engine.left_rows, p.block);
  p.right_bytes = engine.panel_bytes(engine.right_cols, p.block);
  return p;
}

/// The rows and blocks of k whose left operand is packed at once.
struct chunk {
  std::size_t first_panel, panels;
  std::size_t first_block, blocks;
};

/// Tiles of a chunk.
struct tiling {
  std::size_t across, down;
  std::size_t panels_each; ///< of the left operand, in a tile
};

tiling tiles_of(const plan& p, const chunk& part) {
  const std::size_t across = parts_of(p.c.cols, p.engine.tile_cols);
  std::size_t down = 1;
  if (!p.alone)
    down = std::clamp<std::size_t>(
      parts_of(tiles_per_thread * p.team.size(), across), 1, part.panels);
  const std::size_t panels_each = parts_of(part.panels, down);
  return {across, parts_of(part.panels, panels_each), panels_each};
}

/// Packs the left operand of a chunk and, if several tiles need the same
/// columns, the right one: `right` is null if not.
void pack(plan& p, const chunk& part, std::byte* left, std::byte* right) {
  const product_engine& e = p.engine;
  const std::size_t left_groups = parts_of(part.panels, panels_packed);
  const std::size_t right_panels = parts_of(p.c.cols, e.right_cols);
  const std::size_t right_groups =
    right == nullptr ? 0 : parts_of(right_panels, panels_packed);
  const std::size_t groups = left_groups + right_groups;
  p.run(groups * part.blocks, [&](std::size_t task, unsigned) {
    const std::size_t k = task / groups;
    const std::size_t block = part.first_block + k;
    const bool is_left = task % groups < left_groups;
    const std::size_t panel =
      (is_left ? task % groups : task % groups - left_groups) * panels_packed;
    if (is_left) {
      const std::size_t row = (part.first_panel + panel) * e.left_rows;
      const std::size_t last =
        part.first_panel + std::min(part.panels, panel + panels_packed);
      e.pack_left({p.a, row, std::min(p.c.rows, last * e.left_rows) - row,
                   block * p.block, p.depth_of(block), p.left_bytes},
                  left + (k * part.panels + panel) * p.left_bytes);
    } else {
      const std::size_t col = panel * e.right_cols;
      const std::size_t last = col + panels_packed * e.right_cols;
      e.pack_right({p.b, col, std::min(p.c.cols, last) - col, block * p.block,
                    p.depth_of(block), p.right_bytes},
                   right + (k * right_panels + panel) * p.right_bytes);
    }
  });
}

/// Multiplies all tiles of a chunk; `all_right` is the `right` of pack().
void multiply_tiles(plan& p, const chunk& part, const tiling& tiles,
                    const std::byte* left, const std::byte* all_right) {
  const product_engine& e = p.engine;
  const auto [across, down, panels_each] = tiles;
  const std::size_t first_row = part.first_panel * e.left_rows;
  const std::size_t right_panels = parts_of(p.c.cols, e.right_cols);
  const std::size_t tile_bytes =
    parts_of(std::min(e.tile_cols, p.c.cols), e.right_cols) * p.right_bytes;
  const auto tile = [&, down = down, panels_each = panels_each](
                      std::size_t task, unsigned worker) {
    const std::size_t col = task / down * e.tile_cols;
    const std::size_t cols = std::min(e.tile_cols, p.c.cols - col);
    const std::size_t panel = task % down * panels_each;
    const std::size_t row = first_row + panel * e.left_rows;
    const std::size_t rows =
      std::min(panels_each * e.left_rows,
               std::min(p.c.rows, first_row + part.panels * e.left_rows) - row);
    std::byte* const own = all_right != nullptr
                             ? nullptr
                             : p.scratch.right[worker].at_least(tile_bytes);
    for (std::size_t k = 0; k != part.blocks; ++k) {
      const std::size_t block = part.first_block + k;
      const std::size_t depth = p.depth_of(block);
      if (own != nullptr)
        e.pack_right({p.b, col, cols, block * p.block, depth, p.right_bytes},
                     own);
      const std::byte* const right =
        own != nullptr
          ? own
          : all_right + (k * right_panels + col / e.right_cols) * p.right_bytes;
      const bool begins = block == 0 && !p.start.empty();
      e.multiply({left + (k * part.panels + panel) * p.left_bytes, right,
                  p.left_bytes, p.right_bytes, depth,
                  p.c.slice_rows(row, row + rows).slice_cols(col, col + cols),
                  p.add || block != 0, begins ? p.start.data + col : nullptr});
    }
  };
  p.run(across * down, tile);
}

/// Sets c for a sum of no terms.
void fill_empty(const plan& p) {
  for (std::size_t r = 0; r != p.c.rows && !p.add; ++r)
    for (std::size_t i = 0; i != p.c.cols; ++i)
      p.c(r, i) = p.start.empty() ? 0 : p.start[i];
}

} // namespace

std::byte* growing_bytes::at_least(std::size_t bytes) {
  if (bytes > size_) {
    data_.reset();
    size_ = 0;
    const std::size_t page = bytes < large_page ? 64 : large_page;
    const std::size_t whole = parts_of(bytes, page) * page;
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(page, whole)));
    if (!data_)
      throw std::bad_alloc();
    if (page == large_page) // small pages also do
      static_cast<void>(::madvise(data_.get(), whole, MADV_HUGEPAGE));
    size_ = whole;
  }
  return data_.get();
}

void product(thread_team& team, product_scratch& scratch,
             const product_engine& engine, matrix_view<float> c, gemm_operand a,
             gemm_operand b, std::size_t depth, bool add,
             vector_view<const float> start) {
  SHOAL_KERNEL_ASSERT(!add || start.empty());
  if (c.empty())
    return;
  plan p = make_plan(team, scratch, engine, c, a, b,
                     std::max<std::size_t>(depth, 1), add, start);
  if (depth == 0)
    return fill_empty(p);
  if (scratch.right.size() < team.size())
    scratch.right.resize(team.size());
  const std::size_t panels = parts_of(c.rows, engine.left_rows);
  const std::size_t right_panels = parts_of(c.cols, engine.right_cols);
  const std::size_t together = std::min(p.blocks, blocks_together);
  const std::size_t panels_max = std::clamp<std::size_t>(
    left_bytes_max / (p.left_bytes * together), 1, panels);
  const std::size_t blocks_max = std::clamp<std::size_t>(
    left_bytes_max / (p.left_bytes * panels_max), 1, p.blocks);
  std::byte* const left =
    scratch.left.at_least(panels_max * blocks_max * p.left_bytes);
  for (std::size_t panel = 0; panel < panels; panel += panels_max)
    for (std::size_t block = 0; block < p.blocks; block += blocks_max) {
      const chunk part{panel, std::min(panels_max, panels - panel), block,
                       std::min(blocks_max, p.blocks - block)};
      const tiling tiles = tiles_of(p, part);
      std::byte* const right = tiles.down == 1
                                 ? nullptr
                                 : scratch.right_of_all.at_least(
                                   part.blocks * right_panels * p.right_bytes);
      pack(p, part, left, right);
      multiply_tiles(p, part, tiles, left, right);
    }
}

} // namespace shoal::kernels::cpu
