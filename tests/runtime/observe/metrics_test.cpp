// tests/runtime/observe/metrics_test.cpp -- the files are what readers expect.
#include "runtime/observe/metrics_jsonl.hpp"
#include "runtime/observe/tensorboard.hpp"
#include "tests/support/folder.hpp"

#include <boost/test/unit_test.hpp>

#include <cstring>
#include <fstream>
#include <sstream>

BOOST_AUTO_TEST_SUITE(metrics)

using namespace shoal::runtime;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string slurp(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

template <class Number>
Number number_at(const std::string& text, std::size_t at) {
  Number n;
  BOOST_REQUIRE(at + sizeof n <= text.size());
  std::memcpy(&n, text.data() + at, sizeof n);
  return n;
}

/// The records' bytes; every length and both sums are checked.
std::vector<std::string> records(const std::string& file) {
  std::vector<std::string> list;
  for (std::size_t at = 0; at < file.size();) {
    const auto length = number_at<std::uint64_t>(file, at);
    BOOST_REQUIRE(number_at<std::uint32_t>(file, at + 8)
                  == masked_crc32c(bytes_of(file.substr(at, 8))));
    BOOST_REQUIRE(at + 16 + length <= file.size());
    list.push_back(file.substr(at + 12, length));
    BOOST_REQUIRE(number_at<std::uint32_t>(file, at + 12 + length)
                  == masked_crc32c(bytes_of(list.back())));
    at += 16 + length;
  }
  return list;
}

} // namespace

// RFC 3720, B.4.
BOOST_AUTO_TEST_CASE(crc32c_gives_the_known_values) {
  BOOST_TEST(crc32c(bytes_of(std::string(32, '\0'))) == 0x8a9136aau);
  BOOST_TEST(crc32c(bytes_of(std::string(32, '\xff'))) == 0x62a8ab43u);
  std::string up;
  for (int i = 0; i < 32; ++i)
    up += static_cast<char>(i);
  BOOST_TEST(crc32c(bytes_of(up)) == 0x46dd794eu);
  BOOST_TEST(crc32c(bytes_of({up.rbegin(), up.rend()})) == 0x113fdb5cu);
  BOOST_TEST(crc32c(bytes_of("123456789")) == 0xe3069283u);
}

BOOST_AUTO_TEST_CASE(an_event_file_reads_back) {
  shoal::test::folder f;
  std::filesystem::path file;
  {
    tensorboard_writer w(f.path, 1700000000);
    file = w.file();
    BOOST_TEST(!w.add_scalar("lr", 300, 0.25, 1700000001.5));
    job_event e;
    e.kind = job_event_kind::step;
    BOOST_TEST(!w.add(e));
    e.kind = job_event_kind::eval;
    BOOST_TEST(!w.add(e));
    e.kind = job_event_kind::notice;
    BOOST_TEST(!w.add(e));
  }
  BOOST_TEST(file.filename().string().find("events.out.tfevents.1700000000.")
             == 0u);
  const auto list = records(slurp(file));
  BOOST_REQUIRE(list.size() == 2u + 5u + 2u);
  BOOST_TEST(list[0].substr(0, 1) == "\x09");
  BOOST_TEST(number_at<double>(list[0], 1) == 1700000000.0);
  BOOST_TEST(list[0].substr(9)
             == "\x1a\x0d"
                "brain.Event:2");
  BOOST_TEST(number_at<double>(list[1], 1) == 1700000001.5);
  // step 300; summary {value {tag "lr", simple_value 0.25}}
  const std::string expected("\x10\xac\x02\x2a\x0b\x0a\x09\x0a\x02lr\x15"
                             "\x00\x00\x80\x3e",
                             16);
  BOOST_TEST(list[1].substr(9) == expected);
}

BOOST_AUTO_TEST_CASE(a_missing_folder_is_reported_at_once) {
  BOOST_CHECK_THROW(tensorboard_writer("/nonexistent/folder", 0),
                    std::system_error);
  BOOST_CHECK_THROW(metrics_jsonl("/nonexistent/folder/metrics.jsonl"),
                    std::system_error);
}

BOOST_AUTO_TEST_CASE(lines_are_appended) {
  shoal::test::folder f;
  const auto file = f.path / "metrics.jsonl";
  for (std::uint64_t i = 0; i < 3; ++i) {
    metrics_jsonl m(file);
    job_event e;
    e.kind = job_event_kind::step;
    e.step = i;
    BOOST_TEST(!m.add(e));
  }
  const auto text = slurp(file);
  BOOST_TEST(std::count(text.begin(), text.end(), '\n') == 3);
  BOOST_TEST(text.find(R"({"event":"step","step":0,)") == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
