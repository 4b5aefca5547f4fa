// kernels/cpu/backend.hpp -- the backend for the processor's vector units.
//
// oneDNN computes the matrix products, Highway loops the rest; both choose the
// instruction set at run time. One file per operation.
#pragma once

#include "kernels/backend.hpp"
#include "kernels/common/thread_team.hpp"
#include "kernels/cpu/product/panels.hpp"
#include "kernels/cpu/product/product.hpp"
#include "kernels/cpu/product/rows.hpp"
#include "kernels/inference/packed_layout.hpp"

#include <vector>

namespace shoal::kernels::cpu {

class cpu_backend final : public backend {
public:
  explicit cpu_backend(thread_team& team);

  std::string name() const override;
  std::string libraries() const override;

  void
  matmul(matrix_view<float> y_TO, matrix_view<const float> x_TI,
         matrix_view<const float> w_OI, vector_view<const float> bias_O = {},
         weight_order order = weight_order::out_in,
         factor_type factors = factor_type::f32) override;
  void matmul_input_gradient(matrix_view<float> dx_TI,
                             matrix_view<const float> dy_TO,
                             matrix_view<const float> w_OI,
                             into mode = into::overwrite,
                             weight_order order = weight_order::out_in,
                             factor_type factors = factor_type::f32) override;
  void matmul_weight_gradient(matrix_view<float> dw_OI,
                              matrix_view<const float> dy_TO,
                              matrix_view<const float> x_TI,
                              weight_order order = weight_order::out_in,
                              factor_type factors = factor_type::f32) override;
  void bias_gradient(vector_view<float> db_O,
                     matrix_view<const float> dy_TO) override;

  packed_weight pack_weight(weight_type type, std::size_t rows,
                            std::size_t cols, const row_reader& read) override;
  void packed_matmul(matrix_view<float> y_TO, matrix_view<const float> x_TI,
                     const packed_weight& w_OI) override;

  void embedding(matrix_view<float> y_TD, matrix_view<const float> w_VD,
                 vector_view<const token_id> ids_T,
                 into mode = into::overwrite) override;
  void embedding_weight_gradient(matrix_view<float> dw_VD,
                                 matrix_view<const float> dy_TD,
                                 vector_view<const token_id> ids_T) override;

  void rmsnorm(matrix_view<float> y_TD, vector_view<float> r_T,
               matrix_view<const float> x_TD, vector_view<const float> w_D,
               float eps, float offset = 0) override;
  void rmsnorm_input_gradient(matrix_view<float> dx_TD,
                              matrix_view<const float> dy_TD,
                              matrix_view<const float> x_TD,
                              vector_view<const float> w_D,
                              vector_view<const float> r_T,
                              into mode = into::overwrite,
                              float offset = 0) override;
  void rmsnorm_weight_gradient(vector_view<float> dw_D,
                               matrix_view<const float> dy_TD,
                               matrix_view<const float> x_TD,
                               vector_view<const float> r_T) override;

  void layernorm(matrix_view<float> y_TD, matrix_view<float> stats_2T,
                 matrix_view<const float> x_TD, vector_view<const float> w_D,
                 vector_view<const float> b_D, float eps) override;
  void layernorm_input_gradient(matrix_view<float> dx_TD,
                                matrix_view<const float> dy_TD,
                                matrix_view<const float> x_TD,
                                vector_view<const float> w_D,
                                matrix_view<const float> stats_2T,
                                into mode = into::overwrite) override;
  void
  layernorm_weight_gradient(vector_view<float> dw_D, vector_view<float> db_D,
                            matrix_view<const float> dy_TD,
                            matrix_view<const float> x_TD,
                            matrix_view<const float> stats_2T) override;

  void
  rope(matrix_view<float> x_TNH, vector_view<const std::int32_t> positions_T,
       const rope_table& table) override;
  void rope_backward(matrix_view<float> dx_TNH,
                     vector_view<const std::int32_t> positions_T,
                     const rope_table& table) override;

