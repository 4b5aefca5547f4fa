// tests/actors/text_files_test.cpp -- the small files of a served model, at a peer
// that keeps none of its files.
#include "actors/checkpoint/blob_set.hpp"
#include "actors/checkpoint/checkpoint_manifest.hpp"
#include "actors/serving/text_files.hpp"
#include "support/folder.hpp"
#include "tests/actors/inline_queue.hpp"
#include "tests/actors/small_store.hpp"
#include "tests/actors/still_context.hpp"

#include <boost/test/unit_test.hpp>

namespace shoal::actors {
namespace text_files {

namespace {

core::blob_digest put(runtime::store& to, const std::string& text) {
  core::blob_digest out{};
  const auto writer = to.write();
  BOOST_REQUIRE(!writer->append(std::as_bytes(std::span(text))));
  BOOST_REQUIRE(!writer->commit(out, std::nullopt));
  return out;
}

/// A peer, and the store of another one that has all.
struct peer : test::still_context {
  const core::peer_id& self() const override { std::abort(); }
  std::filesystem::path data_dir() const override { return home.path; }
  runtime::store& blobs() override { return store; }
  runtime::device_queue& disk() override { return queue; }
  void fetch_blob(const core::blob_digest& d, std::vector<core::peer_id>,
                  std::function<void(std::error_code)> done) override {
    std::error_code error;
    const auto found = other.read(d, error);
    BOOST_REQUIRE(found);
    put(store, std::string(reinterpret_cast<const char*>(found->bytes().data()),
                           found->bytes().size()));
    done({});
  }

  test::folder home, there;
  test::small_store store{home.path / "blobs"};
  test::small_store other{there.path / "blobs"};
  test::inline_queue queue;
};

} // namespace

BOOST_AUTO_TEST_SUITE(text_files)

/// One that was not fetched was waited for: the first request took 9 s.
BOOST_AUTO_TEST_CASE(all_that_is_read_with_the_text_is_fetched) {
  peer p;
  manifest m;
  for (const char* name : {"config.json", "tokenizer.json",
                           "generation_config.json", "model.safetensors"})
    m.files.push_back({name, put(p.other, name), std::string(name).size()});
  const core::blob_digest origin = put(p.other, to_json(m));
  blob_set set;
  set.texts.push_back(origin);
  std::optional<std::error_code> ended;
  fetch_all(p, set, {core::peer_id{}},
            [&](std::error_code error) { ended = error; });
  BOOST_REQUIRE(ended);
  BOOST_TEST(!*ended);
  const auto put_all =
    put_text_files(origin, p.store, p.home.path, p.home.path / "text");
  BOOST_TEST(bool(put_all), (put_all ? "" : put_all.message()));
  BOOST_TEST(std::filesystem::exists(p.home.path / "text/config.json"));
  BOOST_TEST(!p.store.contains(m.files.back().digest)); // no weights
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace text_files
} // namespace shoal::actors
