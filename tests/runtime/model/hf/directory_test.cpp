// tests/runtime/model/hf/directory_test.cpp -- whole directories, in and out.
#include "tests/runtime/model/fixture.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <fstream>

BOOST_AUTO_TEST_SUITE(hf_directory)

namespace bdata = boost::unit_test::data;
namespace fs = std::filesystem;
using namespace shoal;
using namespace shoal::model;
using namespace shoal::tests;

namespace {

std::string message_of(const fs::path& folder) {
  return why(load_directory(folder));
}

} // namespace

BOOST_AUTO_TEST_CASE(saved_weights_are_loaded_bit_for_bit) {
  for (const bool tied : {false, true}) {
    for (const std::uint64_t limit :
         {std::uint64_t(4000), shard_bytes_default}) {
      temporary_folder folder;
      model_config config = tiny_config(tied);
      config.vocab_size = 256;
      const model_rig rig(config);
      const fs::path out = folder / "deep/out";
      save_options options;
      options.shard_bytes_max = limit;
      const auto saved = save_directory(out, *rig.layout, rig.units, options);
      BOOST_REQUIRE_MESSAGE(saved, why(saved));
      const auto loaded = load_directory(out, purpose::training);
      BOOST_REQUIRE_MESSAGE(loaded, why(loaded));
      BOOST_TEST((loaded->config == config));
      BOOST_TEST(loaded->tokenizer.has_value());
      for (unit_index u = 0; u < rig.units.size(); ++u)
        BOOST_TEST(std::ranges::equal(loaded->units[u].parameters(),
                                      rig.units[u].parameters()));
    }
  }
}

BOOST_DATA_TEST_CASE(a_family_is_loaded_as_it_was_saved,
                     bdata::make(family_names()), name) {
  temporary_folder folder;
  const model_rig rig(tiny_family(name));
  const auto saved = save_directory(folder / "m", *rig.layout, rig.units);
  BOOST_REQUIRE_MESSAGE(saved, why(saved));
  const auto loaded = load_directory(folder / "m");
  BOOST_REQUIRE_MESSAGE(loaded, why(loaded));
  BOOST_TEST((loaded->config == rig.layout->config()));
  for (unit_index u = 0; u < rig.units.size(); ++u)
    BOOST_TEST(std::ranges::equal(loaded->units[u].parameters(),
                                  rig.units[u].parameters()));
}

// openai-community/gpt2 and others were saved without the first part of names.
BOOST_AUTO_TEST_CASE(gpt2_is_loaded_by_its_short_names_too) {
  temporary_folder folder;
  const model_rig rig(tiny_family("gpt2"));
  BOOST_REQUIRE(save_directory(folder / "m", *rig.layout, rig.units));
  std::vector<tensor_to_save> tensors;
  for (const tensor_info& t : rig.layout->tensors())
    if (!t.copy_of)
      tensors.push_back(
        {std::string(short_name(t)), t.shape,
         rig.units[t.unit].parameters().subspan(t.offset, t.size)});
  BOOST_TEST(tensors[2].name == "h.0.ln_1.weight");
  BOOST_REQUIRE(write_safetensors(folder / "m/model.safetensors", tensors));
  const auto loaded = load_directory(folder / "m");
  BOOST_REQUIRE_MESSAGE(loaded, why(loaded));
  BOOST_TEST(std::ranges::equal(loaded->units[1].parameters(),
                                rig.units[1].parameters()));
  tensors.erase(tensors.begin() + 4);
  BOOST_REQUIRE(write_safetensors(folder / "m/model.safetensors", tensors));
  const std::string message = message_of(folder / "m");
  BOOST_TEST(message.find("transformer.h.0.attn.c_attn.weight: is missing")
               != std::string::npos,
             message);
}

BOOST_AUTO_TEST_CASE(tensors_that_the_model_lacks_are_named) {
  temporary_folder folder;
  model_config config = tiny_config(false);
  const model_rig rig(config);
  BOOST_TEST(bool(save_directory(folder / "m", *rig.layout, rig.units)));
  BOOST_TEST(unused_tensors(folder / "m") == "");
  const auto all = config.num_hidden_layers;
  std::ifstream in(folder / "m/config.json");
  std::string text(std::istreambuf_iterator<char>(in), {});
  const std::string key = "\"num_hidden_layers\": ";
  const auto at = text.find(key + std::to_string(all));
  BOOST_TEST_REQUIRE(at != std::string::npos);
  text.replace(at, key.size() + std::to_string(all).size(), key + "1");
  std::ofstream(folder / "m/config.json") << text;
  const std::string said = unused_tensors(folder / "m");
  for (const char* part : {"tensors of its files are not used", "(1 layer)",
                           "model.layers.1.", "more"})
    BOOST_TEST(said.find(part) != std::string::npos, said);
}

