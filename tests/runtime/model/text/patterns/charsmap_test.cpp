// tests/runtime/model/text/patterns/charsmap_test.cpp -- tables of characters,
// sound ones and lying ones.
#include "runtime/model/text/patterns/charsmap.hpp"

#include <boost/test/unit_test.hpp>

#include <map>
#include <vector>

BOOST_AUTO_TEST_SUITE(charsmaps)

using namespace shoal::model::text;

namespace {

/// A table in which each node has 256 units of its own.
class builder {
public:
  explicit builder(const std::map<std::string, std::string>& entries) {
    for (const auto& [key, text] : entries) {
      std::uint32_t at = 0;
      for (const char c : key) {
        const auto byte = static_cast<unsigned char>(c);
        at = base_[at] ^ byte;
        if (!base_.contains(at))
          add_node(at, byte);
      }
      units[at] |= 1u << 8;
      units[base_[at]] = 1u << 31 | static_cast<std::uint32_t>(texts.size());
      texts += text + '\0';
    }
  }

  std::string bytes() const {
    std::string out = number(static_cast<std::uint32_t>(4 * units.size()));
    for (const std::uint32_t unit : units)
      out += number(unit);
    return out + texts;
  }

  /// Where the node of a key is.
  std::uint32_t place(std::string_view key) const {
    std::uint32_t at = 0;
    for (const char c : key)
      at = base_.at(at) ^ static_cast<unsigned char>(c);
    return at;
  }
  /// Lets a node's children be elsewhere.
  void lead(std::string_view key, std::uint32_t base) {
    const std::uint32_t at = place(key);
    units[at] = (units[at] & 0x1ffu) | (at ^ base) << 10;
  }
  std::uint32_t base(std::string_view key) const {
    return base_.at(place(key));
  }

  std::vector<std::uint32_t> units = std::vector<std::uint32_t>(512);
  std::string texts;

private:
  void add_node(std::uint32_t at, std::uint32_t label) {
    base_[at] = static_cast<std::uint32_t>(units.size());
    units.resize(units.size() + 256);
    units[at] = label | (at ^ base_[at]) << 10;
  }
  static std::string number(std::uint32_t value) {
    std::string out;
    for (int i = 0; i != 4; ++i)
      out.push_back(static_cast<char>(value >> 8 * i & 0xff));
    return out;
  }

  std::map<std::uint32_t, std::uint32_t> base_ = {{0, 256}};
};

builder made_from(const std::map<std::string, std::string>& entries) {
  builder made(entries);
  made.units[0] |= 256u << 10;
  return made;
}

std::string fault_of(const std::string& bytes) {
  const auto made = charsmap::parse(bytes);
  return made ? std::string("none") : made.message();
}

std::string applied(const builder& from, std::string text) {
  const auto made = charsmap::parse(from.bytes());
  if (!made)
    return made.message();
  if (const auto done = made->apply(text, 1000); !done)
    return done.message();
  return text;
}

const std::map<std::string, std::string> some = {
  {"a", "xyz"}, {"b", ""}, {"e\u0301", "\u00e9"}, {"\r", " "}, {"\n", "_"}};

} // namespace

BOOST_AUTO_TEST_CASE(characters_become_their_texts) {
  const builder table = made_from(some);
  BOOST_TEST(applied(table, "caber") == "cxyzer");
  BOOST_TEST(applied(table, "e\u0301e") == "\u00e9e");
  BOOST_TEST(applied(table, "") == "");
}

// As the package has it: the shortest entry counts for all of a user-perceived
// character, if it is short.
BOOST_AUTO_TEST_CASE(the_shortest_entry_stands_for_a_whole_character) {
  const builder table = made_from(some);
  BOOST_TEST(applied(table, "a\u0301c") == "xyzc");
  BOOST_TEST(applied(table, "\r\nc") == " c");
  BOOST_TEST(applied(table, "\n\r") == "_ ");
  // Of 7 bytes: each of its characters by itself.
  BOOST_TEST(applied(table, "a\u0301\u0301\u0301") == "xyz\u0301\u0301\u0301");
}

BOOST_AUTO_TEST_CASE(a_text_does_not_grow_without_bound) {
  const std::string said = applied(made_from(some), std::string(400, 'a'));
  BOOST_TEST(said.find("Precompiled") != std::string::npos, said);
  BOOST_TEST(said.find("grown_bytes_max") != std::string::npos, said);
}

BOOST_AUTO_TEST_CASE(a_table_that_lies_is_refused) {
  const std::string good = made_from(some).bytes();
  BOOST_TEST(fault_of(good) == "none");
  BOOST_TEST(fault_of("").find("too short") != std::string::npos);
  BOOST_TEST(fault_of(std::string(4, '\0')).find("0 bytes")
             != std::string::npos);
  BOOST_TEST(fault_of("\x06" + good.substr(1)).find("claims a tree")
             != std::string::npos);
  BOOST_TEST(fault_of(good.substr(0, 1000)).find("claims a tree")
             != std::string::npos);
  BOOST_TEST(fault_of(good + "\xff").find("UTF-8") != std::string::npos);
  BOOST_TEST(
    fault_of(std::string(charsmap_bytes_max + 1, '\0')).find("more than")
    != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_node_that_points_outside_is_refused) {
  builder table = made_from(some);
  table.lead("e", static_cast<std::uint32_t>(table.units.size()));
  BOOST_TEST(fault_of(table.bytes()).find("beyond the end")
             != std::string::npos);
  // A unit that is not reached may hold anything.
  table = made_from(some);
  table.units[1] = ~0u;
  BOOST_TEST(fault_of(table.bytes()) == "none");
}

BOOST_AUTO_TEST_CASE(a_leaf_that_points_to_no_text_is_refused) {
  builder table = made_from(some);
  const auto at = table.base("a");
  table.units[at] = 1u << 31 | static_cast<std::uint32_t>(table.texts.size());
  BOOST_TEST(applied(table, "cac") == "cc"); // the end: an empty text
  table.units[at] += 1;
  BOOST_TEST(fault_of(table.bytes()).find("no text") != std::string::npos);
  table.units[at] =
    1u << 31 | static_cast<std::uint32_t>(table.texts.find("\u00e9") + 1);
  BOOST_TEST(fault_of(table.bytes()).find("no text") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_tree_with_a_cycle_is_refused) {
  builder table = made_from(some);
  table.lead("e\xCC", table.base("")); // what follows is the beginning
  BOOST_TEST(fault_of(table.bytes()).find("cycle") != std::string::npos);
  // Two ways to one node are none: the ends of keys may be shared.
  table = made_from({{"ac", "x"}, {"bc", "y"}});
  table.lead("b", table.base("a"));
  BOOST_TEST(fault_of(table.bytes()) == "none");
  BOOST_TEST(applied(table, "ac") == "ac"); // two characters, none an entry
}

BOOST_AUTO_TEST_CASE(base_64_is_read_strictly) {
  const auto fault = [](std::string_view text) {
    const auto made = charsmap::parse_base64(text);
    return made ? std::string("none") : made.message();
  };
  for (const char* text : {"A", "AA", "AAA", "AA=A", "A===", "====", "AAA\n",
                           "AAB=", "AB==", "AA-_",
                           "AA=="
                           "AAAA"})
    BOOST_TEST(fault(text) == "is not base 64", text);
  BOOST_TEST(fault("AAA=") == "is too short for a table");
  BOOST_TEST(fault("BAAAAA==").find("claims a tree of 4 bytes, and has 0")
             != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
