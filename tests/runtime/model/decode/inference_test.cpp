// tests/runtime/model/decode/inference_test.cpp -- weights as generation reads
// them.
#include "runtime/model/decode/evaluate.hpp"
#include "runtime/model/decode/generate.hpp"
#include "runtime/model/decode/inference.hpp"
#include "tests/runtime/model/decode/inference_rig.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shoal::tests {

BOOST_AUTO_TEST_SUITE(inference)

using namespace model;
using kernels::weight_type;
namespace bdata = boost::unit_test::data;

namespace {

const char* const choices[] = {"as stored", "bf16", "q8", "q4"};

weight_choice choice_of(const std::string& name) {
  for (auto type : {weight_type::bf16, weight_type::q8, weight_type::q4})
    if (name == name_of(type))
      return type;
  return std::nullopt;
}

} // namespace

BOOST_DATA_TEST_CASE(any_family_gives_the_logits_of_transformers,
                     golden_families, name) {
  const auto file =
    safetensors_source::open(golden_folder() / name / "golden.safetensors");
  BOOST_REQUIRE(file);
  const auto shape = file->find("logits")->shape;
  const auto ids = as_ids(golden(*file, "ids"));
  const auto all = golden(*file, "logits");
  const std::span first(all.data(), shape[1] * shape[2]);
  inference_rig exact(golden_folder() / name, weight_type::f32);
  for (const std::uint64_t part : {1, 7, 100}) {
    const auto logits =
      exact.logits(std::span(ids).first(shape[1]), std::min(part, shape[1]));
    BOOST_TEST(relative_error(logits, first) <= 1e-4);
  }
  inference_rig small(golden_folder() / name, weight_type::q8);
  const auto logits = small.logits(std::span(ids).first(shape[1]), 1);
  const double error = relative_error(logits, first);
  BOOST_TEST_MESSAGE(name << ": logits in q8 differ by " << error);
  BOOST_TEST(error <= 0.15);
  BOOST_TEST(error > 0);
}

BOOST_DATA_TEST_CASE(stages_give_the_logits_of_the_whole,
                     bdata::make(golden_families) * bdata::make(choices), name,
                     choice) {
  inference_rig rig(golden_folder() / name, choice_of(choice));
  const auto ids = some_ids(rig.config, 24);
  const auto head = static_cast<unit_index>(rig.units.size() - 1);
  for (const std::size_t part : {1, 7, 24}) {
    const auto whole = rig.logits(ids, part);
    for (unit_index cut = 1; cut <= head; ++cut) {
      BOOST_TEST_CONTEXT("parts of " << part << ", cut at " << cut)
      BOOST_TEST((rig.staged_logits(ids, part, {cut}) == whole));
    }
    // Only the embedding and the head, and only the rest.
    BOOST_TEST((rig.staged_logits(ids, part, {1, 2, head}) == whole));
  }
  const auto whole = rig.logits(ids, 24);
  const auto newest = rig.staged_logits(ids, 24, {2}, false);
  BOOST_TEST(std::ranges::equal(newest, std::span(whole).last(newest.size())));
}

BOOST_AUTO_TEST_CASE(stages_take_a_long_prompt_in_parts) {
  temporary_folder folder;
  auto config = tiny_config();
  config.max_position_embeddings = 1200;
  save_random(folder / "m", config);
  inference_rig rig(folder / "m");
  const auto ids = some_ids(config, 1100); // more than decode_rows_max
  BOOST_TEST((rig.staged_logits(ids, 1100, {1, 3}) == rig.logits(ids, 1100)));
}

