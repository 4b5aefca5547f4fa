// runtime/work/cut_backend.cpp -- passes calls on, in pieces where that is due.
#include "runtime/work/cut_backend.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace shoal::runtime {

using namespace kernels;

namespace {

/// Columns of a product's piece: a multiple of every panel.
constexpr std::size_t column_step = 64;
/// Values of a piece of a vector: 256 KiB.
constexpr std::size_t value_step = 65536;

template <class Scalar>
auto part(vector_view<Scalar> all, std::size_t first, std::size_t last) {
  return all.empty() ? all : vector_view(all.data + first, last - first);
}
template <class Scalar>
auto rows(matrix_view<Scalar> all, std::size_t first, std::size_t last) {
  return all.empty() ? all : all.slice_rows(first, last);
}

double size_of(matrix_view<const float> m) {
  return double(m.rows) * double(m.cols);
}

} // namespace

std::size_t
cut_backend::pieces(kind of, double work, std::size_t parts_max) const {
  if (!urgent_.comes())
    return 1;
  const double wanted = std::ceil(work * cost_[of] / longest_);
  const std::size_t most = std::max<std::size_t>(1, parts_max);
  return std::size_t(std::clamp(wanted, 1.0, double(most)));
}

/// Runs one piece, and learns from it if it takes a millisecond or more.
template <class Call>
void cut_backend::timed(kind of, double work, const Call& call) {
  constexpr double least = 1e6;
  rest();
  const auto begin = std::chrono::steady_clock::now();
  call();
  const std::chrono::duration<double, std::nano> time =
    std::chrono::steady_clock::now() - begin;
  if (const double took = time.count(); took >= least && work > 0)
    cost_[of] += (took / work - cost_[of]) / 4;
}

/// Calls call(first, last) for parts of [0, count), multiples of `step` where
/// they begin.
template <class Call>
void cut_backend::in_pieces(kind of, double work, std::size_t count,
                            std::size_t step, const Call& call) {
  const std::size_t steps = (count + step - 1) / step;
  const std::size_t n = pieces(of, work, steps);
  const std::size_t each = n <= 1 ? count : (steps + n - 1) / n * step;
  if (each >= count)
    return timed(of, work, [&] { call(std::size_t{0}, count); });
  for (std::size_t first = 0; first < count; first += each) {
    const std::size_t last = std::min(count, first + each);
    timed(of, work * double(last - first) / double(count),
          [&] { call(first, last); });
  }
}

// Products: columns of the result.

void cut_backend::matmul(matrix_view<float> y_TO, matrix_view<const float> x_TI,
                         matrix_view<const float> w_OI,
                         vector_view<const float> bias_O, weight_order order,
                         factor_type factors) {
  const bool by_rows = order == weight_order::out_in;
  in_pieces(product, size_of(y_TO) * double(x_TI.cols), y_TO.cols, column_step,
            [&](std::size_t first, std::size_t last) {
              whole_.matmul(y_TO.slice_cols(first, last), x_TI,
                            by_rows ? w_OI.slice_rows(first, last)
                                    : w_OI.slice_cols(first, last),
                            part(bias_O, first, last), order, factors);
            });
}

void cut_backend::matmul_input_gradient(matrix_view<float> dx_TI,
                                        matrix_view<const float> dy_TO,
                                        matrix_view<const float> w_OI,
                                        into mode, weight_order order,
                                        factor_type factors) {
  const bool by_rows = order == weight_order::out_in;
  in_pieces(product, size_of(dx_TI) * double(dy_TO.cols), dx_TI.cols,
            column_step, [&](std::size_t first, std::size_t last) {
              whole_.matmul_input_gradient(dx_TI.slice_cols(first, last), dy_TO,
                                           by_rows
                                             ? w_OI.slice_cols(first, last)
                                             : w_OI.slice_rows(first, last),
                                           mode, order, factors);
            });
}

