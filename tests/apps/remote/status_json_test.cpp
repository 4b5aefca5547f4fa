// tests/apps/remote/status_json_test.cpp -- false answers of a lying node to
// `status`.
#include "apps/remote/status_text.hpp"
#include "runtime/core/text/amounts.hpp" // age_text
#include "runtime/core/text/shown.hpp"
#include "runtime/core/view.hpp"
#include "runtime/wire/client_messages.hpp" // status_bytes_max

#include <boost/test/unit_test.hpp>

#include <string>

BOOST_AUTO_TEST_SUITE(status_json)

using namespace shoal::apps;

namespace {

std::string tables_of(const std::string& text) {
  const auto status = parse_status(text);
  BOOST_TEST_REQUIRE(bool(status), text);
  static_cast<void>(view_of(*status));
  return status_table(*status) + links_table(*status)
         + jobs_table(*status, 1'000'000);
}

} // namespace

BOOST_AUTO_TEST_CASE(a_text_that_is_no_status_is_refused) {
  for (const char* text :
       {"", "{", "[]", "3", "{}", R"({"peers":[]})", R"({"jobs":[]})"})
    BOOST_TEST(!parse_status(text), text);
}

BOOST_AUTO_TEST_CASE(a_missing_value_or_one_of_another_type_is_unknown) {
  for (const char* text :
       {R"({"peers":3,"jobs":null})",
        R"({"peers":[3,null,[],{}],"jobs":["a",{}]})",
        R"({"peers":[{"devices":[3,{}],"addresses":[7]}],"jobs":[{"loss":"x",
            "step":-1,"steps":1e300,"priority":1e300,"tokens_per_s":[]}]})",
        R"({"peers":[],"jobs":[],"cuts":[3,[],["a"],["a","b","c"]],
            "links":[{"moved":[{}],"instead_of":[3]},7],"epoch":-5})"})
    BOOST_TEST_CONTEXT(text)
  tables_of(text);
}

namespace {

/// `count` empty objects under a key: each gets all its fields.
std::string made_of_nothing(const std::string& key, std::size_t count) {
  std::string text = R"({"peers":[],"jobs":[],")" + key + "\":[";
  if (key == "peers" || key == "jobs")
    text =
      (key == "peers" ? R"({"jobs":[],")" : R"({"peers":[],")") + key + "\":[";
  for (std::size_t i = 0; i < count; ++i)
    text += i == 0 ? "{}" : ",{}";
  return text + "]}";
}

} // namespace

/// An answer of some hundred kilobytes would become a hundred megabytes.
BOOST_AUTO_TEST_CASE(an_answer_of_too_many_values_is_refused) {
  for (const char* key :
       {"peers", "jobs", "links", "other_shoals", "apart", "former"}) {
    const std::string text = made_of_nothing(key, 60000);
    BOOST_TEST(text.size() < shoal::runtime::status_bytes_max, key);
    const auto status = parse_status(text);
    BOOST_TEST(!status, key);
    BOOST_TEST(status.message().find(std::to_string(status_values_max))
                 != std::string::npos,
               status.message());
  }
  std::string nested =
    R"({"peers":[],"jobs":[],"links":[{"moved":[{"jobs":[{})";
  for (int i = 0; i < 60000; ++i)
    nested += ",{}";
  BOOST_TEST(!parse_status(nested + "]}]}]}"));
}

/// What has all keys is never refused: no text has room for so much of it.
BOOST_AUTO_TEST_CASE(the_largest_answer_with_all_keys_is_taken) {
  for (const char* key : {"peers", "jobs", "links"}) {
    const auto one = parse_status(made_of_nothing(key, 1));
    BOOST_TEST_REQUIRE(bool(one), key);
    const std::size_t bytes = (*one)[key][0].dump().size() + 1;
    const std::size_t count = shoal::runtime::status_bytes_max / bytes;
    shoal::apps::status_json all = *one;
    all[key] = std::vector<shoal::apps::status_json>(count, (*one)[key][0]);
    const auto whole = parse_status(all.dump());
    BOOST_TEST_REQUIRE(bool(whole), key << ": " << count);
    BOOST_TEST((*whole)[key].size() == count);
  }
}

