// tests/actors/checkpoint_test.cpp -- checkpoints as files: made, cut up,
// damaged, loaded, exported.
#include "actors/checkpoint/checkpoint_export.hpp"
#include "actors/checkpoint/checkpoint_files.hpp"
#include "kernels/common/thread_team.hpp"
#include "runtime/core/errc.hpp"
#include "runtime/core/text/hex.hpp"
#include "runtime/files/sha256.hpp"
#include "runtime/model/hf/hf_directory.hpp"
#include "runtime/store/store.hpp"
#include "tests/support/folder.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace shoal::actors {

BOOST_AUTO_TEST_SUITE(checkpoint)

namespace fs = std::filesystem;
namespace bdata = boost::unit_test::data;
using model::purpose;

namespace {

model::model_config small_config(bool tied) {
  model::model_config c;
  c.vocab_size = 256;
  c.hidden_size = 8;
  c.intermediate_size = 12;
  c.num_hidden_layers = 3;
  c.num_attention_heads = 2;
  c.num_key_value_heads = 1;
  c.head_dim = 4;
  c.max_position_embeddings = 16;
  c.tie_word_embeddings = tied;
  c.bos_token_id.reset();
  c.eos_token_ids.clear();
  return c;
}

template <class Value>
std::string why(const model::result<Value>& of) {
  return of ? std::string() : of.message();
}

/// A trained model of a few units and a store with its checkpoint.
struct saved_model {
  explicit saved_model(bool tied = false)
    : layout(std::make_shared<const model::unit_layout>(small_config(tied))),
      store(runtime::store::open(home.path / "blobs")) {
    for (model::unit_index u = 0; u < layout->unit_count(); ++u) {
      model::unit_state& s =
        units.emplace_back(layout, u, model::purpose::training);
      model::initialise(s, 5);
      float next = float(u) + 0.25f;
      for (auto part : {s.first_moment(), s.second_moment()})
        for (float& v : part)
          v = next += 0.5f;
    }
  }

  std::vector<float> copy(model::unit_index u) {
    std::vector<float> out;
    for (auto part : {units[u].parameters(), units[u].first_moment(),
                      units[u].second_moment()})
      out.insert(out.end(), part.begin(), part.end());
    return out;
  }

  core::written_shard write(model::unit_index u, runtime::store& to) {
    const auto state = copy(u);
    auto put =
      write_shard(*layout, {u, state}, to,
                  [](const core::blob_digest&) { return std::error_code{}; });
    BOOST_REQUIRE_MESSAGE(put, why(put));
    return *put;
  }

  core::blob_digest save(std::uint64_t step) {
    std::vector<core::written_shard> shards;
    for (model::unit_index u = 0; u < units.size(); ++u)
      shards.push_back(write(u, *store));
    auto made = publish_shards(step, *layout, shards, *store);
    BOOST_REQUIRE_MESSAGE(made, why(made));
    return made->manifest;
  }

  manifest read(const core::blob_digest& d) {
    auto m = read_manifest(d, *store);
    BOOST_REQUIRE(m);
    return *m;
  }

  /// Loads a unit and compares it, bit for bit.
  void require_loads(const core::blob_digest& d, model::unit_index u,
                     bool moments = true) {
    std::set<core::blob_digest> verified;
    auto files =
      read_unit_files(d, *layout, u, purpose::training, *store, verified);
    BOOST_REQUIRE_MESSAGE(files, why(files));
    BOOST_REQUIRE(files->damaged.empty());
    model::unit_state into(layout, u, model::purpose::training);
    auto loaded = load_unit(*files, into);
    BOOST_REQUIRE_MESSAGE(loaded, why(loaded));
    BOOST_TEST(std::ranges::equal(into.parameters(), units[u].parameters()));
    if (moments) {
      BOOST_TEST(
        std::ranges::equal(into.first_moment(), units[u].first_moment()));
      BOOST_TEST(
        std::ranges::equal(into.second_moment(), units[u].second_moment()));
    } else {
      BOOST_TEST(std::ranges::all_of(into.second_moment(),
                                     [](float v) { return v == 0; }));
    }
  }

  fs::path file_of(const core::blob_digest& d) const {
    const std::string name = core::to_hex(d);
    return home.path / "blobs" / name.substr(0, 2) / name.substr(2);
  }
  fs::path file_of(const core::blob_digest& d, const std::string& name) {
    const manifest m = read(d);
    BOOST_REQUIRE(m.has(name));
    return file_of(m.find(name)->digest);
  }
  /// As another process: nothing has been hashed yet.
  void reopen() { store = runtime::store::open(home.path / "blobs"); }

