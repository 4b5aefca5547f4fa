// tests/apps/transfer/model_upload_test.cpp -- a directory as blobs: large
// files cut, and nothing lost.
#include "actors/checkpoint/checkpoint_manifest.hpp"
#include "apps/transfer/model_upload.hpp"
#include "runtime/files/sha256.hpp"
#include "runtime/model/files/safetensors.hpp"
#include "runtime/store/store.hpp"
#include "tests/support/folder.hpp"

#include <boost/test/unit_test.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

BOOST_AUTO_TEST_SUITE(model_upload)

using namespace shoal;
namespace fs = std::filesystem;

namespace {

/// A model's directory, and its uploaded blobs.
struct directory {
  directory() {
    for (int i = 0; i < 4; ++i) {
      values.emplace_back(16, float(i));
      names.push_back("layer." + std::to_string(i));
    }
  }

  std::vector<model::tensor_to_save> tensors() const {
    std::vector<model::tensor_to_save> out;
    for (std::size_t i = 0; i < names.size(); ++i)
      out.push_back({names[i], {4, 4}, values[i]});
    return out;
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name) << text;
  }

  model::status
  put(std::span<const model::file_piece> pieces, core::blob_digest& digest) {
    std::string bytes(model::bytes_of(pieces), '\0');
    model::piece_reader reader(pieces);
    auto got = reader.read(std::as_writable_bytes(std::span(bytes)));
    if (!got)
      return got.why();
    digest = runtime::sha256(std::as_bytes(std::span(bytes)));
    blobs[digest] = bytes;
    return model::done{};
  }

  apps::uploaded_model upload(std::uint64_t part_bytes) {
    auto done = apps::upload_model(
      path, 3,
      [this](std::span<const model::file_piece> pieces,
             core::blob_digest& digest) { return put(pieces, digest); },
      part_bytes);
    BOOST_REQUIRE_MESSAGE(done, (done ? "" : done.message()));
    auto read = actors::parse_manifest(blobs.at(done->manifest));
    BOOST_REQUIRE(read);
    all = *read;
    BOOST_TEST(all.step == 3u);
    BOOST_TEST(all.total_bytes() == done->bytes);
    for (const actors::manifest_file& f : all.files)
      BOOST_TEST(blobs.at(f.digest).size() == f.bytes);
    return *done;
  }
  /// Why it cannot be uploaded; empty: it can.
  std::string refused() const {
    const auto done = apps::upload_model(
      path, 0,
      [](std::span<const model::file_piece>,
         core::blob_digest&) -> model::status { return model::done{}; },
      apps::upload_part_bytes);
    return done ? std::string{} : done.message();
  }
  const std::string& text(const std::string& name) const {
    BOOST_REQUIRE_MESSAGE(all.has(name), name);
    return blobs.at(all.find(name)->digest);
  }

  shoal::test::folder home;
  fs::path path = home.path;
  std::vector<std::vector<float>> values;
  std::vector<std::string> names;
  std::map<core::blob_digest, std::string> blobs;
  actors::manifest all;
};

} // namespace