void cut_backend::matmul_weight_gradient(matrix_view<float> dw_OI,
                                         matrix_view<const float> dy_TO,
                                         matrix_view<const float> x_TI,
                                         weight_order order,
                                         factor_type factors) {
  // The columns of dw are inputs, or outputs.
  const bool inputs = order == weight_order::out_in;
  in_pieces(product, size_of(dw_OI) * double(x_TI.rows), dw_OI.cols,
            column_step, [&](std::size_t first, std::size_t last) {
              whole_.matmul_weight_gradient(
                dw_OI.slice_cols(first, last),
                inputs ? dy_TO : dy_TO.slice_cols(first, last),
                inputs ? x_TI.slice_cols(first, last) : x_TI, order, factors);
            });
}

void cut_backend::bias_gradient(vector_view<float> db_O,
                                matrix_view<const float> dy_TO) {
  rest();
  whole_.bias_gradient(db_O, dy_TO);
}

packed_weight
cut_backend::pack_weight(weight_type type, std::size_t rows, std::size_t cols,
                         const row_reader& read) {
  rest();
  return whole_.pack_weight(type, rows, cols, read);
}

void cut_backend::packed_matmul(matrix_view<float> y_TO,
                                matrix_view<const float> x_TI,
                                const packed_weight& w_OI) {
  // Rows are independent of each other.
  in_pieces(product, size_of(y_TO) * double(x_TI.cols), y_TO.rows, column_step,
            [&](std::size_t first, std::size_t last) {
              whole_.packed_matmul(y_TO.slice_rows(first, last),
                                   x_TI.slice_rows(first, last), w_OI);
            });
}

// Rows.

void cut_backend::embedding(matrix_view<float> y_TD,
                            matrix_view<const float> w_VD,
                            vector_view<const token_id> ids_T, into mode) {
  in_pieces(values, size_of(y_TD), y_TD.rows, 1,
            [&](std::size_t first, std::size_t last) {
              whole_.embedding(y_TD.slice_rows(first, last), w_VD,
                               part(ids_T, first, last), mode);
            });
}

void cut_backend::embedding_weight_gradient(matrix_view<float> dw_VD,
                                            matrix_view<const float> dy_TD,
                                            vector_view<const token_id> ids_T) {
  in_pieces(values, size_of(dy_TD), dy_TD.rows, 1,
            [&](std::size_t first, std::size_t last) {
              whole_.embedding_weight_gradient(
                dw_VD, dy_TD.slice_rows(first, last), part(ids_T, first, last));
            });
}

void cut_backend::rmsnorm(matrix_view<float> y_TD, vector_view<float> r_T,
                          matrix_view<const float> x_TD,
                          vector_view<const float> w_D, float eps,
                          float offset) {
  in_pieces(values, size_of(y_TD), y_TD.rows, 1,
            [&](std::size_t first, std::size_t last) {
              whole_.rmsnorm(y_TD.slice_rows(first, last),
                             part(r_T, first, last),
                             x_TD.slice_rows(first, last), w_D, eps, offset);
            });
}

void cut_backend::rmsnorm_input_gradient(matrix_view<float> dx_TD,
                                         matrix_view<const float> dy_TD,
                                         matrix_view<const float> x_TD,
                                         vector_view<const float> w_D,
                                         vector_view<const float> r_T,
                                         into mode, float offset) {
  in_pieces(values, size_of(dx_TD), dx_TD.rows, 1,
            [&](std::size_t first, std::size_t last) {
              whole_.rmsnorm_input_gradient(
                dx_TD.slice_rows(first, last), dy_TD.slice_rows(first, last),
                x_TD.slice_rows(first, last), w_D, part(r_T, first, last), mode,
                offset);
            });
}

void cut_backend::rmsnorm_weight_gradient(vector_view<float> dw_D,
                                          matrix_view<const float> dy_TD,
                                          matrix_view<const float> x_TD,
                                          vector_view<const float> r_T) {
  rest();
  whole_.rmsnorm_weight_gradient(dw_D, dy_TD, x_TD, r_T);
}

void cut_backend::layernorm(matrix_view<float> y_TD,
                            matrix_view<float> stats_2T,
                            matrix_view<const float> x_TD,
                            vector_view<const float> w_D,
                            vector_view<const float> b_D, float eps) {
  rest(); // its statistics are in two rows
  whole_.layernorm(y_TD, stats_2T, x_TD, w_D, b_D, eps);
}