  /// The checkpoint's files as a directory.
  fs::path files(const core::blob_digest& d) {
    const fs::path out = home.path / "out";
    fs::create_directory(out);
    for (const manifest_file& f : read(d).files)
      fs::copy_file(file_of(f.digest), out / f.name);
    return out;
  }

  shoal::test::folder home;
  std::shared_ptr<const model::unit_layout> layout;
  std::vector<model::unit_state> units;
  std::unique_ptr<runtime::store> store;
};

std::string contents(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void overwrite(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
}

/// The files of another writer, put into the store under a new manifest.
core::blob_digest
put_directory(const fs::path& directory, runtime::store& store) {
  auto put = [&](const std::string& text) {
    auto writer = store.write();
    core::blob_digest digest{};
    BOOST_REQUIRE(!writer->append(std::as_bytes(std::span(text))));
    BOOST_REQUIRE(!writer->commit(digest, std::nullopt));
    return digest;
  };
  manifest m;
  m.step = 3;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string text = contents(entry.path());
    m.files.push_back(
      {entry.path().filename().string(), put(text), text.size()});
  }
  return put(to_json(m));
}

constexpr char victim[] = "model-00002-of-00005.safetensors";
constexpr char other[] = "optimizer-00003-of-00005.safetensors";

/// What a disk does to files, and which of them it does it to.
struct damage {
  const char* name;
  void (*act)(const fs::path& victim, const fs::path& other);
  std::vector<std::string> hit;
};
std::ostream& operator<<(std::ostream& out, const damage& d) {
  return out << d.name;
}
const damage damages[] = {
  {"torn",
   [](const fs::path& v, const fs::path&) { // its end was never written
     std::string text = contents(v);
     std::fill(text.begin() + long(text.size() / 2), text.end(), '\0');
     overwrite(v, text);
   },
   {victim}},
  {"bit-flipped",
   [](const fs::path& v, const fs::path&) {
     std::string text = contents(v);
     text[text.size() - 7] = char(text[text.size() - 7] ^ 16);
     overwrite(v, text);
   },
   {victim}},
  {"truncated",
   [](const fs::path& v, const fs::path&) {
     fs::resize_file(v, fs::file_size(v) - 1);
   },
   {victim}},
  {"swapped",
   [](const fs::path& v, const fs::path& o) {
     const std::string text = contents(v);
     overwrite(v, contents(o));
     overwrite(o, text);
   },
   {victim, other}},
};

} // namespace

BOOST_DATA_TEST_CASE(units_that_were_saved_are_loaded_bit_for_bit,
                     bdata::make({false, true}), tied) {
  saved_model s(tied);
  const auto d = s.save(8);
  BOOST_TEST(s.read(d).step == 8u);
  BOOST_TEST(complete(d, *s.store));
  for (model::unit_index u = 0; u < s.units.size(); ++u)
    s.require_loads(d, u);
}

BOOST_AUTO_TEST_CASE(files_of_the_model_go_with_its_checkpoints) {
  saved_model s;
  const std::string text = "its maker's";
  auto writer = s.store->write();
  manifest_file carried{"generation_config.json", {}, text.size()};
  BOOST_REQUIRE(!writer->append(std::as_bytes(std::span(text))));
  BOOST_REQUIRE(!writer->commit(carried.digest, std::nullopt));
  std::vector<core::written_shard> shards;
  for (model::unit_index u = 0; u < s.units.size(); ++u)
    shards.push_back(s.write(u, *s.store));
  const auto made =
    publish_shards(8, *s.layout, shards, *s.store, false, {&carried, 1});
  BOOST_REQUIRE_MESSAGE(made, why(made));
  BOOST_TEST(contents(s.file_of(made->manifest, carried.name)) == text);
  BOOST_TEST(std::ranges::count(s.read(made->manifest).files, carried.name,
                                &manifest_file::name)
             == 1);
}

