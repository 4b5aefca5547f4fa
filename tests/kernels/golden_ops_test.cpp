// tests/kernels/golden_ops_test.cpp -- every operation against PyTorch.
//
// Goal: to find a formula that is wrong in both reference/ and cpu/. The inputs
// and PyTorch's results are in tests/golden/ops.safetensors; make_op_goldens.py
// beside it describes each tensor.
#include "runtime/model/files/safetensors.hpp"
#include "tests/kernels/harness.hpp"
#include "tests/support/kv_memory.hpp"

#include <boost/test/data/test_case.hpp>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

namespace shoal::tests {

BOOST_AUTO_TEST_SUITE(golden_ops)

namespace {

using kernels::backend;
using kernels::token_id;
using kernels::weight_type;

const model::safetensors_source& goldens() {
  static const auto file = [] {
    const char* folder = std::getenv("SHOAL_GOLDEN");
    return model::safetensors_source::open(
      std::filesystem::path(folder != nullptr ? folder : "tests/golden")
      / "ops.safetensors");
  }();
  BOOST_REQUIRE_MESSAGE(file, (file ? "" : file.message()));
  return *file;
}

/// The tensors of one case.
class golden_case {
public:
  explicit golden_case(std::string name) : name_(std::move(name)) {}

  floats operator[](const std::string& tensor) const {
    const auto& found = find(tensor);
    floats values(found.count);
    BOOST_REQUIRE(goldens().read(found.name, found.shape, values));
    return values;
  }
  std::size_t cols(const std::string& tensor) const {
    return find(tensor).shape.back();
  }
  /// An option.
  float number(const std::string& tensor) const { return (*this)[tensor][0]; }
  std::size_t count(const std::string& tensor) const {
    return static_cast<std::size_t>(number(tensor));
  }
  std::vector<std::int32_t> ids(const std::string& tensor) const {
    const auto values = (*this)[tensor];
    return {values.begin(), values.end()};
  }
  bool has(const std::string& tensor) const {
    return goldens().find(name_ + "/" + tensor) != nullptr;
  }
  /// Of OPERATION.VARIANT.
  std::string variant() const {
    const auto dot = name_.find('.');
    return dot == std::string::npos ? "" : name_.substr(dot + 1);
  }

private:
  const model::stored_tensor& find(const std::string& tensor) const {
    const auto* found = goldens().find(name_ + "/" + tensor);
    BOOST_REQUIRE_MESSAGE(found != nullptr, name_ << "/" << tensor);
    return *found;
  }