void cut_backend::layernorm_input_gradient(matrix_view<float> dx_TD,
                                           matrix_view<const float> dy_TD,
                                           matrix_view<const float> x_TD,
                                           vector_view<const float> w_D,
                                           matrix_view<const float> stats_2T,
                                           into mode) {
  rest();
  whole_.layernorm_input_gradient(dx_TD, dy_TD, x_TD, w_D, stats_2T, mode);
}

void cut_backend::layernorm_weight_gradient(vector_view<float> dw_D,
                                            vector_view<float> db_D,
                                            matrix_view<const float> dy_TD,
                                            matrix_view<const float> x_TD,
                                            matrix_view<const float> stats_2T) {
  rest();
  whole_.layernorm_weight_gradient(dw_D, db_D, dy_TD, x_TD, stats_2T);
}

void cut_backend::rope(matrix_view<float> x_TNH,
                       vector_view<const std::int32_t> positions_T,
                       const rope_table& table) {
  rest();
  whole_.rope(x_TNH, positions_T, table);
}

void cut_backend::rope_backward(matrix_view<float> dx_TNH,
                                vector_view<const std::int32_t> positions_T,
                                const rope_table& table) {
  rest();
  whole_.rope_backward(dx_TNH, positions_T, table);
}

void cut_backend::swiglu(matrix_view<float> y_TF,
                         matrix_view<const float> gate_TF,
                         matrix_view<const float> up_TF) {
  in_pieces(values, size_of(y_TF), y_TF.rows, 1,
            [&](std::size_t first, std::size_t last) {
              whole_.swiglu(y_TF.slice_rows(first, last),
                            gate_TF.slice_rows(first, last),
                            up_TF.slice_rows(first, last));
            });
}

void cut_backend::swiglu_backward(matrix_view<float> dgate_TF,
                                  matrix_view<float> dup_TF,
                                  matrix_view<const float> dy_TF,
                                  matrix_view<const float> gate_TF,
                                  matrix_view<const float> up_TF,
                                  matrix_view<float> y_TF) {
  in_pieces(values, size_of(dy_TF), dy_TF.rows, 1,
            [&](std::size_t first, std::size_t last) {
              whole_.swiglu_backward(
                dgate_TF.slice_rows(first, last),
                dup_TF.slice_rows(first, last), dy_TF.slice_rows(first, last),
                gate_TF.slice_rows(first, last), up_TF.slice_rows(first, last),
                rows(y_TF, first, last));
            });
}

void cut_backend::gelu(matrix_view<float> y_TF, matrix_view<const float> x_TF,
                       gelu_form form) {
  in_pieces(values, size_of(y_TF), y_TF.rows, 1,
            [&](std::size_t first, std::size_t last) {
              whole_.gelu(y_TF.slice_rows(first, last),
                          x_TF.slice_rows(first, last), form);
            });
}

void cut_backend::gelu_backward(matrix_view<float> dx_TF,
                                matrix_view<const float> dy_TF,
                                matrix_view<const float> x_TF, gelu_form form,
                                matrix_view<float> y_TF) {
  in_pieces(values, size_of(dx_TF), dx_TF.rows, 1,
            [&](std::size_t first, std::size_t last) {
              whole_.gelu_backward(
                dx_TF.slice_rows(first, last), dy_TF.slice_rows(first, last),
                x_TF.slice_rows(first, last), form, rows(y_TF, first, last));
            });
}

void cut_backend::geglu(matrix_view<float> y_TF,
                        matrix_view<const float> gate_TF,
                        matrix_view<const float> up_TF, gelu_form form) {
  in_pieces(values, size_of(y_TF), y_TF.rows, 1,
            [&](std::size_t first, std::size_t last) {
              whole_.geglu(y_TF.slice_rows(first, last),
                           gate_TF.slice_rows(first, last),
                           up_TF.slice_rows(first, last), form);
            });
}