/// All checkpoints of a job share these.
BOOST_AUTO_TEST_CASE(small_files_that_are_lost_are_written_again) {
  saved_model s;
  const core::blob_digest d = s.save(8);
  for (const std::string& name :
       {std::string("config.json"), index_name(model_files),
        index_name(optimizer_files)}) {
    BOOST_REQUIRE(s.read(d).has(name));
    BOOST_REQUIRE(!s.store->remove(s.read(d).find(name)->digest));
  }
  BOOST_TEST(!parts_lacking(d, s.units.size(), *s.store).has_value());
  mend_small_files(d, *s.layout, true, *s.store);
  BOOST_TEST(complete(d, *s.store));
  // A shard is not made up, and tells which part is lacking.
  const std::string shard = model::shard_name(model_files, 2, s.units.size());
  BOOST_REQUIRE(!s.store->remove(s.read(d).find(shard)->digest));
  mend_small_files(d, *s.layout, true, *s.store);
  BOOST_TEST((parts_lacking(d, s.units.size(), *s.store)
              == core::part_set(core::part_range{2, 3})));
}

BOOST_AUTO_TEST_CASE(a_shard_has_the_same_name_for_every_writer) {
  saved_model a, b;
  std::vector<core::blob_digest> noted;
  const auto state = b.copy(2);
  auto put = write_shard(*b.layout, {2, state}, *b.store,
                         [&](const core::blob_digest& d) {
                           BOOST_TEST(!b.store->contains(d)); // before it
                           noted.push_back(d);
                           return std::error_code{};
                         });
  BOOST_REQUIRE(put);
  BOOST_TEST((*put == a.write(2, *a.store)));
  BOOST_REQUIRE(noted.size() == 2u);
  BOOST_TEST((noted[0] == put->model && noted[1] == put->optimizer));
  BOOST_TEST((a.save(8) == b.save(8)));
}

BOOST_AUTO_TEST_CASE(a_unit_needs_its_own_files_only) {
  saved_model s;
  const auto d = s.save(8);
  auto chosen = files_with(s.read(d), tensors_of(*s.layout, 1),
                           purpose::training, *s.store);
  BOOST_REQUIRE(chosen);
  BOOST_TEST(chosen->unread.empty());
  BOOST_REQUIRE(chosen->files.size() == 2u);
  BOOST_TEST(chosen->files[0].name == victim);
  BOOST_TEST(chosen->files[1].name == "optimizer-00002-of-00005.safetensors");
  for (const manifest_file& f : s.read(d).files)
    if (f.name.find("00002-of") == std::string::npos
        && f.name.ends_with(".safetensors"))
      BOOST_REQUIRE(!s.store->remove(f.digest));
  s.require_loads(d, 1);
  // The head's copy of a tied embedding comes from the embedding's file.
  saved_model tied(true);
  const auto t = tied.save(8);
  chosen = files_with(tied.read(t), tensors_of(*tied.layout, 4),
                      purpose::training, *tied.store);
  BOOST_REQUIRE(chosen);
  BOOST_TEST(chosen->files.size() == 3u);
}

// It waited for the optimizer's files, which nobody keeps for it: when the pipeline
// of a model that had been trained meanwhile moved, it was not ready any more.
BOOST_AUTO_TEST_CASE(a_model_that_is_served_needs_no_files_of_an_optimizer) {
  saved_model s;
  const auto d = s.save(8);
  for (const manifest_file& f : s.read(d).files)
    if (of_optimizer(f.name))
      BOOST_REQUIRE(!s.store->remove(f.digest));
  const auto tensors = tensors_of(*s.layout, 1);
  const auto chosen =
    files_with(s.read(d), tensors, purpose::serving, *s.store);
  BOOST_REQUIRE_MESSAGE(chosen, why(chosen));
  BOOST_TEST(chosen->unread.empty());
  BOOST_REQUIRE(chosen->files.size() == 1u);
  BOOST_TEST(chosen->files[0].name == victim);
  std::set<core::blob_digest> verified;
  const auto files =
    read_unit_files(d, *s.layout, 1, purpose::serving, *s.store, verified);
  BOOST_REQUIRE_MESSAGE(files, why(files));
  BOOST_TEST(files->damaged.empty());
  BOOST_TEST(!files->moments);
  BOOST_TEST(files->files.size() == 1u);
}