BOOST_AUTO_TEST_CASE(a_large_file_goes_in_parts_with_an_index) {
  directory d;
  BOOST_REQUIRE(
    model::write_safetensors(d.path / "model.safetensors", d.tensors()));
  d.write("config.json", "{}");
  d.write("tokenizer.json", "words");
  d.write("consolidated.safetensors", "the same once more");
  d.write("notes.txt", "mine");
  d.upload(2 * 64);
  BOOST_TEST(d.all.files.size() == 5u); // two parts, their index, two small
  BOOST_TEST(d.text("tokenizer.json") == "words");
  const auto index =
    model::parse_index(d.text("model.safetensors.index.json"), "index");
  BOOST_REQUIRE(index);
  for (std::size_t i = 0; i < d.names.size(); ++i) {
    const std::string& part = d.text(index->weights.at(d.names[i]));
    const auto source = model::safetensors_source::open(std::vector{
      model::file_in_memory{"part", std::as_bytes(std::span(part)), nullptr}});
    BOOST_REQUIRE(source);
    std::vector<float> got(16);
    const std::uint64_t shape[] = {4, 4};
    BOOST_REQUIRE(source->read(d.names[i], shape, got));
    BOOST_TEST(got == d.values[i], boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(shards_that_are_too_large_are_cut_as_well) {
  directory d;
  BOOST_REQUIRE(model::write_sharded(d.path, d.tensors(), 2 * 64));
  d.upload(apps::upload_part_bytes);
  BOOST_TEST(d.all.files.size() == 3u); // as they are
  BOOST_TEST(d.all.has("model-00002-of-00002.safetensors"));
  d.upload(64);
  BOOST_TEST(d.all.files.size() == 5u);
  BOOST_TEST(d.all.has("model-00004-of-00004.safetensors"));
}

BOOST_AUTO_TEST_CASE(small_files_are_uploaded_unchanged) {
  directory d;
  BOOST_REQUIRE(
    model::write_safetensors(d.path / "model.safetensors", d.tensors()));
  d.write("merges.txt", "");
  d.upload(apps::upload_part_bytes);
  BOOST_TEST(d.all.files.size() == 2u);
  std::ifstream in(d.path / "model.safetensors", std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(in), {}};
  BOOST_TEST((d.text("model.safetensors") == file));
}

BOOST_AUTO_TEST_CASE(a_path_that_is_no_file_is_named_and_not_left_out) {
  for (const std::string name :
       {"model.safetensors", "optimizer.safetensors", "tokenizer.json"}) {
    directory d;
    BOOST_REQUIRE(
      model::write_safetensors(d.path / "model.safetensors", d.tensors()));
    fs::remove(d.path / name);
    BOOST_REQUIRE(::mkfifo((d.path / name).c_str(), 0600) == 0);
    BOOST_TEST(d.refused()
               == (d.path / name).string() + ": is not a regular file");
    fs::remove(d.path / name);
    fs::create_symlink("/dev/zero", d.path / name);
    BOOST_TEST(d.refused()
               == (d.path / name).string() + ": is not a regular file");
  }
}

BOOST_AUTO_TEST_CASE(a_folder_without_weights_is_no_model) {
  directory d;
  d.write("config.json", "{}");
  BOOST_TEST(d.refused().find("neither model.safetensors nor")
             != std::string::npos);
  d.write("pytorch_model.bin", "weights");
  BOOST_TEST(d.refused().find("pytorch_model.bin is not read")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_tokenizer_goes_without_weights) {
  directory d;
  const auto put = [&d](std::span<const model::file_piece> pieces,
                        core::blob_digest& digest) {
    return d.put(pieces, digest);
  };
  const auto done = apps::upload_tokenizer({"{}", "[]"}, put);
  BOOST_REQUIRE_MESSAGE(done, (done ? "" : done.message()));
  const auto all = actors::parse_manifest(d.blobs.at(done->manifest));
  BOOST_REQUIRE(all);
  BOOST_TEST(all->step == 0u);
  BOOST_TEST(!actors::holds_weights(*all));
  BOOST_TEST(all->files.size() == 2u);
  BOOST_TEST(d.blobs.at(all->find("tokenizer.json")->digest) == "{}");
  BOOST_TEST(done->bytes == 4u);
}

/// It is the user's, and may change at any time: that ends neither the upload's
/// process, which may be a node, nor goes unnoticed.
BOOST_AUTO_TEST_CASE(a_file_that_shrinks_meanwhile_is_named) {
  for (const std::uint64_t part_bytes : {64u << 10, 1u << 30}) {
    directory d;
    for (auto& v : d.values)
      v.resize(1 << 16); // more than a page each
    std::vector<model::tensor_to_save> tensors;
    for (std::size_t i = 0; i < d.names.size(); ++i)
      tensors.push_back({d.names[i], {1 << 16}, d.values[i]});
    BOOST_REQUIRE(
      model::write_safetensors(d.path / "model.safetensors", tensors));
    bool cut = false;
    const auto done = apps::upload_model(
      d.path, 0,
      [&](std::span<const model::file_piece> pieces,
          core::blob_digest& digest) -> model::status {
        if (!std::exchange(cut, true))
          fs::resize_file(d.path / "model.safetensors", 5000);
        const auto hashed = model::sha256_joined(pieces);
        if (!hashed)
          return hashed.why();
        return d.put(pieces, digest);
      },
      part_bytes);
    BOOST_REQUIRE(!done);
    BOOST_TEST(done.message()
               == (d.path / "model.safetensors").string()
                    + ": has become shorter while it was read");
  }
}

BOOST_AUTO_TEST_CASE(a_file_that_lies_is_named) {
  directory d;
  d.write("model.safetensors", std::string(200, 'x'));
  const auto done = apps::upload_model(
    d.path, 0,
    [](std::span<const model::file_piece>,
       core::blob_digest&) -> model::status { return model::done{}; },
    64);
  BOOST_REQUIRE(!done);
  BOOST_TEST(done.message().find("model.safetensors") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
