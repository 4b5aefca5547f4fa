// runtime/work/cut_backend.hpp -- a backend whose long calls leave room for urgent
// work.
//
// Usual work on a device computes through one. Before each call, and between the
// pieces of a long one, urgent work may run. While such work comes, a call that
// takes long is cut into pieces of about piece_max each: a product by columns of
// its result, attention by sequences and heads, and what goes value by value or
// against a cache by rows. How long a call will take is learnt from those before.
//
// Otherwise calls are passed on whole, since a cut product packs its left operand
// again for each piece.
//
// The bits of a result are the same cut or whole: each value is one sum in the
// same order (kernels/README.md).
//
// Not cut: calls that add up all their values into one or a few, route, sample,
// pack or append to a cache. They are short, or come when a job begins.
//
// Threads: those of the backend behind it. Cost: two loads for each call.
#pragma once

#include "kernels/backend.hpp"
#include "runtime/core/ids.hpp"

#include <array>

namespace shoal::runtime {

class cut_backend final : public kernels::backend {
public:
  static constexpr core::nanoseconds piece_max = 20'000'000;

  class urgent_work {
  public:
    /// Whether urgent work comes, so that long calls are to be cut.
    virtual bool comes() const noexcept = 0;
    /// Runs what waits. It may use the backend behind this one, and reads and
    /// writes nothing that usual work writes.
    virtual void run() = 0;

  protected:
    ~urgent_work() = default;
  };

  /// Both outlive this object.
  /// @param longest the time that a piece should take at most
  cut_backend(kernels::backend& whole, urgent_work& urgent,
              core::nanoseconds longest = piece_max)
    : whole_(whole), urgent_(urgent), longest_(double(longest)) {}

  std::string name() const override { return whole_.name(); }
  std::string libraries() const override { return whole_.libraries(); }

  // kernels/layers/matmul.hpp
  void
  matmul(kernels::matrix_view<float> y_TO,
         kernels::matrix_view<const float> x_TI,
         kernels::matrix_view<const float> w_OI,
         kernels::vector_view<const float> bias_O, kernels::weight_order order,
         kernels::factor_type factors) override;
  void matmul_input_gradient(kernels::matrix_view<float> dx_TI,
                             kernels::matrix_view<const float> dy_TO,
                             kernels::matrix_view<const float> w_OI,
                             kernels::into mode, kernels::weight_order order,
                             kernels::factor_type factors) override;
  void matmul_weight_gradient(kernels::matrix_view<float> dw_OI,
                              kernels::matrix_view<const float> dy_TO,
                              kernels::matrix_view<const float> x_TI,
                              kernels::weight_order order,
                              kernels::factor_type factors) override;
  void bias_gradient(kernels::vector_view<float> db_O,
                     kernels::matrix_view<const float> dy_TO) override;

  // kernels/inference/packed_weight.hpp
  kernels::packed_weight
  pack_weight(kernels::weight_type type, std::size_t rows, std::size_t cols,
              const kernels::row_reader& read) override;
  void packed_matmul(kernels::matrix_view<float> y_TO,
                     kernels::matrix_view<const float> x_TI,
                     const kernels::packed_weight& w_OI) override;

  // kernels/layers/embedding.hpp
  void embedding(kernels::matrix_view<float> y_TD,
                 kernels::matrix_view<const float> w_VD,
                 kernels::vector_view<const kernels::token_id> ids_T,
                 kernels::into mode) override;
  void embedding_weight_gradient(
    kernels::matrix_view<float> dw_VD, kernels::matrix_view<const float> dy_TD,
    kernels::vector_view<const kernels::token_id> ids_T) override;