void cut_backend::geglu_backward(matrix_view<float> dgate_TF,
                                 matrix_view<float> dup_TF,
                                 matrix_view<const float> dy_TF,
                                 matrix_view<const float> gate_TF,
                                 matrix_view<const float> up_TF, gelu_form form,
                                 matrix_view<float> y_TF) {
  in_pieces(values, size_of(dy_TF), dy_TF.rows, 1,
            [&](std::size_t first, std::size_t last) {
              whole_.geglu_backward(
                dgate_TF.slice_rows(first, last),
                dup_TF.slice_rows(first, last), dy_TF.slice_rows(first, last),
                gate_TF.slice_rows(first, last), up_TF.slice_rows(first, last),
                form, rows(y_TF, first, last));
            });
}

void cut_backend::cross_entropy(vector_view<float> loss_T,
                                matrix_view<float> dlogits_TV,
                                matrix_view<const float> logits_TV,
                                vector_view<const token_id> targets_T,
                                float scale, float softcap) {
  in_pieces(values, size_of(logits_TV), logits_TV.rows, 1,
            [&](std::size_t first, std::size_t last) {
              whole_.cross_entropy(
                part(loss_T, first, last), rows(dlogits_TV, first, last),
                logits_TV.slice_rows(first, last), part(targets_T, first, last),
                scale, softcap);
            });
}

void cut_backend::copy(matrix_view<float> to_TD,
                       matrix_view<const float> from_TD) {
  in_pieces(values, size_of(to_TD), to_TD.rows, 1,
            [&](std::size_t first, std::size_t last) {
              whole_.copy(to_TD.slice_rows(first, last),
                          from_TD.slice_rows(first, last));
            });
}

void cut_backend::add(matrix_view<float> y_TD, matrix_view<const float> a_TD,
                      matrix_view<const float> b_TD) {
  in_pieces(values, size_of(y_TD), y_TD.rows, 1,
            [&](std::size_t first, std::size_t last) {
              whole_.add(y_TD.slice_rows(first, last),
                         a_TD.slice_rows(first, last),
                         b_TD.slice_rows(first, last));
            });
}

void cut_backend::scale(matrix_view<float> x_TD, float factor) {
  in_pieces(values, size_of(x_TD), x_TD.rows, 1,
            [&](std::size_t first, std::size_t last) {
              whole_.scale(x_TD.slice_rows(first, last), factor);
            });
}

void cut_backend::softcap(matrix_view<float> x_TD, float cap) {
  in_pieces(values, size_of(x_TD), x_TD.rows, 1,
            [&](std::size_t first, std::size_t last) {
              whole_.softcap(x_TD.slice_rows(first, last), cap);
            });
}

// Vectors.

void cut_backend::copy(vector_view<float> to_P,
                       vector_view<const float> from_P) {
  in_pieces(values, double(to_P.size), to_P.size, value_step,
            [&](std::size_t first, std::size_t last) {
              whole_.copy(part(to_P, first, last), part(from_P, first, last));
            });
}

void cut_backend::fill(vector_view<float> x_P, float value) {
  in_pieces(values, double(x_P.size), x_P.size, value_step,
            [&](std::size_t first, std::size_t last) {
              whole_.fill(part(x_P, first, last), value);
            });
}

void cut_backend::add_both(vector_view<float> a_P, vector_view<float> b_P) {
  in_pieces(values, double(a_P.size), a_P.size, value_step,
            [&](std::size_t first, std::size_t last) {
              whole_.add_both(part(a_P, first, last), part(b_P, first, last));
            });
}

void cut_backend::adamw(vector_view<float> w_P, vector_view<float> m_P,
                        vector_view<float> v_P, vector_view<const float> g_P,
                        const adamw_options& options) {
  in_pieces(values, double(w_P.size), w_P.size, value_step,
            [&](std::size_t first, std::size_t last) {
              whole_.adamw(part(w_P, first, last), part(m_P, first, last),
                           part(v_P, first, last), part(g_P, first, last),
                           options);
            });
}

double cut_backend::sum_of_squares(vector_view<const float> g_P) {
  rest();
  return whole_.sum_of_squares(g_P);
}