BOOST_AUTO_TEST_CASE(stored_matrices_are_read_where_they_are_mapped) {
  for (const auto& [name, type] : {std::pair{"tiny_bf16", weight_type::bf16},
                                   std::pair{"tiny_llama", weight_type::f32},
                                   std::pair{"tiny_f16", weight_type::f32}}) {
    const auto directory = golden_folder() / name;
    auto source = safetensors_source::open(directory);
    BOOST_REQUIRE(source);
    const auto layout =
      std::make_shared<const unit_layout>(*load_config(directory));
    kernels::thread_team team;
    const auto device = kernels::make_cpu_backend(team);
    weights_by_name packed;
    auto unit = inference_unit::load(layout, 1, *source, {}, *device, packed);
    BOOST_REQUIRE(unit);
    unit_state floats(layout, 1, purpose::serving);
    BOOST_REQUIRE(load(floats, *source));
    for (std::size_t i = 0; i != layout->tensors_of(1).size(); ++i) {
      const tensor_info& t = layout->tensors_of(1)[i];
      const auto& w = unit->matrix(i);
      const bool matrix = t.shape.size() == 2;
      BOOST_TEST((w.type() == (matrix ? type : weight_type::f32)));
      if (matrix && std::string_view(name) != "tiny_f16")
        BOOST_TEST(w.data() == source->stored(t.name).bytes.data());
      std::vector<float> row(w.cols());
      for (std::size_t r = 0; r != w.rows(); ++r) {
        w.unpack_row(r, row);
        BOOST_TEST(
          std::equal(row.begin(), row.end(),
                     floats.parameters().data() + t.offset + r * w.cols()));
      }
    }
  }
}