  // kernels/layers/rmsnorm.hpp, kernels/layers/layernorm.hpp
  void
  rmsnorm(kernels::matrix_view<float> y_TD, kernels::vector_view<float> r_T,
          kernels::matrix_view<const float> x_TD,
          kernels::vector_view<const float> w_D, float eps,
          float offset) override;
  void rmsnorm_input_gradient(kernels::matrix_view<float> dx_TD,
                              kernels::matrix_view<const float> dy_TD,
                              kernels::matrix_view<const float> x_TD,
                              kernels::vector_view<const float> w_D,
                              kernels::vector_view<const float> r_T,
                              kernels::into mode, float offset) override;
  void rmsnorm_weight_gradient(kernels::vector_view<float> dw_D,
                               kernels::matrix_view<const float> dy_TD,
                               kernels::matrix_view<const float> x_TD,
                               kernels::vector_view<const float> r_T) override;
  void layernorm(kernels::matrix_view<float> y_TD,
                 kernels::matrix_view<float> stats_2T,
                 kernels::matrix_view<const float> x_TD,
                 kernels::vector_view<const float> w_D,
                 kernels::vector_view<const float> b_D, float eps) override;
  void layernorm_input_gradient(kernels::matrix_view<float> dx_TD,
                                kernels::matrix_view<const float> dy_TD,
                                kernels::matrix_view<const float> x_TD,
                                kernels::vector_view<const float> w_D,
                                kernels::matrix_view<const float> stats_2T,
                                kernels::into mode) override;
  void layernorm_weight_gradient(
    kernels::vector_view<float> dw_D, kernels::vector_view<float> db_D,
    kernels::matrix_view<const float> dy_TD,
    kernels::matrix_view<const float> x_TD,
    kernels::matrix_view<const float> stats_2T) override;

  // kernels/layers/rope.hpp
  void rope(kernels::matrix_view<float> x_TNH,
            kernels::vector_view<const std::int32_t> positions_T,
            const kernels::rope_table& table) override;
  void rope_backward(kernels::matrix_view<float> dx_TNH,
                     kernels::vector_view<const std::int32_t> positions_T,
                     const kernels::rope_table& table) override;

  // kernels/layers/attention.hpp
  void attention(kernels::matrix_view<float> o_TNH,
                 kernels::matrix_view<float> lse_NT,
                 kernels::matrix_view<const float> q_TNH,
                 kernels::matrix_view<const float> k_TKH,
                 kernels::matrix_view<const float> v_TKH,
                 const kernels::attention_shape& shape) override;
  void attention_backward(kernels::matrix_view<float> dq_TNH,
                          kernels::matrix_view<float> dk_TKH,
                          kernels::matrix_view<float> dv_TKH,
                          kernels::matrix_view<const float> do_TNH,
                          kernels::matrix_view<const float> q_TNH,
                          kernels::matrix_view<const float> k_TKH,
                          kernels::matrix_view<const float> v_TKH,
                          kernels::matrix_view<const float> o_TNH,
                          kernels::matrix_view<const float> lse_NT,
                          const kernels::attention_shape& shape) override;

  // kernels/inference/paged_attention.hpp
  void append_paged(const kernels::kv_pages& cache,
                    kernels::matrix_view<const float> k_TKH,
                    kernels::matrix_view<const float> v_TKH,
                    std::span<const kernels::paged_rows> sequences) override;
  void attention_paged(kernels::matrix_view<float> o_TNH,
                       kernels::matrix_view<const float> q_TNH,
                       const kernels::kv_pages& cache,
                       std::span<const kernels::paged_rows> sequences,
                       const kernels::attention_shape& shape) override;

  // kernels/layers/swiglu.hpp, kernels/layers/gelu.hpp
  void swiglu(kernels::matrix_view<float> y_TF,
              kernels::matrix_view<const float> gate_TF,
              kernels::matrix_view<const float> up_TF) override;
  void swiglu_backward(kernels::matrix_view<float> dgate_TF,
                       kernels::matrix_view<float> dup_TF,
                       kernels::matrix_view<const float> dy_TF,
                       kernels::matrix_view<const float> gate_TF,
                       kernels::matrix_view<const float> up_TF,
                       kernels::matrix_view<float> y_TF) override;
  void
  gelu(kernels::matrix_view<float> y_TF, kernels::matrix_view<const float> x_TF,
       kernels::gelu_form form) override;
  void
  gelu_backward(kernels::matrix_view<float> dx_TF,
                kernels::matrix_view<const float> dy_TF,
                kernels::matrix_view<const float> x_TF, kernels::gelu_form form,
                kernels::matrix_view<float> y_TF) override;
  void geglu(kernels::matrix_view<float> y_TF,
             kernels::matrix_view<const float> gate_TF,
             kernels::matrix_view<const float> up_TF,
             kernels::gelu_form form) override;
  void geglu_backward(kernels::matrix_view<float> dgate_TF,
                      kernels::matrix_view<float> dup_TF,
                      kernels::matrix_view<const float> dy_TF,
                      kernels::matrix_view<const float> gate_TF,
                      kernels::matrix_view<const float> up_TF,
                      kernels::gelu_form form,
                      kernels::matrix_view<float> y_TF) override;