BOOST_AUTO_TEST_CASE(saving_again_replaces_the_model_and_nothing_else) {
  temporary_folder folder;
  const fs::path out = folder / "out";
  write_text(out / "metrics.jsonl", "kept");
  write_text(out / "logs/a", "kept too");
  save_options shards;
  shards.shard_bytes_max = 4000;
  const model_rig first(tiny_config(), 1);
  const model_rig second(tiny_config(), 2);
  BOOST_REQUIRE(save_directory(out, *first.layout, first.units, shards));
  BOOST_TEST(fs::exists(out / "model.safetensors.index.json"));
  BOOST_REQUIRE(save_directory(out, *second.layout, second.units));
  BOOST_TEST(!fs::exists(out / "model.safetensors.index.json"));
  BOOST_TEST(fs::exists(out / "metrics.jsonl"));
  BOOST_TEST(fs::exists(out / "logs/a"));
  const auto loaded = load_directory(out);
  BOOST_REQUIRE_MESSAGE(loaded, why(loaded));
  BOOST_TEST(std::ranges::equal(loaded->units[2].parameters(),
                                second.units[2].parameters()));
  BOOST_TEST(!loaded->no_text.empty()); // a vocabulary of 61 has no bytes
  std::size_t entries = 0;
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    BOOST_TEST(entry.path().filename().string() == "out");
    ++entries;
  }
  BOOST_TEST(entries == 1u);
}

BOOST_AUTO_TEST_CASE(a_target_that_cannot_be_is_refused) {
  temporary_folder folder;
  write_text(folder / "file", "x");
  const model_rig rig(tiny_config());
  BOOST_TEST(!save_directory(folder / "file", *rig.layout, rig.units));
  BOOST_TEST(!save_directory(folder / "file/out", *rig.layout, rig.units));
}

BOOST_AUTO_TEST_CASE(a_broken_directory_is_refused_by_file) {
  temporary_folder folder;
  const fs::path out = folder / "out";
  const model_rig rig(tiny_config());
  auto save = [&] {
    BOOST_REQUIRE(save_directory(out, *rig.layout, rig.units));
  };
  auto refused = [&](const char* named) {
    const std::string message = message_of(out);
    BOOST_TEST(message.find(named) != std::string::npos, message);
  };
  refused("config.json: cannot open");
  save();
  write_text(out / "config.json", "{");
  refused("config.json: is not valid JSON");
  write_text(out / "config.json", "{\"hidden_size\":20}");
  refused("config.json: model_type: is missing; known: ");
  write_text(out / "config.json", "{\"model_type\":null}");
  refused("config.json: model_type: is missing");
  save();
  model_config larger = tiny_config();
  larger.num_hidden_layers = 4;
  write_text(out / "config.json", to_json(larger));
  refused("tensor model.layers.3.input_layernorm.weight: is missing");
  larger = tiny_config();
  larger.vocab_size = 1u << 20; // nothing of this size may be allocated
  write_text(out / "config.json", to_json(larger));
  refused("tensor model.embed_tokens.weight: has shape [61,20]");
  save();
  fs::resize_file(out / "model.safetensors",
                  fs::file_size(out / "model.safetensors") - 4);
  refused("model.safetensors: tensor");
  save();
  fs::remove(out / "model.safetensors");
  refused("has neither model.safetensors nor");
  // As a copy of a hub's cache without its blobs has them.
  fs::create_symlink("../blobs/1f", out / "model.safetensors");
  refused("has model.safetensors, but as a link to ../blobs/1f, which");
  fs::remove(out / "config.json");
  fs::create_symlink("../blobs/2f", out / "config.json");
  const auto config = load_config(out);
  BOOST_REQUIRE(!config);
  BOOST_TEST(config.message().find("has config.json, but as a link to "
                                   "../blobs/2f, which does not exist")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_unknown_tokenizer_leaves_ids_usable) {
  temporary_folder folder;
  const model_rig rig(tiny_config());
  save_options options;
  options.byte_tokenizer = false;
  BOOST_REQUIRE(save_directory(folder / "m", *rig.layout, rig.units, options));
  write_text(folder / "m/tokenizer.json", "{}");
  const auto loaded = load_directory(folder / "m");
  BOOST_REQUIRE(loaded);
  BOOST_TEST(!loaded->tokenizer.has_value());
  BOOST_TEST(loaded->no_text.find("tokenizer.json") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