  void attention(matrix_view<float> o_TNH, matrix_view<float> lse_NT,
                 matrix_view<const float> q_TNH, matrix_view<const float> k_TKH,
                 matrix_view<const float> v_TKH,
                 const attention_shape& shape) override;
  void attention_backward(
    matrix_view<float> dq_TNH, matrix_view<float> dk_TKH,
    matrix_view<float> dv_TKH, matrix_view<const float> do_TNH,
    matrix_view<const float> q_TNH, matrix_view<const float> k_TKH,
    matrix_view<const float> v_TKH, matrix_view<const float> o_TNH,
    matrix_view<const float> lse_NT, const attention_shape& shape) override;
  void append_paged(const kv_pages& cache, matrix_view<const float> k_TKH,
                    matrix_view<const float> v_TKH,
                    std::span<const paged_rows> sequences) override;
  void
  attention_paged(matrix_view<float> o_TNH, matrix_view<const float> q_TNH,
                  const kv_pages& cache, std::span<const paged_rows> sequences,
                  const attention_shape& shape) override;

  void swiglu(matrix_view<float> y_TF, matrix_view<const float> gate_TF,
              matrix_view<const float> up_TF) override;
  void swiglu_backward(matrix_view<float> dgate_TF, matrix_view<float> dup_TF,
                       matrix_view<const float> dy_TF,
                       matrix_view<const float> gate_TF,
                       matrix_view<const float> up_TF,
                       matrix_view<float> y_TF) override;

  void gelu(matrix_view<float> y_TF, matrix_view<const float> x_TF,
            gelu_form form) override;
  void gelu_backward(matrix_view<float> dx_TF, matrix_view<const float> dy_TF,
                     matrix_view<const float> x_TF, gelu_form form,
                     matrix_view<float> y_TF) override;
  void geglu(matrix_view<float> y_TF, matrix_view<const float> gate_TF,
             matrix_view<const float> up_TF, gelu_form form) override;
  void geglu_backward(matrix_view<float> dgate_TF, matrix_view<float> dup_TF,
                      matrix_view<const float> dy_TF,
                      matrix_view<const float> gate_TF,
                      matrix_view<const float> up_TF, gelu_form form,
                      matrix_view<float> y_TF) override;

  void
  route(routing& to, vector_view<float> weight_S, matrix_view<float> logits_TE,
        std::size_t per_token, bool normalised) override;
  void route_backward(matrix_view<float> p_TE,
                      vector_view<const float> dweight_S, const routing& routes,
                      bool normalised, float balance_scale) override;
  void
  combine(matrix_view<float> y_TD, matrix_view<const float> x_SD,
          vector_view<const float> weight_S, const routing& routes) override;
  void combine_backward(matrix_view<float> dx_SD, vector_view<float> dweight_S,
                        matrix_view<const float> dy_TD,
                        matrix_view<const float> x_SD,
                        vector_view<const float> weight_S,
                        const routing& routes) override;

  void cross_entropy(vector_view<float> loss_T, matrix_view<float> dlogits_TV,
                     matrix_view<const float> logits_TV,
                     vector_view<const token_id> targets_T, float scale,
                     float softcap = 0) override;

  void scale(matrix_view<float> x_TD, float factor) override;
  void softcap(matrix_view<float> x_TD, float cap) override;

  void add(matrix_view<float> y_TD, matrix_view<const float> a_TD,
           matrix_view<const float> b_TD) override;
  void add_both(vector_view<float> a_P, vector_view<float> b_P) override;

  void
  copy(matrix_view<float> to_TD, matrix_view<const float> from_TD) override;
  void copy(vector_view<float> to_P, vector_view<const float> from_P) override;
  void fill(vector_view<float> x_P, float value) override;

  void
  adamw(vector_view<float> w_P, vector_view<float> m_P, vector_view<float> v_P,
        vector_view<const float> g_P, const adamw_options& options) override;

  double sum_of_squares(vector_view<const float> g_P) override;

  sampled_token
  sample(vector_view<const float> logits_V, const sampling_options& options,
         sampling_generator& generator) override;
  float logprobs(vector_view<const float> logits_V, token_id of,
                 std::span<sampled_token> likely) override;

private:
  /// One buffer for each worker of the team.
  void prepare_scratch();

  /// packed_matmul() of q8 and q4.
  void quantised_matmul(matrix_view<float> y_TO, matrix_view<const float> x_TI,
                        const packed_weight& w_OI);

  product_engine engine_for(factor_type factors) const;

  thread_team& team_;
  /// Read once: a virtual machine may take 100 us to answer.
  const features features_ = usable_features();
  std::vector<std::vector<float>> scratch_; ///< grows to the largest call
  product_scratch products_;
  packed_memory packed_; ///< for the weights to be packed next
  rows_scratch rows_;
  quantised_rows codes_;
  i16_scratch i16_;
  std::vector<growing_bytes> attention_; ///< of each worker, with a cache
};

} // namespace shoal::kernels::cpu
