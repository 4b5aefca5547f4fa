// tests/runtime/hub/hub_settings_test.cpp -- variables, as the hub's other tools
// read them.
#include "runtime/hub/http_fetch.hpp" // may_send_token
#include "runtime/hub/hub_settings.hpp"
#include "tests/support/scratch.hpp"

#include <boost/test/unit_test.hpp>

#include <fstream>
#include <map>

namespace shoal::hub {
BOOST_AUTO_TEST_SUITE(hub_settings_)

namespace {

using variables = std::map<std::string, std::string>;

model::result<hub_settings> read(const variables& set) {
  return read_settings([&set](const char* name) -> const char* {
    const auto found = set.find(name);
    return found == set.end() ? nullptr : found->second.c_str();
  });
}

std::string cache_of(const variables& set) {
  const auto settings = read(set);
  return settings ? settings->cache.string() : settings.message();
}

} // namespace

BOOST_AUTO_TEST_CASE(the_more_specific_variable_says_where_the_cache_is) {
  variables set{{"HOME", "/none"}};
  BOOST_TEST(cache_of(set) == "/none/.cache/huggingface/hub");
  set["XDG_CACHE_HOME"] = "/x";
  BOOST_TEST(cache_of(set) == "/x/huggingface/hub");
  set["HF_HOME"] = "~/hf";
  BOOST_TEST(cache_of(set) == "/none/hf/hub");
  set["HUGGINGFACE_HUB_CACHE"] = "/old";
  BOOST_TEST(cache_of(set) == "/old");
  set["HF_HUB_CACHE"] = "/new";
  BOOST_TEST(cache_of(set) == "/new");
  BOOST_TEST(!read({}));
  BOOST_TEST(cache_of({{"HF_HUB_CACHE", "/c"}}) == "/c");
}

BOOST_AUTO_TEST_CASE(an_endpoint_is_a_url_without_a_password) {
  const auto endpoint = [](const char* url) {
    const auto settings = read({{"HOME", "/none"}, {"HF_ENDPOINT", url}});
    return settings ? settings->endpoint : "refused";
  };
  BOOST_TEST(endpoint("") == "https://huggingface.co");
  BOOST_TEST(endpoint("http://h:1/a/b//") == "http://h:1/a/b");
  for (const char* url : {"h", "ftp://h", "https://", "https:///x", "file:///x",
                          "https://u:p@h", "https://h?x", "https://h\nX: y"})
    BOOST_TEST(endpoint(url) == "refused", url);
}

BOOST_AUTO_TEST_CASE(the_token_is_that_of_the_variable_or_of_the_file) {
  const test::scratch folder("shoal-hub");
  const std::string home = folder.path().string();
  const auto token = [](const variables& set) {
    const auto settings = read(set);
    return settings ? settings->token : settings.message();
  };
  variables set{{"HF_HOME", home}};
  BOOST_TEST(token(set) == "");
  std::ofstream(folder.path() / "token") << "hf_file\n";
  BOOST_TEST(token(set) == "hf_file");
  std::ofstream(folder.path() / "other") << "hf_other";
  set["HF_TOKEN_PATH"] = home + "/other";
  BOOST_TEST(token(set) == "hf_other");
  set["HF_TOKEN"] = " hf_variable\n";
  BOOST_TEST(token(set) == "hf_variable");
  set["HF_TOKEN"] = "hf_secret\nX-Other: y";
  BOOST_TEST(!read(set));
  BOOST_TEST(token(set).find("secret") == std::string::npos);
  set["HF_HUB_DISABLE_IMPLICIT_TOKEN"] = "yes";
  BOOST_TEST(token(set) == "");
}

BOOST_AUTO_TEST_CASE(a_token_stays_on_this_machine_without_encryption) {
  for (const char* url : {"https://h/x", "http://localhost:1/x",
                          "http://127.0.0.1:1", "http://[::1]:1/x"})
    BOOST_TEST(may_send_token(url), url);
  for (const char* url :
       {"http://h/x", "http://127.0.0.1.h/x", "http://10.0.0.1",
        "http://localhost.h/", "http://[::2]/", "ftp://h"})
    BOOST_TEST(!may_send_token(url), url);
}

BOOST_AUTO_TEST_CASE(a_time_is_a_number_of_seconds) {
  for (const auto& [text, good] :
       std::map<std::string, bool>{{"1", true},
                                   {"0", false},
                                   {"-1", false},
                                   {"5s", false},
                                   {"3601", false},
                                   {"99999999999999999999", false}})
    BOOST_TEST(
      bool(read({{"HOME", "/none"}, {"HF_HUB_DOWNLOAD_TIMEOUT", text}}))
        == good,
      text);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::hub
