// tests/runtime/model/files/checksums_test.cpp -- checksums of files: listed
// ones, differences, foreign input.
#include "runtime/files/bytes_hash.hpp"
#include "runtime/model/files/checksums.hpp"
#include "tests/runtime/model/fixture.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(weight_checksums)

namespace bdata = boost::unit_test::data;
namespace fs = std::filesystem;
using namespace shoal::model;
using namespace shoal::tests;

namespace {

const char* const no_checksums[] = {
  "",
  "[]",
  "{}",
  R"({"algorithm":"xxh3-64"})",
  R"({"algorithm":"xxh3-64","files":[]})",
  R"({"algorithm":"sha256","files":{}})",
  R"({"algorithm":7,"files":{}})",
  R"({"algorithm":"xxh3-64","files":{"a":7}})",
  R"({"algorithm":"xxh3-64","files":{"a":""}})",
  R"({"algorithm":"xxh3-64","files":{"a":"0123456789abcde"}})",
  R"({"algorithm":"xxh3-64","files":{"a":"0123456789abcdef0"}})",
  R"({"algorithm":"xxh3-64","files":{"a":"0123456789abcdeg"}})",
  R"({"algorithm":"xxh3-64","files":{"a":"0123456789ABCDEF"}})",
  R"({"algorithm":"xxh3-64","files":{"a":"-123456789abcdef"}})",
  R"({"algorithm":"xxh3-64","files":{"":"0123456789abcdef"}})",
  R"({"algorithm":"xxh3-64","files":{"..":"0123456789abcdef"}})",
  R"({"algorithm":"xxh3-64","files":{"../a":"0123456789abcdef"}})",
  R"({"algorithm":"xxh3-64","files":{"a\u001b":"0123456789abcdef"}})",
};

} // namespace

// xxhsum -H3 prints the same.
BOOST_AUTO_TEST_CASE(pieces_have_the_hash_of_the_whole) {
  std::string text;
  for (int i = 0; i < 5000; ++i)
    text += char('a' + i % 26);
  const auto bytes = std::as_bytes(std::span(text));
  for (const std::size_t piece : {1, 3, 64, 255, 256, 1023, 5000}) {
    shoal::runtime::bytes_hasher hasher;
    for (std::size_t first = 0; first < bytes.size(); first += piece)
      hasher.add(bytes.subspan(first, std::min(piece, bytes.size() - first)));
    BOOST_TEST(hasher.hash() == shoal::runtime::hash_of(bytes));
  }
  BOOST_TEST(shoal::runtime::bytes_hasher().hash() == 0x2d06800538d394c2u);
}

BOOST_AUTO_TEST_CASE(weights_are_listed_and_nothing_else) {
  temporary_folder folder;
  for (const char* name :
       {"model.safetensors", "model-00001-of-00002.safetensors",
        "model.safetensors.index.json", "optimizer.safetensors", "config.json",
        "adapter_model.safetensors", "modelling.safetensors"})
    write_text(folder / name, name);
  const status written = write_checksums(folder.path());
  BOOST_REQUIRE_MESSAGE(written, why(written));
  const auto sums = load_checksums(folder.path());
  BOOST_REQUIRE_MESSAGE(sums, why(sums));
  BOOST_TEST(sums->size() == 4u);
  BOOST_TEST(sums->contains("model-00001-of-00002.safetensors"));
  BOOST_TEST(sums->contains("optimizer.safetensors"));
  const auto again = parse_checksums(to_json(*sums), "again");
  BOOST_REQUIRE(again);
  BOOST_TEST((*again == *sums));
}

BOOST_AUTO_TEST_CASE(a_file_that_differs_is_named_with_both_sums) {
  temporary_folder folder;
  const fs::path model = folder / "model.safetensors";
  const fs::path optimizer = folder / "optimizer.safetensors";
  write_text(model, "weights");
  write_text(optimizer, "moments");
  BOOST_REQUIRE(write_checksums(folder.path()));
  BOOST_TEST(bool(check_checksums(folder.path(), "model")));
  const std::string before = to_json(*load_checksums(folder.path()));
  write_text(model, "weighty");
  const status damaged = check_checksums(folder.path(), "model");
  BOOST_REQUIRE(!damaged);
  BOOST_TEST(damaged.message().starts_with(model.string() + ": is damaged"));
  BOOST_TEST(bool(check_checksums(folder.path(), "optimizer")));
  BOOST_REQUIRE(write_checksums(folder.path()));
  const auto sums_in = [](const std::string& json) {
    const std::size_t at = json.find("\"model.safetensors\": \"");
    BOOST_REQUIRE(at != std::string::npos);
    return json.substr(at + 22, 16);
  };
  const std::string after = to_json(*load_checksums(folder.path()));
  for (const std::string& sum : {sums_in(before), sums_in(after)})
    BOOST_TEST(damaged.message().find(sum) != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_missing_file_is_left_to_its_reader) {
  temporary_folder folder;
  BOOST_TEST(bool(check_checksums(folder.path(), "model")));
  write_text(folder / "model.safetensors", "weights");
  BOOST_TEST(bool(check_checksums(folder.path(), "model")));
  BOOST_REQUIRE(write_checksums(folder.path()));
  fs::remove(folder / "model.safetensors");
  BOOST_TEST(bool(check_checksums(folder.path(), "model")));
}

BOOST_AUTO_TEST_CASE(a_check_can_be_given_up) {
  temporary_folder folder;
  write_text(folder / "model.safetensors", "weights");
  BOOST_REQUIRE(write_checksums(folder.path()));
  const status stopped = check_checksums(
    folder.path(), "model",
    [](std::string_view, std::uint64_t, std::uint64_t) { return false; });
  BOOST_REQUIRE(!stopped);
  BOOST_TEST(stopped.message().starts_with("stopped while"));
}

BOOST_DATA_TEST_CASE(a_text_that_is_no_list_of_checksums_is_refused,
                     bdata::make(no_checksums), text) {
  const auto sums = parse_checksums(text, "checksums.json");
  BOOST_REQUIRE(!sums);
  BOOST_TEST(sums.message().starts_with("checksums.json: "));
}

BOOST_AUTO_TEST_CASE(a_saved_model_leaves_no_old_checksums) {
  temporary_folder folder;
  const model_rig rig(tiny_config());
  const fs::path out = folder / "m";
  BOOST_REQUIRE(save_directory(out, *rig.layout, rig.units));
  BOOST_REQUIRE(write_checksums(out));
  const model_rig other(tiny_config(), 2);
  BOOST_REQUIRE(save_directory(out, *other.layout, other.units));
  const auto loaded = load_directory(out);
  BOOST_TEST_REQUIRE(bool(loaded), why(loaded));
}

BOOST_AUTO_TEST_SUITE_END()
