// tests/apps/transfer/model_export_test.cpp -- a checkpoint becomes the model of a folder
// in which another one may lie.
#include "apps/transfer/model_export.hpp"
#include "runtime/model/files/checksums.hpp"
#include "tests/support/folder.hpp"

#include <boost/test/unit_test.hpp>
#include <unistd.h>

#include <fstream>
#include <initializer_list>
#include <set>
#include <string>

BOOST_AUTO_TEST_SUITE(model_export)

namespace fs = std::filesystem;
using shoal::apps::export_model;

namespace {

/// A checkpoint and a folder to export to.
struct folders {
  folders() {
    fs::create_directories(checkpoint = top / "checkpoint");
    fs::create_directories(out = top / "out");
  }

  static void
  fill(const fs::path& folder, std::initializer_list<const char*> names) {
    for (const char* name : names)
      std::ofstream(folder / name) << folder.filename().string();
  }
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& file : fs::directory_iterator(out))
      all.insert(file.path().filename().string());
    return all;
  }

  shoal::test::folder home;
  fs::path top = home.path;
  fs::path checkpoint, out;
};

using names = std::set<std::string>;

} // namespace

BOOST_AUTO_TEST_CASE(a_model_of_shards_takes_the_place_of_a_single_file) {
  folders f;
  f.fill(f.checkpoint,
         {"config.json", "model-00001-of-00002.safetensors",
          "model-00002-of-00002.safetensors", "model.safetensors.index.json",
          "optimizer.safetensors"});
  f.fill(f.out, {"config.json", "model.safetensors", "metrics.jsonl",
                 "model-00001-of-00003.safetensors"});
  BOOST_REQUIRE(export_model(f.checkpoint, f.out));
  BOOST_TEST((f.names()
              == names{"config.json", "model-00001-of-00002.safetensors",
                       "model-00002-of-00002.safetensors",
                       "model.safetensors.index.json", "metrics.jsonl"}));
}

BOOST_AUTO_TEST_CASE(a_single_file_takes_the_place_of_shards) {
  folders f;
  f.fill(f.checkpoint, {"config.json", "model.safetensors", "optimizer-1"});
  f.fill(f.out,
         {"model-00001-of-00002.safetensors", "model.safetensors",
          "model-00002-of-00002.safetensors", "model.safetensors.index.json",
          "tokenizer.json", "adapter_model.safetensors", "notes.txt"});
  BOOST_REQUIRE(export_model(f.checkpoint, f.out));
  BOOST_TEST((f.names()
              == names{"config.json", "model.safetensors", "tokenizer.json",
                       "adapter_model.safetensors", "notes.txt"}));
  std::string text;
  std::ifstream(f.out / "model.safetensors") >> text;
  BOOST_TEST(text == "checkpoint");
}

// They were replaced, or removed, without a word.
BOOST_AUTO_TEST_CASE(what_a_user_has_changed_beside_the_weights_stays) {
  folders f;
  const fs::path former = f.top / "run" / "step-1",
                 latest = f.top / "run/step-2";
  for (const fs::path& step : {former, latest}) {
    fs::create_directories(step);
    f.fill(step, {"model.safetensors", "tokenizer.json"});
    std::ofstream(step / "config.json") << "of the run";
  }
  std::ofstream(former / "generation_config.json") << "of the run";
  const auto content = [&](const char* name) {
    std::string text;
    std::getline(std::ifstream(f.out / name), text);
    return text;
  };
  auto kept = export_model(former, f.out);
  BOOST_REQUIRE(kept);
  BOOST_TEST(kept->empty());
  // In place: the checkpoint does not change with it.
  std::ofstream(f.out / "config.json") << "mine";
  std::ofstream(f.out / "chat_template.jinja") << "mine";
  kept = export_model(latest, f.out);
  BOOST_REQUIRE(kept);
  BOOST_TEST(
    (*kept == std::vector<std::string>{"chat_template.jinja", "config.json"}));
  BOOST_TEST(content("config.json") == "mine");
  BOOST_TEST(content("chat_template.jinja") == "mine");
  BOOST_TEST(content("tokenizer.json") == "step-2");
  BOOST_TEST(content("model.safetensors") == "step-2");
  BOOST_TEST((f.names()
              == names{"config.json", "model.safetensors", "tokenizer.json",
                       "chat_template.jinja"}));
  std::string text;
  std::getline(std::ifstream(former / "config.json"), text);
  BOOST_TEST(text == "of the run");
}

// Both names were links to one file, so the first stayed.
BOOST_AUTO_TEST_CASE(a_model_that_is_exported_again_leaves_no_partial_file) {
  folders f;
  f.fill(f.checkpoint, {"config.json", "model.safetensors"});
  for (int i = 0; i < 2; ++i) {
    BOOST_REQUIRE(export_model(f.checkpoint, f.out));
    BOOST_TEST((f.names() == names{"config.json", "model.safetensors"}));
  }
}

BOOST_AUTO_TEST_CASE(checksums_are_those_of_the_model_that_is_there) {
  folders f;
  f.fill(f.checkpoint,
         {"config.json", "model.safetensors", "optimizer.safetensors"});
  BOOST_REQUIRE(shoal::model::write_checksums(f.checkpoint));
  BOOST_REQUIRE(export_model(f.checkpoint, f.out));
  const auto sums = shoal::model::load_checksums(f.out);
  BOOST_REQUIRE(sums);
  BOOST_TEST(sums->size() == 1u);
  BOOST_TEST(sums->contains("model.safetensors"));
  BOOST_TEST(bool(shoal::model::check_checksums(f.out, "model")));
  fs::remove(f.checkpoint / shoal::model::checksums_name);
  f.fill(f.checkpoint, {"model.safetensors"});
  BOOST_REQUIRE(export_model(f.checkpoint, f.out));
  BOOST_TEST((f.names() == names{"config.json", "model.safetensors"}));
}

BOOST_AUTO_TEST_CASE(an_impossible_export_is_named) {
  folders f;
  f.fill(f.checkpoint, {"config.json"});
  const auto none = export_model(f.top / "none", f.out);
  BOOST_REQUIRE(!none);
  BOOST_TEST(none.message().starts_with((f.top / "none").string()));
  fs::create_directories(f.out / "config.json" / "in the way");
  const auto kept = export_model(f.checkpoint, f.out);
  BOOST_REQUIRE(!kept);
  BOOST_TEST(kept.message().starts_with((f.out / "config.json").string()));
}

BOOST_AUTO_TEST_SUITE_END()
