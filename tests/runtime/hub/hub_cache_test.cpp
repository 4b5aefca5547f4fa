// tests/runtime/hub/hub_cache_test.cpp -- the cache's files, links and locks.
#include "runtime/files/file_io.hpp"
#include "runtime/hub/hub_cache.hpp"
#include "runtime/hub/partial_blob.hpp"
#include "tests/support/scratch.hpp"

#include <boost/test/unit_test.hpp>

namespace shoal::hub {
BOOST_AUTO_TEST_SUITE(hub_caches)

namespace {

namespace fs = std::filesystem;

const std::string commit(40, 'c');
// Of "hello\n".
const std::string hello_hash = "ce013625030ba8dba906f756967f9e9ca394464a";
const hub_file hello{"x/hello", 6, hash_kind::git_blob, hello_hash};

struct fresh_cache {
  fresh_cache() { BOOST_REQUIRE(bool(cache.make_folders())); }

  test::scratch folder{"shoal-hub"};
  hub_cache cache{folder.path(), "org/name"};
  fs::path repository = folder.path() / "models--org--name";

  void put(const std::string& path, const std::string& text) const {
    const fs::path place = cache.snapshot(commit) / path;
    fs::create_directories(place.parent_path());
    BOOST_REQUIRE(bool(model::write_file(place, text)));
  }
};

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

bool go_on(std::uint64_t) {
  return true;
}

} // namespace

BOOST_FIXTURE_TEST_CASE(a_snapshot_links_to_blobs, fresh_cache) {
  BOOST_REQUIRE(bool(model::write_file(cache.blob(hello_hash), "hello\n")));
  for (const std::string path : {"hello", "x/y/hello"}) {
    BOOST_REQUIRE(bool(cache.link(commit, path, hello_hash)));
    const fs::path place = cache.snapshot(commit) / path;
    BOOST_TEST(fs::read_symlink(place).is_relative());
    BOOST_TEST(*model::read_file(place, 100) == "hello\n");
    BOOST_TEST(bool(cache.link(commit, path, hello_hash))); // again
  }
  BOOST_TEST(cache.has_blob(hello_hash));
  // A link whose blob is gone is no reason not to link.
  fs::remove(cache.blob(hello_hash));
  BOOST_TEST(!cache.has_blob(hello_hash));
  const std::string other(40, 'd');
  BOOST_REQUIRE(bool(model::write_file(cache.blob(other), "other")));
  BOOST_REQUIRE(bool(cache.link(commit, "hello", other)));
  BOOST_TEST(*model::read_file(cache.snapshot(commit) / "hello", 100)
             == "other");
}

BOOST_FIXTURE_TEST_CASE(a_ref_names_a_commit, fresh_cache) {
  BOOST_TEST(!cache.commit_of("main"));
  BOOST_TEST(*cache.commit_of(commit) == commit);
  for (const std::string revision : {"main", "refs/pr/1"}) {
    BOOST_REQUIRE(bool(cache.write_ref(revision, commit)));
    BOOST_TEST(*model::read_file(repository / "refs" / revision, 100)
               == commit);
    BOOST_TEST(*cache.commit_of(revision) == commit);
  }
  BOOST_REQUIRE(bool(cache.write_ref(commit, commit)));
  BOOST_TEST(!fs::exists(repository / "refs" / commit));
  for (const char* text : {"", "../../x", "CCCC"}) {
    BOOST_REQUIRE(bool(model::write_file(repository / "refs/main", text)));
    BOOST_TEST(!cache.commit_of("main"));
  }
}

BOOST_FIXTURE_TEST_CASE(a_model_is_there_with_all_its_weights, fresh_cache) {
  using enum hub_cache::found;
  const auto look = [&] { return cache.look(commit, ""); };
  BOOST_TEST((look() == nothing));
  put("config.json", "{}");
  put("tokenizer.json", "{}");
  BOOST_TEST((look() == nothing));
  put("model.safetensors.index.json",
      R"({"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}})");
  put("1.safetensors", "");
  BOOST_TEST((look() == nothing));
  put("2.safetensors", "");
  BOOST_TEST((look() == all));
  fs::remove(cache.snapshot(commit) / "tokenizer.json");
  BOOST_TEST((look() == weights));
  BOOST_TEST((cache.look(commit, "x.gguf") == nothing));
  put("x.gguf", "");
  BOOST_TEST((cache.look(commit, "x.gguf") == all));
}

BOOST_FIXTURE_TEST_CASE(one_process_writes_a_blob, fresh_cache) {
  unsigned waits = 0;
  const auto not_long = [&] { return ++waits < 2; };
  {
    auto first = cache.lock(hello_hash, not_long);
    BOOST_REQUIRE(bool(first));
    BOOST_TEST(first->held());
    BOOST_TEST(!cache.lock(hello_hash, not_long)); // flock: also in a process
    BOOST_TEST(waits == 2);
    BOOST_TEST(bool(cache.lock(commit, not_long))); // another blob
    // Who removes the file leaves the lock to others.
    fs::remove(folder.path() / ".locks/models--org--name"
               / (hello_hash + ".lock"));
    BOOST_TEST(bool(cache.lock(hello_hash, not_long)));
  }
  BOOST_TEST(bool(cache.lock(hello_hash, not_long)));
}

BOOST_FIXTURE_TEST_CASE(a_part_goes_on_where_it_ended, fresh_cache) {
  {
    partial_blob first(cache.blob(hello_hash), hello, true);
    BOOST_REQUIRE(bool(first.open(go_on)));
    BOOST_REQUIRE(bool(first.add(bytes_of("hel"))));
  }
  {
    partial_blob second(cache.blob(hello_hash), hello, true);
    BOOST_REQUIRE(bool(second.open(go_on)));
    BOOST_TEST(second.bytes() == 3);
    BOOST_TEST(second.resumed());
    BOOST_REQUIRE(bool(second.add(bytes_of("lo\n"))));
    BOOST_TEST(!cache.has_blob(hello_hash));
    BOOST_TEST(*second.finish());
  }
  BOOST_TEST(*model::read_file(cache.blob(hello_hash), 100) == "hello\n");
  BOOST_TEST(!fs::exists(cache.blob(hello_hash + ".incomplete")));
}

BOOST_FIXTURE_TEST_CASE(a_part_with_another_hash_is_no_blob, fresh_cache) {
  partial_blob part(cache.blob(hello_hash), hello, true);
  BOOST_REQUIRE(bool(part.open(go_on)));
  BOOST_REQUIRE(bool(part.add(bytes_of("hallo\n"))));
  BOOST_TEST(!*part.finish());
  BOOST_TEST(!cache.has_blob(hello_hash));
  BOOST_REQUIRE(bool(part.restart()));
  BOOST_REQUIRE(bool(part.add(bytes_of("hello\n"))));
  BOOST_TEST(*part.finish());
}

BOOST_FIXTURE_TEST_CASE(a_part_without_a_lock_leaves_nothing, fresh_cache) {
  const auto files = [&] {
    return std::distance(fs::directory_iterator(repository / "blobs"),
                         fs::directory_iterator());
  };
  {
    partial_blob part(cache.blob(hello_hash), hello, false);
    BOOST_REQUIRE(bool(part.open(go_on)));
    BOOST_REQUIRE(bool(part.add(bytes_of("hel"))));
    BOOST_TEST(files() == 1);
  }
  BOOST_TEST(files() == 0);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::hub