// What a run from random weights begins with, if it has trained a tokenizer.
BOOST_AUTO_TEST_CASE(only_what_begins_a_run_may_have_no_weights) {
  saved_model s;
  const manifest whole = s.read(s.save(8));
  manifest m;
  m.files.push_back(*whole.find("config.json"));
  BOOST_TEST(holds_weights(whole));
  BOOST_TEST(!holds_weights(m));
  BOOST_TEST(
    !files_with(m, tensors_of(*s.layout, 1), purpose::training, *s.store));
  m.files.back().name = "tokenizer.json";
  auto chosen =
    files_with(m, tensors_of(*s.layout, 1), purpose::training, *s.store);
  BOOST_REQUIRE_MESSAGE(chosen, why(chosen));
  BOOST_TEST(chosen->files.empty());
  const std::string text = to_json(m);
  const auto bytes = std::as_bytes(std::span(text));
  const core::blob_digest d = runtime::sha256(bytes);
  core::blob_digest written{};
  auto writer = s.store->write();
  BOOST_REQUIRE(!writer->append(bytes));
  BOOST_REQUIRE(!writer->commit(written, d));
  std::set<core::blob_digest> verified;
  const auto files =
    read_unit_files(d, *s.layout, 1, purpose::training, *s.store, verified);
  BOOST_REQUIRE_MESSAGE(files, why(files));
  BOOST_TEST(!files->weights);
  BOOST_TEST(files->damaged.empty());
  m.step = 8;
  BOOST_TEST(
    !files_with(m, tensors_of(*s.layout, 1), purpose::training, *s.store));
}

BOOST_DATA_TEST_CASE(damage_is_found_and_named, bdata::make(damages), d) {
  saved_model s;
  const auto checkpoint = s.save(8);
  const fs::path v = s.file_of(checkpoint, victim);
  const fs::path o = s.file_of(checkpoint, other);
  d.act(v, o);
  BOOST_TEST(verify_checkpoint(checkpoint, *s.store) == d.hit,
             boost::test_tools::per_element());
  BOOST_TEST(!fs::exists(v)); // set aside
  BOOST_TEST(!complete(checkpoint, *s.store));
  // It is written again; then all is well.
  s.write(1, *s.store);
  s.write(2, *s.store);
  BOOST_TEST(verify_checkpoint(checkpoint, *s.store).empty());
  s.require_loads(checkpoint, 1);
}

BOOST_DATA_TEST_CASE(damage_is_found_when_loading, bdata::make(damages), d) {
  saved_model s;
  const auto checkpoint = s.save(8); // hashed by this process before
  d.act(s.file_of(checkpoint, victim), s.file_of(checkpoint, other));
  std::set<core::blob_digest> verified;
  auto files = read_unit_files(checkpoint, *s.layout, 1, purpose::training,
                               *s.store, verified);
  BOOST_REQUIRE(files);
  BOOST_REQUIRE(files->damaged.size() == 1u);
  BOOST_TEST(files->damaged[0] == victim);
}

BOOST_AUTO_TEST_CASE(a_missing_file_is_no_damage_but_is_not_loaded) {
  saved_model s;
  const auto d = s.save(8);
  fs::remove(s.file_of(d, victim));
  BOOST_TEST(verify_checkpoint(d, *s.store).empty());
  BOOST_TEST(!complete(d, *s.store));
  std::set<core::blob_digest> verified;
  auto files =
    read_unit_files(d, *s.layout, 1, purpose::training, *s.store, verified);
  BOOST_REQUIRE(files);
  BOOST_REQUIRE(files->damaged.size() == 1u);
}

BOOST_AUTO_TEST_CASE(damage_that_was_found_elsewhere_is_named) {
  saved_model s;
  const auto d = s.save(8);
  overwrite(s.file_of(d, victim), "");
  BOOST_TEST((s.store->verify(s.read(d).find(victim)->digest)
              == runtime::errc::corrupt));
  const auto found = verify_checkpoint(d, *s.store);
  BOOST_REQUIRE(found.size() == 1u);
  BOOST_TEST(found[0] == victim);
}

BOOST_AUTO_TEST_CASE(a_damaged_manifest_is_found) {
  saved_model s;
  const auto d = s.save(8);
  overwrite(s.file_of(d), "{}");
  const auto found = verify_checkpoint(d, *s.store);
  BOOST_REQUIRE(found.size() == 1u);
  BOOST_TEST(found[0].starts_with("manifest "));
  BOOST_TEST(!s.store->contains(d));
}

