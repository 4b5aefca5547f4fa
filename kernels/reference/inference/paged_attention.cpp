// kernels/reference/inference/paged_attention.cpp -- attention to a cache in pages.
#include "kernels/reference/inference/paged_attention.hpp"

#include "kernels/inference/paged_check.hpp"
#include "kernels/inference/paged_layout.hpp"
#include "kernels/reference/backend.hpp"
#include "kernels/reference/inference/pack_block.hpp"
#include "kernels/reference/layers/attention.hpp"

#include <algorithm>
#include <cstring>

namespace shoal::kernels::reference {

namespace {

/// Rows of one sequence whose positions lie in one page.
struct page_piece {
  std::byte* part;  ///< of the key-value head
  std::size_t slot; ///< of the first row in the page
  matrix_view<const float> k_RH, v_RH;
};

void store(float x, float& to) {
  to = x;
}
/// to_bf16(), in place: a call for each value takes four times as long.
void store(float x, bf16& to) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits += 0x7fff + (bits >> 16 & 1);
  to.bits = static_cast<std::uint16_t>(x != x ? 0x7fc0 : bits >> 16);
}

template <class Value>
void append_values(const page_piece& p, const paged_layout& layout) {
  auto* const keys = reinterpret_cast<Value*>(p.part + layout.keys);
  auto* const values = reinterpret_cast<Value*>(p.part + layout.values);
  for (std::size_t h = 0; h != p.k_RH.cols; ++h)
    for (std::size_t r = 0; r != p.k_RH.rows; ++r)
      store(p.k_RH(r, h), keys[h * kv_page_positions + p.slot + r]);
  for (std::size_t r = 0; r != p.v_RH.rows; ++r)
    for (std::size_t h = 0; h != p.v_RH.cols; ++h)
      store(p.v_RH(r, h), values[(p.slot + r) * layout.value_width + h]);
}

/// Calls body(block, packed, values in it) for the blocks of a row.
template <class Body>
void each_block(const float* row_H, std::size_t size, const Body& body) {
  for (std::size_t h = 0; h < size; h += block_cols) {
    const auto count = std::min(block_cols, size - h);
    float block[block_cols] = {};
    std::copy_n(row_H + h, count, block);
    body(h / block_cols, pack_block_q8(block), count);
  }
}

void append_codes(const page_piece& p, const paged_layout& layout) {
  auto* const key_scales = reinterpret_cast<bf16*>(p.part);
  auto* const keys = reinterpret_cast<std::int8_t*>(p.part + layout.keys);
  auto* const value_scales =
    reinterpret_cast<bf16*>(p.part + layout.value_scales);
  auto* const values = reinterpret_cast<std::int8_t*>(p.part + layout.values);
  const auto code = [](const packed_block& b, std::size_t i) {
    return static_cast<std::int8_t>(b.codes[i] - code_offset);
  };
  for (std::size_t r = 0; r != p.k_RH.rows; ++r) {
    const auto slot = p.slot + r;
    each_block(p.k_RH.row(r), p.k_RH.cols,
               [&](std::size_t b, const packed_block& packed, std::size_t n) {
                 key_scales[b * kv_page_positions + slot] = packed.scale;
                 auto* const to = keys + b * block_cols * kv_page_positions;
                 for (std::size_t i = 0; i != n; ++i)
                   to[i * kv_page_positions + slot] = code(packed, i);
               });
    each_block(p.v_RH.row(r), p.v_RH.cols,
               [&](std::size_t b, const packed_block& packed, std::size_t n) {
                 value_scales[slot * layout.blocks + b] = packed.scale;
                 auto* const to =
                   values + slot * layout.value_width + b * block_cols;
                 for (std::size_t i = 0; i != n; ++i)
                   to[i] = code(packed, i);
               });
  }
}

void append_piece(kv_type type, const page_piece& p,
                  const paged_layout& layout) {
  switch (type) {
  case kv_type::f32:
    return append_values<float>(p, layout);
  case kv_type::bf16:
    return append_values<bf16>(p, layout);
  case kv_type::q8:
    return append_codes(p, layout);
  }
}

/// Reads one key and one value of position `slot` of a part.
struct part_reader {
  const std::byte* part;
  kv_type type;
  paged_layout layout;