BOOST_AUTO_TEST_CASE(after_a_force_it_is_said_which_shoal_gives_way) {
  const auto shown = [](const std::string& way) {
    return tables_of(R"({"peers":[],"jobs":[],"other_shoals":[{"id":"ab",
      "peers":["hosta"],"members":2,"running":1)"
                     + way + "}]}");
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  const std::string here = shown(R"(,"gives_way":"this")");
  BOOST_TEST(has(here, "2 members (connected: hosta)"), here);
  BOOST_TEST(has(here, "end its jobs here"), here);
  const std::string there = shown(R"(,"gives_way":"other")");
  BOOST_TEST(has(there, "end its jobs there"), there);
  BOOST_TEST(has(shown(""), "one joins the other"), shown(""));
}

BOOST_AUTO_TEST_CASE(present_values_are_shown) {
  const std::string tables = tables_of(
    R"({"id":"9f86d081884c7d65","epoch":7,"state":"member","name":"anna",
        "self":"6c613112000000000000000000000000","beacons":{"strange":99,
        "strange_last_minute":39,"strange_age_ms":4000},
        "peers":[{
        "id":"6c613112000000000000000000000000","name":"anna","state":"active",
        "addresses":["127.0.0.1:7"],"voter":true,"witness":false,
        "devices":[{"kind":"cpu","threads":2,"mflops":3000,
                    "memory_bytes":4194304}]}],
        "jobs":[{"id":"00000000000000ab","name":"run","state":"running",
                 "priority":-3,"step":4,"steps":9,"loss":1.5,
                 "tokens_per_s":100,"plan":"1 x 2","user":"ada@engine",
                 "submitted_unix_ms":820000,"places":[[{"peer":"x",
                 "id":"00","first_layer":0,"last_layer":3},{"peer":"anna",
                 "id":"6c613112000000000000000000000000","first_layer":4,
                 "last_layer":7}]],"keepers":[{"peer":"anna",
                 "id":"6c613112000000000000000000000000"},{"id":"00"}]}]})");
  for (const char* part :
       {"epoch 7", "anna", "127.0.0.1:7", "cpu 2 threads 3.0 GFLOP/s 4 MiB",
        "6c613112* ", "* the node that was asked (anna)",
        "39 announcements of nodes with another", "the last one 4 s ago",
        "00000000000000ab", "-3", "4/9", "1.5000", "100", "1 x 2", "ada@engine",
        " 3 min ",
        "  trains job run (00000000), replica 0 stage 1, layers 4-7\n",
        "  keeps the checkpoints of job run (00000000): whole on 2 disks; none "
        "is known here yet\n"})
    BOOST_TEST(tables.find(part) != std::string::npos, part << tables);
}

BOOST_AUTO_TEST_CASE(the_room_of_each_disk_and_what_is_used_are_shown) {
  const std::string peers =
    R"({"jobs":[],"name":"anna","self":"61","peers":[
        {"id":"61","name":"anna","state":"active","addresses":["127.0.0.1:7"],
         "devices":[{"disk_bytes":17179869184}]},
        {"id":"62","name":"ben","state":"active","devices":[{}]},
        {"id":"63","name":"cleo","state":"active","witness":true}])";
  const std::string shown = tables_of(
    peers
    + R"(,"resources":{"store_bytes":2097152,"store_room_bytes":3221225472}})");
  for (const char* part :
       {"ADDRESS                      DISK  DEVICES\n",
        "127.0.0.1:7                16 GiB  cpu 1 thread ", "-  cpu 1 thread ",
        "-  witness\n",
        "* the node that was asked (anna): its files take 2 MiB of its disk, "
        "and may take 3 GiB more\n"})
    BOOST_TEST(shown.find(part) != std::string::npos, part << shown);
  // An earlier version does not say what is used.
  const std::string less = tables_of(peers + "}");
  BOOST_TEST(less.find("that was asked (anna)\n") != std::string::npos, less);
}

// Who looked for a dead machine found no word of it.
BOOST_AUTO_TEST_CASE(members_that_are_gone_are_named_the_newest_first) {
  const auto shown = [](std::size_t count) {
    std::string former;
    for (std::size_t i = 0; i < count; ++i)
      former += (i == 0 ? "" : ",") + std::string(R"({"id":"00000000ab",)")
                + R"("name":"n)" + std::to_string(i) + R"(","how":")"
                + (i == 0 ? "elsewhere" : "lost") + R"(","unix_ms":86400000})";
    return tables_of(R"({"peers":[],"jobs":[],"former":[)" + former + "]}");
  };
  BOOST_TEST(shown(0).find("not here") == std::string::npos);
  const std::string two = shown(2);
  BOOST_TEST(two.find("not here any more: n1 (00000000), lost at 1970-01-02 "
                      "00:00:00 UTC; n0 (00000000), in another shoal at ")
               != std::string::npos,
             two);
  const std::string many = shown(20);
  BOOST_TEST(many.find("n12 (") != std::string::npos, many);
  BOOST_TEST(many.find("n11 (") == std::string::npos, many);
  BOOST_TEST(many.find("; and 12 more\n") != std::string::npos, many);
}

