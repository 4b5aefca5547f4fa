// tests/runtime/hub/hub_name_test.cpp -- names that become paths and URLs.
#include "runtime/hub/hub_name.hpp"

#include <boost/test/unit_test.hpp>

namespace shoal::hub {

BOOST_AUTO_TEST_SUITE(hub_names)

BOOST_AUTO_TEST_CASE(a_name_has_a_repository_a_revision_and_a_file) {
  const auto plain = parse_name("org/Name-1.5_b");
  BOOST_REQUIRE(plain);
  BOOST_TEST(plain->repository == "org/Name-1.5_b");
  BOOST_TEST(plain->revision == "main");
  BOOST_TEST(plain->file.empty());
  const auto all = parse_name("o/n@refs/pr/1:Q8/a@b.gguf");
  BOOST_REQUIRE(all);
  BOOST_TEST(all->repository == "o/n");
  BOOST_TEST(all->revision == "refs/pr/1");
  BOOST_TEST(all->file == "Q8/a@b.gguf");
  const auto file = parse_name("o/n:a@b.gguf");
  BOOST_REQUIRE(file);
  BOOST_TEST(file->revision == "main");
  BOOST_TEST(file->file == "a@b.gguf");
}

BOOST_AUTO_TEST_CASE(what_could_lead_elsewhere_is_no_name) {
  for (const char* text : {"",
                           "/",
                           "n",
                           "o/",
                           "/n",
                           "o/n/x",
                           "../n",
                           "o/..",
                           "./n",
                           "o/.n",
                           "o/n.",
                           "-o/n",
                           "o/n-",
                           "o/a--b",
                           "o/a..b",
                           "o/n.git",
                           "o/n x",
                           "o/n\n",
                           "o/n%2e",
                           "o\\n/x",
                           "o/\xc3\xa9",
                           "o/n@",
                           "o/n@..",
                           "o/n@a..b",
                           "o/n@/a",
                           "o/n@a/",
                           "o/n@a//b",
                           "o/n@.a",
                           "o/n@a/.b",
                           "o/n@-a",
                           "o/n@a b",
                           "o/n@a\tb",
                           "o/n@a.lock",
                           "o/n@a@b",
                           "o/n:",
                           "o/n:a",
                           "o/n:.gguf/..",
                           "o/n:../a.gguf",
                           "o/n:/a.gguf",
                           "o/n:a//b.gguf",
                           "o/n:a\n.gguf",
                           "o/n:a\\b.gguf",
                           "o/n:\xff.gguf"})
    BOOST_TEST(!parse_name(text), text);
  BOOST_TEST(!parse_name("o/" + std::string(97, 'n')));
  BOOST_TEST(bool(parse_name("o/" + std::string(96, 'n'))));
  BOOST_TEST(!parse_name("o/n@" + std::string(256, 'r')));
  BOOST_TEST(!parse_name("o/n:" + std::string(251, 'f') + ".gguf"));
}

BOOST_AUTO_TEST_CASE(a_wrong_name_is_shown_safely) {
  const auto wrong = parse_name("o/n\x1b[2J");
  BOOST_REQUIRE(!wrong);
  BOOST_TEST(wrong.message().find('\x1b') == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_commit_is_forty_digits_in_lower_case) {
  BOOST_TEST(is_commit(std::string(40, 'a')));
  BOOST_TEST(!is_commit(std::string(40, 'A')));
  BOOST_TEST(!is_commit(std::string(39, 'a')));
  BOOST_TEST(!is_commit(std::string(40, 'g')));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::hub