  // kernels/layers/routing.hpp
  void route(kernels::routing& to, kernels::vector_view<float> weight_S,
             kernels::matrix_view<float> logits_TE, std::size_t per_token,
             bool normalised) override;
  void route_backward(kernels::matrix_view<float> p_TE,
                      kernels::vector_view<const float> dweight_S,
                      const kernels::routing& routes, bool normalised,
                      float balance_scale) override;
  void combine(kernels::matrix_view<float> y_TD,
               kernels::matrix_view<const float> x_SD,
               kernels::vector_view<const float> weight_S,
               const kernels::routing& routes) override;
  void combine_backward(kernels::matrix_view<float> dx_SD,
                        kernels::vector_view<float> dweight_S,
                        kernels::matrix_view<const float> dy_TD,
                        kernels::matrix_view<const float> x_SD,
                        kernels::vector_view<const float> weight_S,
                        const kernels::routing& routes) override;

  // kernels/training/cross_entropy.hpp
  void cross_entropy(kernels::vector_view<float> loss_T,
                     kernels::matrix_view<float> dlogits_TV,
                     kernels::matrix_view<const float> logits_TV,
                     kernels::vector_view<const kernels::token_id> targets_T,
                     float scale, float softcap) override;

  // kernels/layers/copy.hpp, kernels/layers/add.hpp, kernels/layers/scale.hpp
  void copy(kernels::matrix_view<float> to_TD,
            kernels::matrix_view<const float> from_TD) override;
  void copy(kernels::vector_view<float> to_P,
            kernels::vector_view<const float> from_P) override;
  void fill(kernels::vector_view<float> x_P, float value) override;
  void
  add(kernels::matrix_view<float> y_TD, kernels::matrix_view<const float> a_TD,
      kernels::matrix_view<const float> b_TD) override;
  void add_both(kernels::vector_view<float> a_P,
                kernels::vector_view<float> b_P) override;
  void scale(kernels::matrix_view<float> x_TD, float factor) override;
  void softcap(kernels::matrix_view<float> x_TD, float cap) override;

  // kernels/training/adamw.hpp, kernels/training/sum_of_squares.hpp, kernels/inference/sampling.hpp
  void
  adamw(kernels::vector_view<float> w_P, kernels::vector_view<float> m_P,
        kernels::vector_view<float> v_P, kernels::vector_view<const float> g_P,
        const kernels::adamw_options& options) override;
  double sum_of_squares(kernels::vector_view<const float> g_P) override;
  kernels::sampled_token
  sample(kernels::vector_view<const float> logits_V,
         const kernels::sampling_options& options,
         kernels::sampling_generator& generator) override;
  float
  logprobs(kernels::vector_view<const float> logits_V, kernels::token_id of,
           std::span<kernels::sampled_token> likely) override;

private:
  /// Kinds of calls of about one speed.
  enum kind : std::size_t { product, heads, values, kinds };

  void rest() { urgent_.run(); }
  [[nodiscard]] std::size_t
  pieces(kind of, double work, std::size_t parts_max) const;
  template <class Call>
  void timed(kind of, double work, const Call& call);
  template <class Call>
  void in_pieces(kind of, double work, std::size_t count, std::size_t step,
                 const Call& call);
  template <class Call>
  void by_heads(const kernels::attention_shape& shape, double work,
                const Call& call);

  kernels::backend& whole_;
  urgent_work& urgent_;
  double longest_;
  /// Nanoseconds for one multiply-add or value, as last measured; at first those
  /// of a slow machine.
  std::array<double, kinds> cost_{0.2, 0.2, 2.0};
};

} // namespace shoal::runtime