BOOST_DATA_TEST_CASE(routers_and_positions_stay_as_they_are_stored,
                     golden_families, name) {
  const auto directory = golden_folder() / name;
  auto source = safetensors_source::open(directory);
  BOOST_REQUIRE(source);
  for (const auto type :
       {weight_type::bf16, weight_type::q8, weight_type::q4}) {
    const inference_rig rig(directory, type);
    for (const inference_unit& unit : rig.units) {
      const auto tensors = unit.layout().tensors_of(unit.unit());
      for (std::size_t i = 0; i != tensors.size(); ++i) {
        const tensor_info& t = tensors[i];
        const auto& w = unit.matrix(i);
        const bool kept = t.role == tensor_role::router
                          || t.role == tensor_role::position_embedding;
        BOOST_TEST_CONTEXT(name << ": " << t.name) {
          if (kept) { // read where its own mapping has it
            const auto stored = source->stored(t.name).bytes;
            BOOST_TEST(w.bytes() == stored.size());
            BOOST_TEST(
              std::ranges::equal(std::span(w.data(), w.bytes()), stored));
          }
          BOOST_TEST(
            (w.type()
             == (kept || t.shape.size() == 1 ? weight_type::f32 : type)));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(units_keep_their_files_mapped) {
  inference_rig rig(golden_folder() / "tiny_bf16"); // its source is gone
  const auto ids = some_ids(rig.config, 5);
  for (const float x : rig.logits(ids, 5))
    BOOST_REQUIRE(std::isfinite(x));
}

BOOST_AUTO_TEST_CASE(tied_weights_are_held_once) {
  for (const auto* choice : choices) {
    inference_rig rig(golden_folder() / "tiny_tied", choice_of(choice));
    BOOST_TEST(rig.units.front().matrix(0).data()
               == rig.units.back().matrix(1).data());
  }
}

BOOST_AUTO_TEST_CASE(floats_give_the_losses_of_training) {
  for (const auto* name : {"tiny_llama", "tiny_tied"}) {
    const auto directory = golden_folder() / name;
    inference_rig rig(directory);
    auto loaded = load_directory(directory);
    BOOST_REQUIRE(loaded);
    model_rig trains(std::move(*loaded));
    const std::vector<std::vector<token_id>> text{some_ids(rig.config, 30),
                                                  some_ids(rig.config, 7)};
    const evaluation got = evaluate(*rig.stage, text, 16);
    const evaluation expected = evaluate(trains.whole(), text, 16);
    BOOST_TEST(got.tokens == expected.tokens);
    BOOST_TEST(got.loss == expected.loss, boost::test_tools::tolerance(1e-6));
  }
}

// Rule R-1 of kernels/README.md, for a whole model: the tokens of a prompt have
// the same logits however it is cut, and with any number of threads.
BOOST_DATA_TEST_CASE(parts_of_any_size_give_the_same_logits,
                     bdata::make(golden_families) * bdata::make(choices), name,
                     choice) {
  const auto type = choice_of(choice);
  inference_rig rig(golden_folder() / name, type);
  inference_rig two(golden_folder() / name, type, 2);
  const auto ids = some_ids(rig.config, 30);
  const auto expected = rig.logits(ids, 1);
  for (const std::size_t part : {2, 3, 7, 8, 9, 13, 29, 30}) {
    BOOST_TEST_CONTEXT("parts of " << part)
    BOOST_TEST((rig.logits(ids, part) == expected));
    BOOST_TEST((two.logits(ids, part) == expected));
  }
}

BOOST_DATA_TEST_CASE(parts_of_a_long_prompt_give_the_same_logits, choices,
                     choice) {
  temporary_folder folder;
  auto config = tiny_config();
  config.max_position_embeddings = 1200;
  save_random(folder / "m", config);
  inference_rig rig(folder / "m", choice_of(choice));
  inference_rig two(folder / "m", choice_of(choice), 2);
  const auto ids = some_ids(config, 1100); // more than decode_rows_max
  const auto expected = rig.logits(ids, 1);
  for (const std::size_t part : {3, 7, 64, 100, 513, 1100}) {
    BOOST_TEST_CONTEXT("parts of " << part)
    BOOST_TEST((rig.logits(ids, part) == expected));
    BOOST_TEST((two.logits(ids, part) == expected));
  }
}

BOOST_DATA_TEST_CASE(threads_change_no_bit, choices, choice) {
  const auto directory = golden_folder() / "tiny_llama";
  inference_rig one(directory, choice_of(choice), 1);
  inference_rig three(directory, choice_of(choice), 3);
  const auto ids = some_ids(one.config, 20);
  for (const std::size_t part : {std::size_t{1}, std::size_t{20}})
    BOOST_TEST(one.logits(ids, part) == three.logits(ids, part),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(smaller_weights_give_near_logits) {
  const auto directory = golden_folder() / "tiny_llama";
  inference_rig floats(directory);
  const auto ids = some_ids(floats.config, 20);
  const auto expected = floats.logits(ids, 20);
  const auto error = [&](weight_type type) {
    return relative_error(
      inference_rig(directory, type).logits(ids, 20, kv_type::f32), expected);
  };
  BOOST_TEST(error(weight_type::f32) == 0);
  BOOST_TEST(error(weight_type::bf16) < 3e-2);
  BOOST_TEST(error(weight_type::q8) < 8e-2);
  BOOST_TEST(error(weight_type::q4) < 4e-1);
  BOOST_TEST(error(weight_type::q4) > error(weight_type::q8));
}

BOOST_AUTO_TEST_CASE(only_the_newest_logits_of_a_long_prompt_are_computed) {
  temporary_folder folder;
  auto config = tiny_config();
  config.max_position_embeddings = 1200;
  save_random(folder / "m", config);
  inference_rig rig(folder / "m");
  const auto ids = some_ids(config, 1100);
  const auto all = rig.logits(ids, 1100);
  const auto newest = rig.staged_logits(ids, 1100, {}, false);
  BOOST_TEST(newest.size() == config.vocab_size);
  BOOST_TEST(std::ranges::equal(newest, std::span(all).last(newest.size())));
}

BOOST_AUTO_TEST_CASE(each_token_reads_all_but_the_embedding) {
  inference_rig rig(golden_folder() / "tiny_bf16");
  std::size_t values = 0;
  std::size_t norms = 0;
  for (const tensor_info& t : rig.stage->layout().tensors())
    if (t.unit != 0)
      (t.shape.size() == 1 ? norms : values) += t.size;
  BOOST_TEST(rig.stage->bytes_per_token() == 2 * values + 4 * norms);
}

BOOST_AUTO_TEST_CASE(each_token_reads_the_experts_that_it_has) {
  inference_rig rig(golden_folder() / "tiny_mixtral"); // 2 of 4
  std::size_t values = 0;
  std::size_t products = 0;
  for (const tensor_info& t : rig.stage->layout().tensors()) {
    const std::size_t share = t.expert == no_expert ? t.size : t.size / 2;
    if (t.unit != 0)
      values += share;
    if (t.shape.size() == 2 && t.unit != 0
        && t.unit != rig.stage->layout().head_unit())
      products += share;
  }
  BOOST_TEST(rig.stage->bytes_per_token() == 4 * values);
  BOOST_TEST(rig.stage->block_products() == products);
}

BOOST_AUTO_TEST_CASE(ill_shaped_tensors_are_named) {
  temporary_folder folder;
  save_random(folder / "m", tiny_config());
  auto config = tiny_config();
  config.intermediate_size += 16;
  write_text(folder / "m" / "config.json", to_json(config));
  kernels::thread_team team;
  const auto device = kernels::make_cpu_backend(team);
  const auto loaded =
    load_for_inference(folder / "m", weight_type::q4, *device);
  BOOST_TEST(why(loaded).find("mlp.gate_proj.weight: has shape")
             != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::tests