  float key(std::size_t slot, std::size_t h) const {
    return at(layout.keys, h * kv_page_positions + slot, 0,
              h / block_cols * kv_page_positions + slot);
  }
  float value(std::size_t slot, std::size_t h) const {
    return at(layout.values, slot * layout.value_width + h, layout.value_scales,
              slot * layout.blocks + h / block_cols);
  }

private:
  template <class Value>
  const Value& in(std::size_t section, std::size_t index) const {
    return reinterpret_cast<const Value*>(part + section)[index];
  }
  float at(std::size_t section, std::size_t index, std::size_t scales,
           std::size_t scale) const {
    switch (type) {
    case kv_type::f32:
      return in<float>(section, index);
    case kv_type::bf16:
      return to_float(in<bf16>(section, index));
    case kv_type::q8:
      break;
    }
    return to_float(in<bf16>(scales, scale))
           * static_cast<float>(in<std::int8_t>(section, index));
  }
};

} // namespace

void append_rows(const kv_pages& cache, matrix_view<const float> k_TKH,
                 matrix_view<const float> v_TKH,
                 std::span<const paged_rows> sequences, std::size_t first,
                 std::size_t last) {
  const paged_layout layout(cache.type, cache.head_size);
  const auto H = cache.head_size;
  std::size_t begin = 0; // row of the sequence's first
  for (const paged_rows& s : sequences) {
    const auto end = begin + s.rows;
    for (auto t = std::max(first, begin); t < std::min(last, end);) {
      const auto position = s.first + (t - begin);
      const auto slot = position % kv_page_positions;
      const auto rows =
        std::min(kv_page_positions - slot, std::min(last, end) - t);
      for (std::size_t kv = 0; kv != cache.kv_heads; ++kv)
        append_piece(
          cache.type,
          {part_of(cache, layout, s.pages[position / kv_page_positions], kv),
           slot, k_TKH.slice_rows(t, t + rows).slice_cols(kv * H, (kv + 1) * H),
           v_TKH.slice_rows(t, t + rows).slice_cols(kv * H, (kv + 1) * H)},
          layout);
      t += rows;
    }
    begin = end;
  }
}

void reference_backend::append_paged(const kv_pages& cache,
                                     matrix_view<const float> k_TKH,
                                     matrix_view<const float> v_TKH,
                                     std::span<const paged_rows> sequences) {
  check_append_paged(cache, k_TKH, v_TKH, sequences);
  append_rows(cache, k_TKH, v_TKH, sequences, 0, k_TKH.rows);
}

void reference_backend::attention_paged(matrix_view<float> o_TNH,
                                        matrix_view<const float> q_TNH,
                                        const kv_pages& cache,
                                        std::span<const paged_rows> sequences,
                                        const attention_shape& shape) {
  check_attention_paged(o_TNH, q_TNH, cache, sequences, shape);
  const auto N = shape.heads, K = shape.kv_heads, H = shape.head_size;
  const paged_layout layout(cache.type, H);
  std::size_t begin = 0;
  for (const paged_rows& s : sequences) {
    const auto keys = s.first + s.rows;
    std::vector<float> k(keys * H), v(keys * H);
    for (std::size_t n = 0; n != N && s.rows != 0; ++n) {
      const auto kv = n / (N / K);
      for (auto j = shape.first_key(s.first + 1); j != keys; ++j) {
        const auto page = s.pages[j / kv_page_positions];
        const part_reader from{part_of(cache, layout, page, kv), cache.type,
                               layout};
        for (std::size_t h = 0; h != H; ++h) {
          k[j * H + h] = from.key(j % kv_page_positions, h);
          v[j * H + h] = from.value(j % kv_page_positions, h);
        }
      }
      for (std::size_t r = 0; r != s.rows; ++r)
        loops::attend<float>(o_TNH.row(begin + r) + n * H,
                             q_TNH.row(begin + r) + n * H, {k.data(), keys, H},
                             {v.data(), keys, H}, s.first + r + 1, shape);
    }
    begin += s.rows;
  }
}

} // namespace shoal::kernels::reference