/// Of 0.0.0.0 no client can make use.
BOOST_AUTO_TEST_CASE(a_node_at_all_addresses_is_named_by_one_of_its_machine) {
  const auto shown = [](const char* http, const char* addresses) {
    const auto status = parse_status(
      R"({"jobs":[],"self":"61","http":")" + std::string(http)
      + R"(","peers":[{"id":"62","addresses":["10.0.0.2:7"]},{"id":"61",)"
      + R"("addresses":[)" + addresses + "]}]}");
    BOOST_TEST_REQUIRE(bool(status));
    return http_address(*status);
  };
  constexpr char both[] = R"("[fd00::1]:7","10.0.0.1:7")";
  BOOST_TEST(shown("0.0.0.0:8000", both) == "10.0.0.1:8000");
  BOOST_TEST(shown("[::]:8000", both) == "[fd00::1]:8000");
  BOOST_TEST(shown("[::]:8000", R"("[fe80::1]:7")") == "[::1]:8000");
  BOOST_TEST(shown("0.0.0.0:8000", "") == "127.0.0.1:8000");
  BOOST_TEST(shown("10.0.0.9:8000", both) == "10.0.0.9:8000");
  BOOST_TEST(tables_of(R"({"jobs":[],"peers":[],"http":"0.0.0.0:80"})")
               .find("http://127.0.0.1:80/v1")
             != std::string::npos);
}

/// Not as a keeper: its disk is full. The others' count goes without it.
BOOST_AUTO_TEST_CASE(a_disk_that_refuses_checkpoints_is_no_place_of_them) {
  const std::string tables = tables_of(
    R"({"peers":[{"id":"61","name":"anna"},{"id":"62","name":"ben"},
                 {"id":"63","name":"cleo"}],
        "jobs":[{"id":"00000000000000ab","name":"run","state":"running",
                 "checkpoint":{"step":7,"digest":"ab"},
                 "keepers":[{"id":"61","refuses":true},
                            {"id":"62","refuses":false},{"id":"63"}]}]})");
  const std::string refused = "  keeps no checkpoints of job run (00000000): "
                              "its disk has refused them (full, read-only or "
                              "damaged)\n";
  BOOST_TEST(tables.find(refused) != std::string::npos, tables);
  BOOST_TEST(tables.find(refused) == tables.rfind(refused), tables);
  BOOST_TEST(
    tables.find("  keeps the checkpoints of job run (00000000): whole on 2 "
                "disks; the job's newest is of step 7\n")
      != std::string::npos,
    tables);
}

/// The table of peers a, b, ... that run these versions.
static std::string table_of(const std::vector<std::string>& versions) {
  std::string peers;
  for (std::size_t i = 0; i < versions.size(); ++i)
    peers += (i == 0 ? "" : ",") + std::string(R"({"name":")")
             + char('a' + i % 26) + R"(","version":")" + versions[i] + "\"}";
  const auto status = parse_status(R"({"jobs":[],"peers":[)" + peers + "]}");
  BOOST_TEST_REQUIRE(bool(status));
  return status_table(*status);
}