BOOST_AUTO_TEST_CASE(a_full_disk_ends_the_attempt) {
  saved_model s;
  const auto state = s.copy(0);
  const auto full = std::make_error_code(std::errc::no_space_on_device);
  auto put = write_shard(*s.layout, {0, state}, *s.store,
                         [&](const core::blob_digest&) { return full; });
  BOOST_REQUIRE(!put);
  BOOST_TEST(put.message().starts_with("model-00001-of-00005.safetensors: "));
  BOOST_TEST(s.store->list().empty());
}

BOOST_DATA_TEST_CASE(single_files_of_older_checkpoints_are_read,
                     bdata::make({false, true}), tied) {
  saved_model s(tied);
  const fs::path old = s.home.path / "old";
  BOOST_REQUIRE(model::save_directory(old, *s.layout, s.units));
  const auto weights = put_directory(old, *s.store);
  for (model::unit_index u = 0; u < s.units.size(); ++u)
    s.require_loads(weights, u, false); // no optimizer
  std::vector<model::tensor_to_save> moments;
  for (model::unit_index u = 0; u < s.units.size(); ++u) {
    auto index = s.layout->first_tensor(u);
    for (const auto& t : s.layout->tensors_of(u)) {
      moments.push_back({"exp_avg." + t.name, t.shape,
                         s.units[u].tensor(s.units[u].first_moment(), index)});
      moments.push_back({"exp_avg_sq." + t.name, t.shape,
                         s.units[u].tensor(s.units[u].second_moment(), index)});
      ++index;
    }
  }
  BOOST_REQUIRE(
    model::write_safetensors(old / "optimizer.safetensors", moments));
  const auto all = put_directory(old, *s.store);
  for (model::unit_index u = 0; u < s.units.size(); ++u)
    s.require_loads(all, u);
  // Cut elsewhere than between units, too.
  fs::remove_all(old);
  model::save_options cut;
  cut.shard_bytes_max = 3000;
  BOOST_REQUIRE(model::save_directory(old, *s.layout, s.units, cut));
  const auto shards = put_directory(old, *s.store);
  for (model::unit_index u = 0; u < s.units.size(); ++u)
    s.require_loads(shards, u, false);
}

BOOST_AUTO_TEST_CASE(an_index_that_names_strange_files_is_refused) {
  saved_model s;
  const fs::path out = s.files(s.save(8));
  fs::remove(out / victim);
  const auto d = put_directory(out, *s.store);
  std::set<core::blob_digest> verified;
  auto files =
    read_unit_files(d, *s.layout, 1, purpose::training, *s.store, verified);
  BOOST_REQUIRE(!files);
  BOOST_TEST(files.message().find("which the manifest lacks")
             != std::string::npos);
  fs::remove(out / "model.safetensors.index.json");
  files = read_unit_files(put_directory(out, *s.store), *s.layout, 1,
                          purpose::training, *s.store, verified);
  BOOST_REQUIRE(!files);
  BOOST_TEST(files.message().find("has neither") != std::string::npos);
}

BOOST_DATA_TEST_CASE(the_shards_are_a_model_that_others_read,
                     bdata::make({false, true}), tied) {
  saved_model s(tied);
  const fs::path out = s.files(s.save(8));
  const auto sharded = model::load_directory(out);
  BOOST_REQUIRE_MESSAGE(sharded, why(sharded));
  for (model::unit_index u = 0; u < s.units.size(); ++u)
    BOOST_TEST(std::ranges::equal(sharded->units[u].parameters(),
                                  s.units[u].parameters()));
  // One above the limit stays in shards.
  const std::uint64_t bytes = s.layout->parameter_count() * sizeof(float);
  BOOST_REQUIRE(join_shards(out, bytes - 1));
  BOOST_TEST(fs::exists(out / victim));
  BOOST_REQUIRE(join_shards(out, bytes));
  BOOST_TEST(!fs::exists(out / victim));
  BOOST_TEST(!fs::exists(out / "model.safetensors.index.json"));
  BOOST_TEST(fs::exists(out / other));
  // It is the file that saving the whole model makes.
  const fs::path whole = s.home.path / "whole";
  BOOST_REQUIRE(model::save_directory(whole, *s.layout, s.units));
  BOOST_TEST(contents(out / "model.safetensors")
             == contents(whole / "model.safetensors"));
  BOOST_TEST(contents(out / "config.json") == contents(whole / "config.json"));
  // The downloaded folder is a checkpoint again.
  const auto again = put_directory(out, *s.store);
  for (model::unit_index u = 0; u < s.units.size(); ++u)
    s.require_loads(again, u);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::actors
