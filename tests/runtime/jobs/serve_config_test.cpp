// tests/runtime/jobs/serve_config_test.cpp -- the description of a served model.
#include "runtime/core/job_entry.hpp"
#include "runtime/jobs/serve_config.hpp"
#include "runtime/model/decode/paged_cache.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

namespace shoal::runtime {
BOOST_AUTO_TEST_SUITE(serve_configs)

namespace {

serve_config tiny() {
  auto model = model::parse_config(
    R"({"model_type": "llama", "hidden_size": 32, "intermediate_size": 48,
        "num_hidden_layers": 3, "num_attention_heads": 2,
        "num_key_value_heads": 1, "vocab_size": 256,
        "max_position_embeddings": 512})");
  BOOST_REQUIRE(model);
  serve_config c;
  c.model = *model;
  c.context = 512;
  c.cache_tokens = usual_cache_tokens(c.context);
  return c;
}

/// A description in which one text stands for another.
std::string with(const std::string& what, const std::string& instead) {
  std::string text = to_json(tiny());
  const auto at = text.find(what);
  BOOST_REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), instead);
}

} // namespace

BOOST_AUTO_TEST_CASE(a_description_comes_back_as_it_was) {
  serve_config c = tiny();
  c.quantize = kernels::weight_type::q8;
  c.kv = kernels::kv_type::q8;
  c.cache_tokens = 1024;
  c.replicas_max = 8;
  c.shrink_after = 7;
  const auto again = parse_serve(to_json(c));
  BOOST_REQUIRE(again);
  BOOST_TEST(to_json(*again) == to_json(c));
}

BOOST_AUTO_TEST_CASE(wrong_values_are_refused_by_name) {
  const struct {
    const char *what, *instead, *named;
  } wrong[] = {
    {"\"kv_type\":\"bf16\"", "\"kv_type\":5", "serve.kv_type"},
    {"\"kv_type\":\"bf16\"", "\"kv_type\":\"f8\"", "serve.kv_type"},
    {"\"quantize\":\"stored\"", "\"quantize\":[]", "serve.quantize"},
    {"\"quantize\":\"stored\"", "\"quantize\":\"q3\"", "serve.quantize"},
    {"\"context\":512", "\"context\":513", "serve.context"},
    {"\"context\":512", "\"context\":-1", "serve.context"},
    {"\"pass_tokens\":512", "\"pass_tokens\":\"x\"", "serve.pass_tokens"},
    {"\"hidden_size\":32", "\"hidden_size\":\"x\"", "hidden_size"},
    {"\"serve\":{", "\"serves\":{", "no served model"}};
  for (const auto& w : wrong) {
    const auto read = parse_serve(with(w.what, w.instead));
    BOOST_TEST(!read, w.instead);
    if (!read)
      BOOST_TEST(read.message().find(w.named) != std::string::npos,
                 read.message());
  }
  for (const char* text : {"", "[]", "5", "{\"serve\": 5, \"model\": {}}",
                           "{\"serve\": {}, \"model\": 5}"})
    BOOST_TEST(!parse_serve(text), text);
}

BOOST_AUTO_TEST_CASE(memory_follows_from_weights_and_cache) {
  const serve_config c = tiny();
  const core::job_entry few = serve_entry(c, "m", 2);
  BOOST_TEST((few.kind == core::job_kind::serve));
  BOOST_TEST(few.blocks == 3u);
  BOOST_TEST(few.want_islands == 2u);
  serve_config more = c;
  more.cache_tokens *= 2;
  serve_config small = c;
  small.quantize = kernels::weight_type::q4;
  BOOST_TEST(serve_entry(more, "m", 1).block_state_bytes
             > few.block_state_bytes);
  BOOST_TEST(serve_entry(small, "m", 1).block_state_bytes
             < few.block_state_bytes);
}

/// With a window in `windowed` of three blocks.
serve_config with_windows(int windowed, std::uint64_t window) {
  serve_config c = tiny();
  c.model.max_position_embeddings = 8192;
  c.context = 8192;
  c.cache_tokens = 4 * c.context;
  c.pass_tokens = 64;
  c.model.sliding_window = window;
  for (int layer = 0; layer != 3; ++layer)
    c.model.sliding_layers.push_back(layer < windowed);
  return c;
}

BOOST_AUTO_TEST_CASE(windows_are_kept_apart_if_that_saves_half_the_cache) {
  BOOST_TEST(window_pages_of(tiny()).pages == 0u);
  const core::window_pages all = window_pages_of(with_windows(3, 1024));
  BOOST_TEST(all.window == 1024u);
  BOOST_TEST(all.pages == 512u); // a quarter of 2048
  // The windows of four sequences need more than a quarter.
  BOOST_TEST(window_pages_of(with_windows(3, 3000)).pages
             == 4 * core::window_ring(3000, 64));
  BOOST_TEST(window_pages_of(with_windows(3, 4096)).pages == 0u);
  BOOST_TEST(window_pages_of(with_windows(3, 8192)).pages == 0u);
  BOOST_TEST(window_pages_of(with_windows(2, 1024)).pages == 0u); // half
  BOOST_TEST(window_pages_of(with_windows(0, 1024)).pages == 0u);
}

BOOST_AUTO_TEST_CASE(windows_take_less_memory) {
  const auto bytes = [](int windowed) {
    return serve_entry(with_windows(windowed, 1024), "m", 1).block_state_bytes;
  };
  BOOST_TEST(bytes(0) - bytes(3)
             == (2048u - 512u)
                  * model::paged_cache::page_bytes(tiny().model, 1, tiny().kv));
  BOOST_TEST(bytes(0) == bytes(2));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::runtime