BOOST_AUTO_TEST_CASE(each_peers_version_is_shown_and_that_they_differ) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
    {{"0.1.0 (ab)"}, "\nthis peer runs shoal 0.1.0 (ab)\n"},
    {{"0.1.0", "0.1.0"}, "\nall peers run shoal 0.1.0\n"},
    {{"0.1.0", "0.1.1", "0.1.0"},
     "\npeers run different versions; install one on all of them:\n"
     "  0.1.0: a, c\n  0.1.1: b\n"},
    {{"0.1.0", "", "0.1.1"},
     "\npeers run different versions; install one on all of them:\n"
     "  0.1.0: a\n  0.1.1: c\n  not known: b\n"},
    {{"0.1.0", ""}, "\n1 of 2 peers runs shoal 0.1.0; not known: b\n"},
    {{"0.1.0", "0.1.0", ""}, "\n2 of 3 peers run shoal 0.1.0; not known: c\n"},
  };
  for (const auto& [versions, expected] : cases) {
    const std::string table = table_of(versions);
    BOOST_TEST(table.find(expected) != std::string::npos,
               table << "lacks" << expected);
  }
  BOOST_TEST(table_of({"", ""}).find("version") == std::string::npos);
  BOOST_TEST(table_of({"", ""}).find("run") == std::string::npos);
  BOOST_TEST(table_of(std::vector<std::string>(30, "")).find("known")
             == std::string::npos);
  // A large shoal does not fill the screen.
  std::vector<std::string> many(30, "0.1.0");
  many[0] = "0.1.1";
  BOOST_TEST(table_of(many).find("b, c, d, e, f, g, h, i and 21 more\n")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(ages_have_one_unit) {
  constexpr std::int64_t s = 1000;
  for (const auto& [ms, says] :
       {std::pair{-5 * s, "0 s"}, std::pair{59 * s, "59 s"},
        std::pair{60 * s, "1 min"}, std::pair{7199 * s, "1 h"},
        std::pair{86400 * 40 * s, "40 d"}})
    BOOST_TEST(shoal::core::age_text(ms) == says);
}

BOOST_AUTO_TEST_CASE(jobs_that_run_come_first_then_the_last_that_ended) {
  const auto status = parse_status(
    R"({"peers":[],"jobs":[
        {"name":"ended-first","state":"done","changed":3},
        {"name":"late","state":"running","changed":9},
        {"name":"ended-last","state":"failed","changed":8},
        {"name":"early","state":"running","changed":2},
        {"name":"urgent","state":"running","changed":7,"priority":5}]})");
  BOOST_TEST_REQUIRE(bool(status));
  const std::string table = jobs_table(*status, 0);
  std::size_t last = 0;
  for (const char* name :
       {"urgent", "early", "late", "ended-last", "ended-first"}) {
    const std::size_t found = table.find(name);
    BOOST_TEST(found != std::string::npos, table);
    BOOST_TEST(found > last, name << " in " << table);
    last = found;
  }
}

/// `shoal plan` plans for the view of a status.
BOOST_AUTO_TEST_CASE(a_view_for_a_plan_has_the_networks_that_were_measured) {
  const std::string peer(64, '1');
  const auto status = parse_status(
    R"({"jobs":[],"peers":[{"id":")" + peer
    + R"(","networks":[{"name":"tls","latency_ns":5,"bytes_per_s":1000000}]}]})");
  BOOST_TEST_REQUIRE(bool(status));
  const auto view = view_of(*status);
  BOOST_TEST_REQUIRE(view.members.size() == 1u);
  BOOST_TEST_REQUIRE(view.members[0].networks.size() == 1u);
  BOOST_TEST((view.members[0].networks[0]
              == shoal::core::network_profile{"tls", 5, 1'000'000}));
}

BOOST_AUTO_TEST_CASE(a_job_that_ends_after_its_step_is_shown_as_ending) {
  const auto status = parse_status(
    R"({"peers":[],"jobs":[
        {"name":"a","state":"running","ending":true,"waiting":"for b"},
        {"name":"b","state":"running","ending":false}]})");
  BOOST_TEST_REQUIRE(bool(status));
  const std::string table = jobs_table(*status, 0);
  BOOST_TEST(table.find(" ending ") != std::string::npos, table);
  BOOST_TEST(table.find(" running ") != std::string::npos, table);
  BOOST_TEST(table.find(" waits ") == std::string::npos, table);
}

BOOST_AUTO_TEST_CASE(texts_are_fit_to_be_shown_and_numbers_bounded) {
  const auto status = parse_status(
    R"({"peers":[{"name":"\u001b[2J\u009b\u202e\ud800","devices":[
        {"mflops":18446744073709551615,"threads":99999999999}]}],
        "jobs":[],"epoch":18446744073709551615})");
  // A surrogate alone is no JSON for the library: then nothing is taken.
  BOOST_TEST(!status);
  const auto mended = parse_status(
    R"({"peers":[{"id":"6c6131120000000000000000000000006c613112000000000000000000000000",
        "name":"\u001b[2J\u009b\u202e","devices":[
        {"mflops":18446744073709551615,"threads":99999999999}]}],
        "jobs":[],"epoch":18446744073709551615})");
  BOOST_TEST_REQUIRE(bool(mended));
  BOOST_TEST(
    shoal::core::is_shown((*mended)["peers"][0]["name"].get<std::string>()));
  const auto view = view_of(*mended);
  BOOST_TEST(view.number == std::uint64_t{1} << 56);
  for (const auto& m : view.members) {
    BOOST_TEST(m.device.threads == 65536u);
    BOOST_TEST(m.device.mflops == std::uint64_t{1} << 40);
  }
}

BOOST_AUTO_TEST_SUITE_END()