  std::string name_;
};

/// What an operation gave, by the name of the golden tensor that it should be.
using results = std::multimap<std::string, floats>;
using operation = results (*)(backend&, const golden_case&);

results matmul(backend& on, const golden_case& c) {
  const auto x = c["x"], w = c["w"], dy = c["dy"];
  const auto b = c.has("b") ? c["b"] : floats{};
  const auto I = c.cols("x"), O = c.cols("dy"), W = c.cols("w");
  const auto order = c.variant() == "in_out" ? kernels::weight_order::in_out
                                             : kernels::weight_order::out_in;
  const auto factors = c.variant() == "bf16" ? kernels::factor_type::bf16
                                             : kernels::factor_type::f32;
  floats y(dy.size()), dx(x.size()), dw(w.size()), db(b.size());
  on.matmul(matrix(y, O), matrix(x, I), matrix(w, W), b, order, factors);
  on.matmul_input_gradient(matrix(dx, I), matrix(dy, O), matrix(w, W),
                           kernels::into::overwrite, order, factors);
  on.matmul_weight_gradient(matrix(dw, W), matrix(dy, O), matrix(x, I), order,
                            factors);
  results out{{"y", y}, {"dx", dx}, {"dw", dw}};
  if (!b.empty()) {
    on.bias_gradient(db, matrix(dy, O));
    out.emplace("db", db);
  }
  if (c.variant() != "bf16")
    return out;
  // Values that bf16 holds: as a weight for inference, too, of many tokens and
  // of one at a time.
  for (const auto type : {weight_type::f32, weight_type::bf16}) {
    const auto packed =
      on.pack_weight(type, O, I, [&](std::size_t row, float* to) {
        std::copy_n(w.data() + row * I, I, to);
      });
    on.packed_matmul(matrix(y, O), matrix(x, I), packed);
    out.emplace("y", y);
    for (std::size_t t = 0; t != y.size() / O; ++t)
      on.packed_matmul(matrix(y, O).slice_rows(t, t + 1),
                       matrix(x, I).slice_rows(t, t + 1), packed);
    out.emplace("y", y);
  }
  return out;
}

results embedding(backend& on, const golden_case& c) {
  const auto w = c["w"], dy = c["dy"];
  const auto ids = c.ids("ids");
  const auto D = c.cols("w");
  floats y(dy.size()), added = c["before"], dw(w.size());
  on.embedding(matrix(y, D), matrix(w, D), ids);
  on.embedding(matrix(added, D), matrix(w, D), ids, kernels::into::add);
  on.embedding_weight_gradient(matrix(dw, D), matrix(dy, D), ids);
  return {{"y", y}, {"added", added}, {"dw", dw}};
}

results rmsnorm(backend& on, const golden_case& c) {
  const auto x = c["x"], w = c["w"], dy = c["dy"];
  const auto D = c.cols("x");
  const auto offset = c.number("offset");
  floats y(x.size()), r(x.size() / D), dx(x.size()), dw(D);
  on.rmsnorm(matrix(y, D), r, matrix(x, D), w, c.number("eps"), offset);
  on.rmsnorm_input_gradient(matrix(dx, D), matrix(dy, D), matrix(x, D), w, r,
                            kernels::into::overwrite, offset);
  on.rmsnorm_weight_gradient(dw, matrix(dy, D), matrix(x, D), r);
  return {{"y", y}, {"dx", dx}, {"dw", dw}};
}

results layernorm(backend& on, const golden_case& c) {
  const auto x = c["x"], w = c["w"], b = c["b"], dy = c["dy"];
  const auto D = c.cols("x"), T = x.size() / D;
  floats y(x.size()), stats(2 * T), dx(x.size()), dw(D), db(D);
  const auto& cstats = stats;
  on.layernorm(matrix(y, D), matrix(stats, T), matrix(x, D), w, b,
               c.number("eps"));
  on.layernorm_input_gradient(matrix(dx, D), matrix(dy, D), matrix(x, D), w,
                              matrix(cstats, T));
  on.layernorm_weight_gradient(dw, db, matrix(dy, D), matrix(x, D),
                               matrix(cstats, T));
  return {{"y", y}, {"stats", stats}, {"dx", dx}, {"dw", dw}, {"db", db}};
}

results rope(backend& on, const golden_case& c) {
  const auto positions = c.ids("positions");
  const auto table =
    kernels::make_rope_table(c.count("size"), 50, double{c.number("theta")});
  const auto NH = c.cols("x");
  auto y = c["x"], dx = c["dy"], x = c["y"];
  on.rope(matrix(y, NH), positions, table);
  on.rope_backward(matrix(dx, NH), positions, table);
  on.rope_backward(matrix(x, NH), positions, table); // the inverse
  return {{"y", y}, {"dx", dx}, {"x", x}};
}

results attention(backend& on, const golden_case& c) {
  const kernels::attention_shape s{c.count("batch"),  c.count("tokens"),
                                   c.count("heads"),  c.count("kv_heads"),
                                   c.count("size"),   c.number("scale"),
                                   c.count("window"), c.number("softcap")};
  const auto q = c["q"], k = c["k"], v = c["v"], d_o = c["do"];
  const auto NH = c.cols("q"), KH = c.cols("k"), T = s.tokens;
  floats o(q.size()), lse(s.batch * s.heads * T);
  floats dq(q.size()), dk(k.size()), dv(v.size());
  const auto &co = o, &clse = lse;
  on.attention(matrix(o, NH), matrix(lse, T), matrix(q, NH), matrix(k, KH),
               matrix(v, KH), s);
  on.attention_backward(matrix(dq, NH), matrix(dk, KH), matrix(dv, KH),
                        matrix(d_o, NH), matrix(q, NH), matrix(k, KH),
                        matrix(v, KH), matrix(co, NH), matrix(clse, T), s);
  // The same against a cache: half of each sequence, then token by token.
  floats cached(q.size());
  for (std::size_t b = 0; b != s.batch; ++b) {
    one_sequence_cache cache(kernels::kv_type::f32, T, s);
    for (std::size_t first = 0, last = T / 2; first != T; first = last++) {
      const auto begin = b * T + first, end = b * T + last;
      cache.append(on, matrix(k, KH).slice_rows(begin, end),
                   matrix(v, KH).slice_rows(begin, end));
      cache.attend(on, matrix(cached, NH).slice_rows(begin, end),
                   matrix(q, NH).slice_rows(begin, end), s);
    }
  }
  return {{"o", o},   {"o", cached}, {"lse", lse},
          {"dq", dq}, {"dk", dk},    {"dv", dv}};
}

results swiglu(backend& on, const golden_case& c) {
  const auto gate = c["gate"], up = c["up"], dy = c["dy"];
  const auto F = c.cols("gate");
  floats y(gate.size()), dgate(gate.size()), dup(gate.size());
  on.swiglu(matrix(y, F), matrix(gate, F), matrix(up, F));
  on.swiglu_backward(matrix(dgate, F), matrix(dup, F), matrix(dy, F),
                     matrix(gate, F), matrix(up, F));
  return {{"y", y}, {"dgate", dgate}, {"dup", dup}};
}

kernels::gelu_form form_of(const golden_case& c) {
  return c.variant() == "tanh" ? kernels::gelu_form::tanh
                               : kernels::gelu_form::exact;
}

results gelu(backend& on, const golden_case& c) {
  const auto x = c["x"], dy = c["dy"];
  const auto F = c.cols("x");
  floats y(x.size()), dx(x.size());
  on.gelu(matrix(y, F), matrix(x, F), form_of(c));
  on.gelu_backward(matrix(dx, F), matrix(dy, F), matrix(x, F), form_of(c));
  return {{"y", y}, {"dx", dx}};
}

results geglu(backend& on, const golden_case& c) {
  const auto gate = c["gate"], up = c["up"], dy = c["dy"];
  const auto F = c.cols("gate");
  floats y(gate.size()), dgate(gate.size()), dup(gate.size());
  on.geglu(matrix(y, F), matrix(gate, F), matrix(up, F), form_of(c));
  on.geglu_backward(matrix(dgate, F), matrix(dup, F), matrix(dy, F),
                    matrix(gate, F), matrix(up, F), form_of(c));
  return {{"y", y}, {"dgate", dgate}, {"dup", dup}};
}

results routing(backend& on, const golden_case& c) {
  const auto E = c.cols("logits"), D = c.cols("dy"), k = c.cols("weight");
  const auto normalised = c.number("normalised") != 0;
  const auto dy = c["dy"], x_ETD = c["x"];
  auto p = c["logits"];
  const auto T = p.size() / E, S = T * k;
  kernels::routing by;
  floats weight(S), x(S * D), y(T * D), plain(T * D), dx(S * D), dweight(S);
  on.route(by, weight, matrix(p, E), k, normalised);
  floats chosen(S), weight_Tk(S), dweight_Tk(S), dx_ETD(x_ETD.size());
  std::vector<std::size_t> from(S); // the row of x_ETD
  for (std::size_t e = 0; e != E; ++e)
    for (auto s = by.first_row[e]; s != by.first_row[e + 1]; ++s) {
      from[s] = e * T + static_cast<std::size_t>(by.row_token[s]);
      std::copy_n(x_ETD.data() + from[s] * D, D, x.data() + s * D);
    }
  const auto& cx = x;
  on.combine(matrix(y, D), matrix(cx, D), weight, by);
  on.combine(matrix(plain, D), matrix(cx, D), {}, by);
  on.combine_backward(matrix(dx, D), dweight, matrix(dy, D), matrix(cx, D),
                      weight, by);
  auto dlogits = p;
  on.route_backward(matrix(dlogits, E), dweight, by, normalised,
                    c.number("balance_scale"));
  for (std::size_t i = 0; i != S; ++i) {
    const auto s = by.token_row[i];
    chosen[i] = static_cast<float>(from[s] / T);
    weight_Tk[i] = weight[s];
    dweight_Tk[i] = dweight[s];
    std::copy_n(dx.data() + s * D, D, dx_ETD.data() + from[s] * D);
  }
  return {{"p", p},
          {"chosen", chosen},
          {"weight", weight_Tk},
          {"y", y},
          {"plain", plain},
          {"dweight", dweight_Tk},
          {"dlogits", dlogits},
          {"dx", dx_ETD}};
}

results cross_entropy(backend& on, const golden_case& c) {
  const auto logits = c["logits"];
  const auto targets = c.ids("targets");
  const auto V = c.cols("logits");
  floats loss(targets.size()), dlogits(logits.size());
  on.cross_entropy(loss, matrix(dlogits, V), matrix(logits, V), targets,
                   c.number("scale"), c.number("softcap"));
  return {{"loss", loss}, {"dlogits", dlogits}};
}

results add(backend& on, const golden_case& c) {
  const auto a = c["a"], b = c["b"];
  const auto D = c.cols("a");
  floats y(a.size());
  on.add(matrix(y, D), matrix(a, D), matrix(b, D));
  return {{"y", y}};
}

results scale(backend& on, const golden_case& c) {
  auto x = c["x"];
  on.scale(matrix(x, c.cols("x")), c.number("factor"));
  return {{"y", x}};
}

results softcap(backend& on, const golden_case& c) {
  auto x = c["x"];
  on.softcap(matrix(x, c.cols("x")), c.number("cap"));
  return {{"y", x}};
}

results adamw(backend& on, const golden_case& c) {
  auto w = c["start"];
  const auto P = w.size();
  floats m(P), v(P);
  const auto g = c["g"];
  kernels::adamw_options options;
  options.learning_rate = c.number("lr");
  options.beta1 = c.number("beta1");
  options.beta2 = c.number("beta2");
  options.epsilon = c.number("eps");
  options.weight_decay = c.number("decay");
  options.gradient_scale = c.number("clip");
  for (options.step = 1; options.step <= g.size() / P; ++options.step)
    on.adamw(w, m, v, {g.data() + (options.step - 1) * P, P}, options);
  return {{"w", w}, {"m", m}, {"v", v}};
}

results sum_of_squares(backend& on, const golden_case& c) {
  return {{"sum", {static_cast<float>(on.sum_of_squares(c["g"]))}}};
}

/// The state from which a generator's next_unit() is `unit`: what next() does
/// to its state, undone from end to beginning.
kernels::sampling_generator generator_before(double unit) {
  const auto unmultiply = [](std::uint64_t z, std::uint64_t by) {
    std::uint64_t inverse = by; // Newton's iteration: 3 bits right, then 6, ..
    for (int bits = 3; bits < 64; bits *= 2)
      inverse *= 2 - by * inverse;
    return z * inverse;
  };
  const auto unshift = [](std::uint64_t z, int by) {
    auto x = z;
    for (int bits = by; bits < 64; bits += by)
      x = z ^ (x >> by);
    return x;
  };
  auto z = static_cast<std::uint64_t>(unit * 0x1p53) << 11;
  z = unmultiply(unshift(z, 31), 0x94d049bb133111eb);
  z = unmultiply(unshift(z, 27), 0xbf58476d1ce4e5b9);
  return {unshift(z, 30) - 0x9e3779b97f4a7c15};
}

// Each token has one interval of the unit that is drawn; its length is the
// token's probability.
results sampling(backend& on, const golden_case& c) {
  const auto logits = c["logits"];
  const auto seen = c.ids("seen");
  const kernels::sampling_options options{
    .temperature = c.number("temperature"),
    .top_k = static_cast<std::uint32_t>(c.count("top_k")),
    .top_p = c.number("top_p"),
    .min_p = c.number("min_p"),
    .repetition_penalty = c.number("penalty"),
    .seen = seen};
  floats logprob = c["logprob"]; // of those that are never drawn
  const auto id_at = [&](double unit) {
    auto generator = generator_before(unit);
    const auto token = on.sample(logits, options, generator);
    logprob[static_cast<std::size_t>(token.id)] = token.logprob;
    return static_cast<std::size_t>(token.id);
  };
  std::vector<double> p(logits.size());
  const auto split = [&](auto& self, double low, std::size_t id_low,
                         double high, std::size_t id_high) -> void {
    const auto middle = (low + high) / 2;
    if (id_low == id_high || high - low < 1e-9) {
      p[id_low] += middle - low;
      p[id_high] += high - middle;
      return;
    }
    const auto id = id_at(middle);
    self(self, low, id_low, middle, id);
    self(self, middle, id, high, id_high);
  };
  const double last = 1 - 0x1p-53;
  split(split, 0, id_at(0), last, id_at(last));
  return {{"p", floats(p.begin(), p.end())}, {"logprob", logprob}};
}

const std::map<std::string, operation> operations{
  {"matmul", matmul},
  {"embedding", embedding},
  {"rmsnorm", rmsnorm},
  {"layernorm", layernorm},
  {"rope", rope},
  {"attention", attention},
  {"swiglu", swiglu},
  {"gelu", gelu},
  {"geglu", geglu},
  {"routing", routing},
  {"cross_entropy", cross_entropy},
  {"add", add},
  {"scale", scale},
  {"softcap", softcap},
  {"adamw", adamw},
  {"sum_of_squares", sum_of_squares},
  {"sampling", sampling},
};

const char* const cases[] = {
  "matmul",
  "matmul.bias",
  "matmul.in_out",
  "matmul.bf16",
  "embedding",
  "rmsnorm",
  "rmsnorm.offset",
  "layernorm",
  "rope",
  "attention",
  "attention.grouped",
  "attention.window",
  "attention.softcap",
  "attention.all",
  "swiglu",
  "gelu.exact",
  "gelu.tanh",
  "geglu.exact",
  "geglu.tanh",
  "routing",
  "routing.normalised",
  "cross_entropy",
  "cross_entropy.softcap",
  "add",
  "scale",
  "softcap",
  "adamw",
  "sum_of_squares",
  "sampling",
  "sampling.temperature",
  "sampling.top_k",
  "sampling.top_p",
  "sampling.min_p",
  "sampling.penalty",
  "sampling.all",
};

void check_case(const std::string& name) {
  const golden_case golden(name);
  const auto run = operations.at(name.substr(0, name.find('.')));
  for_each_backend([&](backend& on) {
    for (const auto& [tensor, got] : run(on, golden))
      BOOST_TEST_CONTEXT(tensor)
    BOOST_TEST(relative_difference(got, golden[tensor]) <= float_tolerance);
  });
}

} // namespace

BOOST_DATA_TEST_CASE(every_backend_agrees_with_pytorch,
                     boost::unit_test::data::make(cases), name) {
  check_case(name);
}

BOOST_AUTO_TEST_CASE(no_case_of_the_file_is_left_out) {
  std::set<std::string> in_file;
  for (const auto& name : goldens().names())
    in_file.insert(name.substr(0, name.find('/')));
  BOOST_TEST(in_file
               == std::set<std::string>(std::begin(cases), std::end(cases)),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::tests
