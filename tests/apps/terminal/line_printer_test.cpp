// tests/apps/terminal/line_printer_test.cpp -- a reader that stalls, and one that
// goes.
#include "apps/terminal/line_printer.hpp"

#include <boost/test/unit_test.hpp>
#include <unistd.h>

#include <array>
#include <csignal>
#include <sstream>

namespace shoal::apps {
BOOST_AUTO_TEST_SUITE(ends)

namespace {

struct piped {
  piped() {
    BOOST_REQUIRE(::pipe(ends.data()) == 0);
    std::signal(SIGPIPE, SIG_IGN);
  }
  ~piped() {
    for (const int fd : ends)
      if (fd >= 0)
        ::close(fd);
  }
  void stop_reading() { ::close(std::exchange(ends[0], -1)); }
  /// Everything until the other end is closed.
  std::string rest() {
    std::string text;
    std::array<char, 65536> some{};
    for (ssize_t n = 0; (n = ::read(ends[0], some.data(), some.size())) > 0;)
      text.append(some.data(), static_cast<std::size_t>(n));
    return text;
  }
  std::array<int, 2> ends{};
};

std::string missing(std::size_t count) {
  return "missing " + std::to_string(count);
}

} // namespace

BOOST_AUTO_TEST_CASE(lines_come_out_as_they_went_in) {
  piped p;
  {
    line_printer out(p.ends[1], missing);
    out.line("one");
    out.line("");
    out.line("three");
  }
  ::close(std::exchange(p.ends[1], -1));
  BOOST_TEST(p.rest() == "one\n\nthree\n");
}

// The reader stalls: line() returns nevertheless. Then it reads, and every line
// is either there or counted.
BOOST_AUTO_TEST_CASE(a_stalled_reader_costs_lines_but_no_time) {
  piped p;
  const std::string text(100, 'x');
  constexpr std::size_t count = 40000; // four times the queue's size
  std::string got;
  std::thread reader;
  {
    line_printer out(p.ends[1], missing);
    for (std::size_t i = 0; i < count; ++i)
      out.line(text);
    reader = std::thread([&] { got = p.rest(); });
  }
  ::close(std::exchange(p.ends[1], -1));
  reader.join();
  std::istringstream lines(got);
  std::size_t whole = 0, left_out = 0;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("missing "))
      left_out += std::stoul(line.substr(8));
    else
      whole += line == text;
  BOOST_TEST(left_out > 0);
  BOOST_TEST(whole + left_out == count);
}

BOOST_AUTO_TEST_CASE(the_end_does_not_wait_for_a_stalled_reader) {
  piped p;
  line_printer out(p.ends[1], missing);
  for (int i = 0; i < 20000; ++i)
    out.line(std::string(100, 'x'));
}

BOOST_AUTO_TEST_CASE(a_reader_that_is_gone_is_no_error) {
  piped p;
  p.stop_reading();
  line_printer out(p.ends[1], missing);
  out.line("one");
  out.line("two");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::apps
