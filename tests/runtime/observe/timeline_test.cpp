// tests/runtime/observe/timeline_test.cpp -- a trace is whole at any moment.
#include "runtime/observe/timeline.hpp"
#include "tests/support/folder.hpp"

#include <boost/test/unit_test.hpp>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>
#include <vector>

BOOST_AUTO_TEST_SUITE(timelines)

using namespace shoal::runtime;
using nlohmann::json;

namespace {

/// Of a file that may lack its end, as that of a killed node does.
std::vector<json> events(const std::string& text) {
  std::string whole = text;
  const auto comma = whole.rfind(',');
  BOOST_REQUIRE(comma != std::string::npos);
  whole.resize(comma);
  return json::parse(whole + "]").get<std::vector<json>>();
}

std::vector<json> events(const std::filesystem::path& file) {
  std::ifstream in(file);
  return events(std::string(std::istreambuf_iterator<char>(in), {}));
}

/// Those that are neither names of threads nor of the process.
std::vector<json> told(const std::vector<json>& all) {
  std::vector<json> out;
  for (const json& e : all)
    if (e["ph"] != "M")
      out.push_back(e);
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(spans_are_in_the_file_while_they_last) {
  shoal::test::folder f;
  timeline trace(f.path / "trace.json", "a \"node\"");
  BOOST_TEST(trace.on());
  {
    const timeline_span outer(trace, timeline::queue::device, "forward",
                              {{"step", 3}, {"microbatch", 1}});
    auto now = told(events(f.path / "trace.json"));
    BOOST_REQUIRE(now.size() == 1);
    BOOST_TEST(now[0]["ph"] == "B");
    BOOST_TEST(now[0]["name"] == "forward");
    BOOST_TEST(now[0]["args"] == (json{{"step", 3}, {"microbatch", 1}}));
    BOOST_TEST(now[0]["pid"] == ::getpid());
  }
  trace.open(0xffffffffffffffff, "running");
  trace.close(0xffffffffffffffff, "running");
  const auto all = events(f.path / "trace.json");
  BOOST_TEST(all[0]["args"]["name"] == "a \"node\"");
  const auto later = told(all);
  BOOST_REQUIRE(later.size() == 4);
  BOOST_TEST(later[1]["ph"] == "E");
  BOOST_TEST(later[1]["tid"] == later[0]["tid"]);
  BOOST_TEST(later[1]["ts"].get<double>() >= later[0]["ts"].get<double>());
  BOOST_TEST(later[2]["ph"] == "b");
  BOOST_TEST(later[2]["id"] == "ffffffffffffffff");
  BOOST_TEST(later[3]["ph"] == "e");
}

BOOST_AUTO_TEST_CASE(a_span_may_have_details_that_only_its_end_knows) {
  shoal::test::folder f;
  timeline trace(f.path / "trace.json", "node");
  trace.begin(timeline::queue::device, "forward", {{"step", 3}});
  trace.end(timeline::queue::device, {{"longest_segment_us", 12}});
  const auto all = told(events(f.path / "trace.json"));
  BOOST_REQUIRE(all.size() == 2);
  BOOST_TEST(all[0]["args"] == (json{{"step", 3}}));
  BOOST_TEST(all[1]["args"] == (json{{"longest_segment_us", 12}}));
}

BOOST_AUTO_TEST_CASE(without_a_file_nothing_is_written) {
  timeline none;
  BOOST_TEST(!none.on());
  none.begin(timeline::queue::disk, "write");
  none.end(timeline::queue::disk);
  BOOST_TEST(!no_timeline().on());
}

BOOST_AUTO_TEST_CASE(a_file_that_cannot_be_written_is_named) {
  shoal::test::folder f;
  try {
    timeline trace(f.path / "no such folder" / "trace.json", "node");
    BOOST_FAIL("opened");
  } catch (const std::system_error& e) {
    BOOST_TEST(std::string(e.what()).find("no such folder")
               != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(events_of_several_threads_do_not_mix) {
  shoal::test::folder f;
  timeline trace(f.path / "trace.json", "node");
  constexpr int rounds = 200;
  auto busy = [&](timeline::queue on) {
    for (int i = 0; i < rounds; ++i)
      const timeline_span span(trace, on, "work", {{"step", unsigned(i)}});
  };
  std::thread other(busy, timeline::queue::disk);
  busy(timeline::queue::device);
  other.join();
  BOOST_TEST(told(events(f.path / "trace.json")).size() == 4u * rounds);
}

BOOST_AUTO_TEST_CASE(a_stalled_reader_of_a_pipe_costs_events_not_time) {
  shoal::test::folder f;
  const auto pipe = f.path / "pipe";
  BOOST_REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const int reader = ::open(pipe.c_str(), O_RDWR | O_NONBLOCK);
  BOOST_REQUIRE(reader >= 0);
  timeline trace(pipe, "node");
  const int size = ::fcntl(reader, F_GETPIPE_SZ);
  const int events_max = size / 16; // an event takes more bytes
  for (int i = 0; i < events_max; ++i)
    trace.open(1, "running");
  BOOST_TEST(trace.on());
  std::string text(std::size_t(size), '\0');
  const ssize_t got = ::read(reader, text.data(), text.size());
  BOOST_REQUIRE(got > 0);
  trace.close(1, "running");
  text.resize(std::size_t(got));
  const auto before = told(events(text)).size();
  BOOST_TEST(before > 0u);
  text.assign(std::size_t(size), '\0');
  const ssize_t more = ::read(reader, text.data(), text.size());
  BOOST_REQUIRE(more > 0);
  text.resize(std::size_t(more));
  const auto after = events("[" + text);
  BOOST_REQUIRE(after.size() == 2);
  BOOST_TEST(after[0]["name"] == "lost_events");
  BOOST_TEST(after[0]["args"]["count"].get<std::size_t>() + before
             == std::size_t(events_max));
  BOOST_TEST(after[1]["ph"] == "e");
  ::close(reader);
}

BOOST_AUTO_TEST_SUITE_END()