// Attention: sequences, or groups of heads of one.

/// Calls call(shape, sequence, first, last) for sequences [sequence, sequence +
/// shape.batch) and their heads of keys and values [first, last).
template <class Call>
void cut_backend::by_heads(const attention_shape& shape, double work,
                           const Call& call) {
  const std::size_t all = shape.batch * shape.kv_heads;
  const std::size_t n = pieces(heads, work, all);
  const auto piece = [&](std::size_t sequence, std::size_t sequences,
                         std::size_t first, std::size_t last) {
    attention_shape s = shape;
    s.batch = sequences;
    s.heads = shape.heads / shape.kv_heads * (last - first);
    s.kv_heads = last - first;
    timed(heads, work * double(sequences * (last - first)) / double(all),
          [&] { call(s, sequence, first, last); });
  };
  if (n <= 1)
    return piece(0, shape.batch, 0, shape.kv_heads);
  if (n <= shape.batch) {
    const std::size_t each = (shape.batch + n - 1) / n;
    for (std::size_t b = 0; b < shape.batch; b += each)
      piece(b, std::min(each, shape.batch - b), 0, shape.kv_heads);
    return;
  }
  const std::size_t parts = (n + shape.batch - 1) / shape.batch;
  const std::size_t each = (shape.kv_heads + parts - 1) / parts;
  for (std::size_t b = 0; b < shape.batch; ++b)
    for (std::size_t k = 0; k < shape.kv_heads; k += each)
      piece(b, 1, k, std::min(shape.kv_heads, k + each));
}

namespace {

/// Of [batch * T, heads * H]: some sequences, and of them some heads.
template <class Scalar>
matrix_view<Scalar>
of_heads(matrix_view<Scalar> all, const attention_shape& s,
         std::size_t sequence, std::size_t first, std::size_t count) {
  return all.slice_rows(sequence * s.tokens, (sequence + s.batch) * s.tokens)
    .slice_cols(first * s.head_size, (first + count) * s.head_size);
}

/// Of [batch * N, T]. Whole sequences, or one.
template <class Scalar>
matrix_view<Scalar>
of_rows(matrix_view<Scalar> all, const attention_shape& whole,
        const attention_shape& s, std::size_t sequence, std::size_t first) {
  const std::size_t from = sequence * whole.heads + first;
  return rows(all, from, from + s.batch * s.heads);
}

/// Rows [first, last) of all sequences.
std::vector<paged_rows>
rows_of(std::span<const paged_rows> all, std::size_t first, std::size_t last) {
  std::vector<paged_rows> out;
  std::size_t begin = 0;
  for (const paged_rows& s : all) {
    const std::size_t from = std::max(first, begin);
    const std::size_t to = std::min(last, begin + s.rows);
    if (from < to)
      out.push_back({s.pages, s.first + (from - begin), to - from});
    begin += s.rows;
  }
  return out;
}

/// Pairs of a row and a position up to its own.
double pairs_of(std::span<const paged_rows> all) {
  double pairs = 0;
  for (const paged_rows& s : all)
    pairs += double(s.rows) * (double(s.first) + double(s.rows + 1) / 2);
  return pairs;
}

double pairs_of(const attention_shape& s) {
  return double(s.batch * s.heads) * double(s.tokens) * double(s.tokens)
         * double(s.head_size);
}

} // namespace

void cut_backend::attention(matrix_view<float> o_TNH, matrix_view<float> lse_NT,
                            matrix_view<const float> q_TNH,
                            matrix_view<const float> k_TKH,
                            matrix_view<const float> v_TKH,
                            const attention_shape& shape) {
  const std::size_t group = shape.heads / shape.kv_heads;
  by_heads(shape, pairs_of(shape),
           [&](const attention_shape& s, std::size_t b, std::size_t k,
               std::size_t end) {
             const std::size_t n = k * group, heads = s.heads, keys = end - k;
             whole_.attention(
               of_heads(o_TNH, s, b, n, heads), of_rows(lse_NT, shape, s, b, n),
               of_heads(q_TNH, s, b, n, heads), of_heads(k_TKH, s, b, k, keys),
               of_heads(v_TKH, s, b, k, keys), s);
           });
}

