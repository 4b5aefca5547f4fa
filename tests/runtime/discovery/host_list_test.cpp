// tests/runtime/discovery/host_list_test.cpp -- lists of hosts, and tokens.
#include "runtime/control/invite.hpp"
#include "runtime/discovery/address_finder.hpp"
#include "runtime/discovery/host_list.hpp"
#include "runtime/node/node.hpp" // usage_error

#include <boost/test/unit_test.hpp>

#include <map>

namespace shoal::runtime {

BOOST_AUTO_TEST_SUITE(host_lists)

using names = std::vector<std::string>;

BOOST_AUTO_TEST_CASE(slurm_lists_are_spread_out) {
  BOOST_TEST((parse_slurm_hosts("a") == names{"a"}));
  BOOST_TEST((parse_slurm_hosts("gpu[01-03,7],login")
              == names{"gpu01", "gpu02", "gpu03", "gpu7", "login"}));
  BOOST_TEST((parse_slurm_hosts("r[1-2]n[09-10].x")
              == names{"r1n09.x", "r1n10.x", "r2n09.x", "r2n10.x"}));
}

BOOST_AUTO_TEST_CASE(text_that_is_no_list_is_refused) {
  for (const char* text :
       {"", ",", "a,", "a[", "a[]", "a[1", "a]", "a[2-1]", "a[x]", "a[1-]",
        "a[-1]", "a b", "a[0-4096]", "a[0-999][0-999]", "a[1234567890]"})
    BOOST_TEST(!parse_slurm_hosts(text), text);
}

BOOST_AUTO_TEST_CASE(a_hosts_file_has_a_host_a_line) {
  BOOST_TEST((*parse_hosts_file("# ours\n a \n\nb:7 # the big one\n[::1]:9")
              == names{"a:18372", "b:7", "[::1]:9"}));
  BOOST_TEST((*parse_hosts_file("") == names{}));
  for (const char* text : {"a b", "a:", "a:0", "a:70000", ":7", "a:b:7", "a/b"})
    BOOST_TEST(!parse_hosts_file(text), text);
  BOOST_TEST(parse_hosts_file("# ours\na\n\nb c\nd").message()
             == "line 4 is no host or host:port");
  std::string many = "# ours\n";
  for (std::size_t i = 0; i < hosts_max; ++i)
    many += "a\n";
  BOOST_TEST(parse_hosts_file(many)->size() == hosts_max);
  BOOST_TEST(parse_hosts_file(many + "b\n").message()
             == "line 4098: more than 4096 hosts");
}

BOOST_AUTO_TEST_CASE(an_address_resolves_to_itself) {
  BOOST_TEST((resolve_all("127.0.0.1:7") == names{"127.0.0.1:7"}));
  BOOST_TEST(resolve_all("nobody.invalid:7").empty());
}

BOOST_AUTO_TEST_CASE(a_token_comes_back_and_a_changed_one_does_not) {
  invite_token t;
  t.expires_s = 1234567890123;
  t.inviter = {1, 2, 3};
  t.key = {250, 251};
  t.cluster = "our cluster";
  t.addresses = {"127.0.0.1:7", "[::1]:8"};
  const std::string text = encode_token(t);
  BOOST_TEST((parse_token(text) == t));
  for (std::size_t n = 0; n < text.size(); ++n) {
    BOOST_TEST((parse_token(text.substr(0, n)) != t));
    std::string other = text;
    other[n] = other[n] == 'A' ? 'B' : 'A';
    BOOST_TEST((parse_token(other) != t));
  }
}

BOOST_AUTO_TEST_CASE(
  a_token_of_another_version_is_distinguished_from_no_token) {
  invite_token t;
  t.cluster = "c";
  t.addresses = {"10.0.0.1:7"};
  std::string text = encode_token(t);
  BOOST_TEST(!is_token_of_another_version(text));
  const std::size_t second = std::string_view("shoal-").size() + 1;
  BOOST_TEST(text[second] == 'g'); // the two lowest bits of version 2
  text[second] = 'Q';              // version 1
  BOOST_TEST(!parse_token(text));
  BOOST_TEST(is_token_of_another_version(text));
  const auto says = [](const char* part) {
    return [part](const usage_error& e) {
      return std::string(e.what()).find(part) != std::string::npos;
    };
  };
  BOOST_CHECK_EXCEPTION(decode_token(text), usage_error,
                        says("another version"));
  BOOST_CHECK_EXCEPTION(decode_token("shoal-"), usage_error,
                        says("not a complete"));
}

BOOST_AUTO_TEST_CASE(a_token_that_no_other_machine_can_use_is_known) {
  invite_token t;
  t.addresses = {"127.0.0.1:7", "[::1]:8"};
  BOOST_TEST(is_local(t));
  t.addresses.push_back("10.0.0.1:7");
  BOOST_TEST(!is_local(t));
}

BOOST_AUTO_TEST_CASE(an_address_without_a_port_means_the_usual_one) {
  for (const auto& [given, meant] :
       std::map<std::string, std::string>{{"anna", "anna:18372"},
                                          {"10.0.0.1", "10.0.0.1:18372"},
                                          {"[::1]", "[::1]:18372"},
                                          {"fd00::1", "[fd00::1]:18372"},
                                          {"anna:7", "anna:7"},
                                          {"[::1]:7", "[::1]:7"},
                                          {"a:b:c", "a:b:c"},
                                          {"", ""}})
    BOOST_TEST(with_node_port(given) == meant);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::runtime
