// tests/runtime/http/keys/api_keys_test.cpp -- a file of keys, and new ones.
#include "runtime/core/ids.hpp"
#include "runtime/files/sha256.hpp"
#include "runtime/http/keys/api_keys.hpp"
#include "tests/support/folder.hpp"

#include <boost/test/unit_test.hpp>

#include <fstream>
#include <set>
#include <span>

BOOST_AUTO_TEST_SUITE(keys_of_clients)

using namespace shoal::runtime;

namespace {

std::string digest_of(const std::string& key) {
  return shoal::core::to_hex(sha256(std::as_bytes(std::span(key))));
}

std::string mistake(const std::string& text) {
  const auto keys = api_keys::parse(text, "keys");
  BOOST_TEST_REQUIRE(!keys, text);
  return keys.message();
}

} // namespace

BOOST_AUTO_TEST_CASE(a_key_is_found_by_its_hash) {
  const auto keys = api_keys::parse("# who may\n\nann  " + digest_of("one")
                                      + "\r\n\t bob\t" + digest_of("two"),
                                    "keys");
  BOOST_TEST_REQUIRE(bool(keys));
  BOOST_TEST(keys->size() == 2u);
  BOOST_TEST(keys->find("one")->name == "ann");
  BOOST_TEST(keys->find("two")->name == "bob");
  for (const char* unknown : {"", "On", "one ", "three"})
    BOOST_TEST(!keys->find(unknown), unknown);
  BOOST_TEST(!keys->find(digest_of("one")));
}

BOOST_AUTO_TEST_CASE(a_wrong_line_is_named_and_not_shown) {
  const std::string secret = "sk-shoal-0123456789abcdef";
  const std::string good = "ann " + digest_of("one") + "\n";
  for (const std::string& line :
       {secret, "ann " + secret, std::string("ann"),
        "ann " + digest_of("x").substr(1), "ann " + digest_of("x") + "0",
        "a/b " + digest_of("x"), std::string(65, 'a') + " " + digest_of("x")}) {
    const auto text = mistake("# first\n" + line + "\n");
    BOOST_TEST(text.starts_with("keys: line 2 is not \"NAME SHA256\""), text);
    BOOST_TEST(text.find(secret) == text.npos);
  }
  BOOST_TEST(mistake(good + good)
             == "keys: line 2 has a name that an earlier line has, too");
}

/// Names are in logs and metrics.
BOOST_AUTO_TEST_CASE(a_name_that_may_be_a_key_is_none) {
  BOOST_TEST(is_api_key_name("sk-ann"));
  BOOST_TEST(!is_api_key_name("sk-shoal-0123"));
  const auto made = make_api_key("ann");
  const auto keys =
    api_keys::parse("sk-shoal-0123" + made.line.substr(3), "keys");
  BOOST_TEST_REQUIRE(!keys);
  BOOST_TEST(keys.message().find("keys: line 1") != std::string::npos);
  BOOST_TEST(keys.message().find("0123") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_key_may_have_limits) {
  const auto keys = api_keys::parse(
    "ann " + digest_of("one") + "\ttokens_per_minute=7 \nbob "
      + digest_of("two")
      + " requests_per_minute=60\ttokens_per_minute=1000000000\r\n" + "eve "
      + digest_of("three"),
    "keys");
  BOOST_TEST_REQUIRE(bool(keys));
  BOOST_TEST((keys->find("one")->limits == key_limits{0, 7}));
  BOOST_TEST((keys->find("two")->limits == key_limits{60, 1'000'000'000}));
  BOOST_TEST(!keys->find("three")->limits.any());
}

BOOST_AUTO_TEST_CASE(a_wrong_limit_is_named_and_not_shown) {
  const std::string begin = "\nann " + digest_of("one") + " ";
  for (const char* const wrong :
       {"secret", "tokens_per_minute", "tokens_per_minute=", "=1",
        "tokens_per_minute=0", "tokens_per_minute=-1", "tokens_per_minute=1x",
        "tokens_per_minute=1000000001", "Tokens_per_minute=1",
        "tokens_per_minute =1", "requests_per_minute=5 secret"}) {
    const auto text = mistake(begin + wrong);
    BOOST_TEST(text.starts_with("keys: line 2 has something behind the hash"),
               text);
    BOOST_TEST(text.find("secret") == text.npos);
  }
  BOOST_TEST(mistake(begin + "tokens_per_minute=1 tokens_per_minute=1")
             == "keys: line 2 gives tokens_per_minute twice");
}

BOOST_AUTO_TEST_CASE(the_limits_of_a_new_key_are_in_its_line) {
  const key_limits limits{60, 20000};
  const auto fresh = make_api_key("ann", limits);
  BOOST_TEST(
    fresh.line.ends_with(" requests_per_minute=60 tokens_per_minute=20000\n"));
  const auto keys = api_keys::parse(fresh.line, "keys");
  BOOST_TEST_REQUIRE(bool(keys));
  BOOST_TEST((keys->find(fresh.key)->limits == limits));
}

BOOST_AUTO_TEST_CASE(the_number_of_keys_has_a_limit) {
  std::string text;
  for (std::size_t i = 0; i < api_keys_max; ++i)
    text += "k" + std::to_string(i) + " " + digest_of("x") + "\n";
  BOOST_TEST(bool(api_keys::parse(text, "keys")));
  BOOST_TEST(mistake(text + "one " + digest_of("x"))
             == "keys: line 4097 is one more than 4096 keys");
}

BOOST_AUTO_TEST_CASE(a_new_key_is_in_its_line) {
  std::set<std::string> made;
  for (int i = 0; i < 100; ++i) {
    const auto fresh = make_api_key("ann");
    BOOST_TEST(fresh.key.starts_with("sk-shoal-"));
    BOOST_TEST(fresh.key.size() == api_key_prefix.size() + 64);
    BOOST_TEST(made.insert(fresh.key).second);
    BOOST_TEST(fresh.line.find(fresh.key.substr(9, 8)) == std::string::npos);
    const auto keys = api_keys::parse(fresh.line, "keys");
    BOOST_TEST_REQUIRE(bool(keys));
    BOOST_TEST(keys->find(fresh.key)->name == "ann");
  }
}

BOOST_AUTO_TEST_CASE(keys_come_from_a_file) {
  const shoal::test::folder f;
  const auto file = f.path / "keys";
  std::ofstream(file) << make_api_key("ann").line;
  const auto keys = api_keys::load(file);
  BOOST_TEST_REQUIRE(bool(keys));
  BOOST_TEST(keys->size() == 1u);
  const auto none = api_keys::load(f.path / "none");
  BOOST_TEST_REQUIRE(!none);
  BOOST_TEST(none.message().starts_with((f.path / "none").string()
                                        + ": cannot read the API keys: "));
}

BOOST_AUTO_TEST_SUITE_END()