void cut_backend::attention_backward(
  matrix_view<float> dq_TNH, matrix_view<float> dk_TKH,
  matrix_view<float> dv_TKH, matrix_view<const float> do_TNH,
  matrix_view<const float> q_TNH, matrix_view<const float> k_TKH,
  matrix_view<const float> v_TKH, matrix_view<const float> o_TNH,
  matrix_view<const float> lse_NT, const attention_shape& shape) {
  const std::size_t group = shape.heads / shape.kv_heads;
  by_heads(shape, 2.5 * pairs_of(shape),
           [&](const attention_shape& s, std::size_t b, std::size_t k,
               std::size_t end) {
             const std::size_t n = k * group, heads = s.heads, keys = end - k;
             whole_.attention_backward(
               of_heads(dq_TNH, s, b, n, heads),
               of_heads(dk_TKH, s, b, k, keys), of_heads(dv_TKH, s, b, k, keys),
               of_heads(do_TNH, s, b, n, heads),
               of_heads(q_TNH, s, b, n, heads), of_heads(k_TKH, s, b, k, keys),
               of_heads(v_TKH, s, b, k, keys), of_heads(o_TNH, s, b, n, heads),
               of_rows(lse_NT, shape, s, b, n), s);
           });
}

void cut_backend::append_paged(const kv_pages& cache,
                               matrix_view<const float> k_TKH,
                               matrix_view<const float> v_TKH,
                               std::span<const paged_rows> sequences) {
  rest();
  whole_.append_paged(cache, k_TKH, v_TKH, sequences);
}

/// Rows are independent of each other.
void cut_backend::attention_paged(matrix_view<float> o_TNH,
                                  matrix_view<const float> q_TNH,
                                  const kv_pages& cache,
                                  std::span<const paged_rows> sequences,
                                  const attention_shape& shape) {
  in_pieces(heads, 2 * pairs_of(sequences) * double(q_TNH.cols), q_TNH.rows, 1,
            [&](std::size_t first, std::size_t last) {
              attention_shape s = shape;
              s.tokens = last - first;
              whole_.attention_paged(rows(o_TNH, first, last),
                                     rows(q_TNH, first, last), cache,
                                     rows_of(sequences, first, last), s);
            });
}

// Whole.

void cut_backend::route(routing& to, vector_view<float> weight_S,
                        matrix_view<float> logits_TE, std::size_t per_token,
                        bool normalised) {
  rest();
  whole_.route(to, weight_S, logits_TE, per_token, normalised);
}

void cut_backend::route_backward(matrix_view<float> p_TE,
                                 vector_view<const float> dweight_S,
                                 const routing& routes, bool normalised,
                                 float balance_scale) {
  rest();
  whole_.route_backward(p_TE, dweight_S, routes, normalised, balance_scale);
}

void cut_backend::combine(matrix_view<float> y_TD,
                          matrix_view<const float> x_SD,
                          vector_view<const float> weight_S,
                          const routing& routes) {
  rest();
  whole_.combine(y_TD, x_SD, weight_S, routes);
}

void cut_backend::combine_backward(matrix_view<float> dx_SD,
                                   vector_view<float> dweight_S,
                                   matrix_view<const float> dy_TD,
                                   matrix_view<const float> x_SD,
                                   vector_view<const float> weight_S,
                                   const routing& routes) {
  rest();
  whole_.combine_backward(dx_SD, dweight_S, dy_TD, x_SD, weight_S, routes);
}

sampled_token cut_backend::sample(vector_view<const float> logits_V,
                                  const sampling_options& options,
                                  sampling_generator& generator) {
  rest();
  return whole_.sample(logits_V, options, generator);
}

float cut_backend::logprobs(vector_view<const float> logits_V, token_id of,
                            std::span<sampled_token> likely) {
  rest();
  return whole_.logprobs(logits_V, of, likely);
}

} // namespace shoal::runtime
