// tests/bench/kernels_bench.cpp -- speed of the cpu backend, a line per call.
//
// usage: kernels_bench [threads [rows [width [name]]]]   (default 1 512 512)
//
// Runs the lines whose name contains `name`. Prints the median over runs, the
// spread (median absolute deviation), GFLOP/s or GB/s, and for products the
// share of what one large square product reaches on one thread, times the
// threads. Times depend on the machine's present state: compare only runs of
// the same minute.
#include "kernels/backend.hpp"
#include "kernels/common/thread_team.hpp"
#include "kernels/inference/packed_weight.hpp"
#include "tests/support/kv_memory.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace {

using namespace shoal::kernels;
using clock_type = std::chrono::steady_clock;
using floats = std::vector<float>;

constexpr int runs = 15;
constexpr double run_seconds = 0.01;

struct timing {
  double median; ///< seconds per call
  double spread;
};

double middle(std::vector<double> values) {
  auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

using call = std::function<void()>;

timing measure(const call& run) {
  auto seconds_of = [&](int calls) {
    auto start = clock_type::now();
    for (int i = 0; i != calls; ++i)
      run();
    return std::chrono::duration<double>(clock_type::now() - start).count();
  };
  seconds_of(1);
  auto calls =
    1 + static_cast<int>(run_seconds / std::max(1e-9, seconds_of(1)));
  std::vector<double> times, off;
  for (int i = 0; i != runs; ++i)
    times.push_back(seconds_of(calls) / calls);
  auto median = middle(times);
  for (auto time : times)
    off.push_back(std::abs(time - median));
  return {median, middle(off)};
}

floats values(std::size_t count) {
  sampling_generator generator{count};
  floats result(count);
  for (auto& value : result)
    value = static_cast<float>(generator.next_unit() * 2 - 1);
  return result;
}

matrix_view<float> matrix(floats& from, std::size_t cols) {
  return {from.data(), from.size() / cols, cols};
}

/// Runs all operations for one shape and prints the results.
class report {
public:
  report(unsigned threads, std::size_t rows, std::size_t width,
         std::string only)
    : team_(threads), on_(make_cpu_backend(team_)), T(rows), D(width),
      only_(std::move(only)) {
    std::printf("%s, %u threads, %zu rows, width %zu\n", on_->name().c_str(),
                threads, rows, width);
  }

  void run() {
    find_peak();
    products(D, D);
    products(D, D * 11 / 4);
    products(D * 11 / 4, D);
    attentions();
    row_operations();
    optimizer();
    decoding();
    for (const auto type : {weight_type::f32, weight_type::bf16,
                            weight_type::q8, weight_type::q4})
      packed_products(type);
  }

private:
  bool wanted(const std::string& name) const {
    return name.find(only_) != std::string::npos;
  }

  /// Measures and prints `run` if its name is asked for.
  void
  line(const std::string& name, const call& run, double flops, double bytes) {
    if (!wanted(name))
      return;
    const timing t = measure(run);
    std::printf("%-32s %9.1f us +- %4.1f %%", name.c_str(), t.median * 1e6,
                100 * t.spread / t.median);
    if (flops > 0)
      std::printf(" %8.1f GFLOP/s %4.0f %% of peak", flops / t.median * 1e-9,
                  100 * flops / t.median / (peak_ * team_.size()));
    if (bytes > 0)
      std::printf(" %8.1f GB/s", bytes / t.median * 1e-9);
    std::printf("\n");
  }

  void find_peak() {
    constexpr std::size_t side = 1024;
    thread_team alone{1};
    auto on = make_cpu_backend(alone);
    auto x = values(side * side), w = values(side * side);
    floats y(side * side);
    auto t = measure(
      [&] { on->matmul(matrix(y, side), matrix(x, side), matrix(w, side)); });
    peak_ = 2.0 * side * side * side / t.median;
    std::printf("one thread, %zu cubed: %.1f GFLOP/s\n", side, peak_ * 1e-9);
  }

  void products(std::size_t I, std::size_t O) {
    auto x = values(T * I), w = values(O * I), dy = values(T * O);
    floats y(T * O), dx(T * I), dw(O * I);
    auto flops = 2.0 * static_cast<double>(T * I * O);
    std::string size{" "};
    size += std::to_string(I);
    size += "->";
    size += std::to_string(O);
    line("matmul" + size,
         call([&] { on_->matmul(matrix(y, O), matrix(x, I), matrix(w, I)); }),
         flops, 0);
    line("matmul B" + size, call([&] {
           on_->matmul_input_gradient(matrix(dx, I), matrix(dy, O),
                                      matrix(w, I));
         }),
         flops, 0);
    line("matmul W" + size, call([&] {
           on_->matmul_weight_gradient(matrix(dw, I), matrix(dy, O),
                                       matrix(x, I));
         }),
         flops, 0);
  }

  void attentions() {
    constexpr std::size_t H = 64;
    auto N = std::max<std::size_t>(2, D / H), K = N / 2;
    N = 2 * K;
    attention_shape s{1, T, N, K, H, 0.125f};
    auto q = values(T * N * H), k = values(T * K * H), v = values(T * K * H);
    auto d_o = values(T * N * H);
    floats o(T * N * H), lse(N * T), dq(T * N * H), dk(T * K * H),
      dv(T * K * H);
    auto flops = 2.0 * static_cast<double>(N * T * T * H); // causal: half of 4
    line("attention", call([&] {
           on_->attention(matrix(o, N * H), matrix(lse, T), matrix(q, N * H),
                          matrix(k, K * H), matrix(v, K * H), s);
         }),
         flops, 0);
    line("attention backward", call([&] {
           on_->attention_backward(
             matrix(dq, N * H), matrix(dk, K * H), matrix(dv, K * H),
             matrix(d_o, N * H), matrix(q, N * H), matrix(k, K * H),
             matrix(v, K * H), matrix(o, N * H), matrix(lse, T), s);
         }),
         2.5 * flops, 0);
    for (const auto type : {kv_type::f32, kv_type::bf16, kv_type::q8})
      paged(type, s);
  }

  void paged(kv_type type, const attention_shape& s) {
    const auto NH = s.heads * s.head_size, KH = s.kv_heads * s.head_size;
    auto q = values(T * NH), k = values(T * KH), v = values(T * KH);
    floats o(T * NH);
    shoal::tests::one_sequence_cache cache(type, T, s);
    const auto append = [&] {
      cache.clear();
      cache.append(*on_, matrix(k, KH), matrix(v, KH));
    };
    append();
    const std::string of = std::string(" ") + name_of(type);
    line("append" + of, call(append), 0, 4.0 * static_cast<double>(2 * T * KH));
    line("attention, 1 against cache" + of, call([&] {
           cache.attend(*on_, {o.data(), 1, NH}, {q.data(), 1, NH}, s);
         }),
         0,
         double(T / kv_page_positions
                * kv_page_bytes(type, s.kv_heads, s.head_size)));
    line("attention, prompt with cache" + of,
         call([&] { cache.attend(*on_, matrix(o, NH), matrix(q, NH), s); }),
         2.0 * static_cast<double>(s.heads * T * T * s.head_size), 0);
  }

  void row_operations() {
    auto bytes = 4.0 * static_cast<double>(T * D);
    auto x = values(T * D), y = values(T * D), z = values(T * D);
    auto dx = values(T * D), w = values(D);
    floats r(T), dw(D), loss(T);
    std::vector<token_id> ids(T);
    for (std::size_t t = 0; t != T; ++t)
      ids[t] = static_cast<token_id>(t % D);
    auto table = make_rope_table(64, T, 10000);
    auto N = D / 64 * 64;
    auto m = [&](floats& from) { return matrix(from, D); };
    line("add", call([&] { on_->add(m(z), m(x), m(y)); }), 0, 3 * bytes);
    line("rmsnorm", call([&] { on_->rmsnorm(m(z), r, m(x), w, 1e-5f); }), 0,
         2 * bytes);
    line("rmsnorm B",
         call([&] { on_->rmsnorm_input_gradient(m(z), m(y), m(x), w, r); }), 0,
         3 * bytes);
    line("rmsnorm W",
         call([&] { on_->rmsnorm_weight_gradient(dw, m(y), m(x), r); }), 0,
         2 * bytes);
    if (N != 0)
      line("rope", call([&] { on_->rope(m(z).slice_cols(0, N), ids, table); }),
           0, 2 * bytes);
    line("swiglu", call([&] { on_->swiglu(m(z), m(x), m(y)); }), 0, 3 * bytes);
    line("swiglu backward",
         call([&] { on_->swiglu_backward(m(z), m(dx), m(y), m(x), m(y)); }), 0,
         5 * bytes);
    line("cross entropy",
         call([&] { on_->cross_entropy(loss, m(z), m(x), ids, 1); }), 0,
         2 * bytes);
    line("embedding", call([&] { on_->embedding(m(z), m(x), ids); }), 0,
         2 * bytes);
    line("embedding W",
         call([&] { on_->embedding_weight_gradient(m(z), m(y), ids); }), 0,
         3 * bytes);
  }

  void optimizer() {
    constexpr std::size_t P = 1 << 20;
    auto w = values(P), g = values(P);
    floats m(P), v(P);
    adamw_options options;
    line("adamw, 1 Mi values", call([&] { on_->adamw(w, m, v, g, options); }),
         0, 28.0 * P);
    double sum = 0;
    line("sum of squares, 1 Mi values",
         call([&] { sum += on_->sum_of_squares(g); }), 0, 4.0 * P);
  }

  void decoding() {
    auto x = values(D), w = values(4 * D * D);
    floats y(4 * D);
    line("matmul, 1 row", call([&] {
           on_->matmul(matrix(y, 4 * D), matrix(x, D), matrix(w, D));
         }),
         0, 16.0 * static_cast<double>(D * D));
  }

  /// A weight for inference of more than 16 MiB in f32, if the width is 2048.
  void packed_products(weight_type type) {
    std::string name = "packed ";
    name += name_of(type);
    if (!wanted(name))
      return;
    const auto O = D * 11 / 4;
    auto x = values(T * D), w = values(D);
    floats y(T * O);
    const auto weight =
      on_->pack_weight(type, O, D, [&](std::size_t row, float* to) {
        for (std::size_t i = 0; i != D; ++i)
          to[i] = w[(i + 7 * row) % D];
      });
    const auto t =
      call([&] { on_->packed_matmul(matrix(y, O), matrix(x, D), weight); });
    const auto flops = 2.0 * static_cast<double>(T * D * O);
    line(name, t, flops, static_cast<double>(weight.bytes()));
  }

  thread_team team_;
  std::unique_ptr<backend> on_;
  std::size_t T, D;
  std::string only_; ///< part of the names of the lines; empty: all
  double peak_ = 1;
};

} // namespace

int main(int argc, char** argv) {
  auto number = [&](int i, std::size_t otherwise) {
    return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
  };
  auto threads = number(1, 1), rows = number(2, 512), width = number(3, 512);
  if (threads < 1 || threads > thread_team::threads_max || rows < 1
      || width < 1) {
    std::fprintf(stderr,
                 "usage: kernels_bench [threads [rows [width [name]]]]\n");
    return 2;
  }
  report{static_cast<unsigned>(threads), rows, width, argc > 4 ? argv[4] : ""}
    .run();
  return 0;
}
