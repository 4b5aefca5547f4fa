// tests/runtime/hub/hub_listing_test.cpp -- the hub's JSON, right and wrong.
#include "runtime/hub/blob_hash.hpp"
#include "runtime/hub/hub_listing.hpp"

#include <boost/test/unit_test.hpp>

namespace shoal::hub {
BOOST_AUTO_TEST_SUITE(hub_listings)

namespace {

const std::string commit(40, 'c');
const std::string blob(40, 'b');
const std::string sha(64, 'a');

model::result<hub_listing> parse(const std::string& siblings) {
  return parse_listing(R"({"sha": ")" + commit + R"(", "siblings": [)"
                         + siblings + "]}",
                       "the hub");
}

std::string hash_of(hash_kind kind, std::string_view text) {
  blob_hash hash(kind, text.size());
  hash.add(std::as_bytes(std::span(text)));
  return hash.finish();
}

} // namespace

BOOST_AUTO_TEST_CASE(a_file_has_the_hash_of_its_bytes_not_of_its_pointer) {
  const auto all = parse(R"({"rfilename": "config.json", "size": 3,
      "blobId": ")" + blob
                         + R"("}, {"rfilename": "a/m.gguf", "size": 130,
      "blobId": ")" + blob
                         + R"(", "lfs": {"sha256": ")" + sha
                         + R"(", "size": 9000000000, "pointerSize": 130}})");
  BOOST_REQUIRE(all);
  BOOST_TEST(all->commit == commit);
  BOOST_REQUIRE(all->files.size() == 2);
  const hub_file* small = all->find("config.json");
  BOOST_REQUIRE(small);
  BOOST_TEST(small->bytes == 3);
  BOOST_TEST((small->kind == hash_kind::git_blob));
  BOOST_TEST(small->hash == blob);
  const hub_file* large = all->find("a/m.gguf");
  BOOST_REQUIRE(large);
  BOOST_TEST(large->bytes == 9000000000);
  BOOST_TEST((large->kind == hash_kind::sha256));
  BOOST_TEST(large->hash == sha);
  BOOST_TEST(describing_files(*all).size() == 1);
  BOOST_TEST(gguf_files(*all) == std::vector<std::string>{"a/m.gguf"},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(entries_that_cannot_be_are_left_out_or_have_no_hash) {
  const auto all = parse(R"(5, {}, {"rfilename": 5}, {"rfilename": "../x"},
      {"rfilename": "/x"}, {"rfilename": "a/../x"}, {"rfilename": "a\\x"},
      {"rfilename": "a\n"}, {"rfilename": ""},
      {"rfilename": "1", "size": -1, "blobId": ")"
                         + blob + R"("},
      {"rfilename": "2", "size": 1e99, "blobId": ")"
                         + blob + R"("},
      {"rfilename": "3", "size": 1, "blobId": "../../x"},
      {"rfilename": "4", "size": 1, "blobId": ")"
                         + blob + R"(", "lfs": {"sha256": "x", "size": 1}},
      {"rfilename": "5", "size": 18446744073709551615, "blobId": ")"
                         + blob + R"("})");
  BOOST_REQUIRE(all);
  BOOST_TEST(all->files.size() == 5);
  for (const hub_file& file : all->files)
    BOOST_TEST(file.hash.empty(), file.path);
}

BOOST_AUTO_TEST_CASE(what_is_no_listing_is_refused) {
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{}"),
        R"({"sha": ")" + commit + "\"}", std::string(R"({"siblings": []})"),
        std::string(R"({"sha": "x", "siblings": []})"),
        R"({"sha": ")" + commit + R"(", "siblings": {}})",
        std::string(1000, '[')})
    BOOST_TEST(!parse_listing(text, "the hub"), text);
  std::string many;
  for (std::size_t i = 0; i <= listed_files_max; ++i)
    many += i == 0 ? "1" : ",1";
  BOOST_TEST(!parse(many));
}

// By `git hash-object` and `sha256sum`.
BOOST_AUTO_TEST_CASE(hashes_are_those_of_git_and_of_git_lfs) {
  BOOST_TEST(hash_of(hash_kind::git_blob, "hello\n")
             == "ce013625030ba8dba906f756967f9e9ca394464a");
  BOOST_TEST(hash_of(hash_kind::git_blob, "")
             == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  BOOST_TEST(
    hash_of(hash_kind::sha256, "hello\n")
    == "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::hub
