// tests/runtime/control/missed_events_test.cpp -- steps that other logs have.
#include "runtime/control/missed_events.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>

namespace shoal::runtime {

BOOST_AUTO_TEST_SUITE(missed_events_of_others)

namespace {

job_event event(job_event_kind kind, std::uint64_t step) {
  job_event e;
  e.kind = kind;
  e.step = step;
  return e;
}

/// A log that is read in parts of three events.
struct log {
  explicit log(std::vector<std::uint64_t> steps) {
    for (const std::uint64_t s : steps)
      all.push_back(event(job_event_kind::step, s));
  }
  missed_events::asker asker() {
    return [this](const ask_events& r, client_reply& out) {
      ++asked;
      const std::size_t end = std::min<std::size_t>(all.size(), r.from + 3);
      out.events.assign(all.begin() + std::ptrdiff_t(r.from),
                        all.begin() + std::ptrdiff_t(end));
      out.value = end;
      out.ended = end == all.size();
      return answers;
    };
  }
  std::vector<job_event> all;
  bool answers = true;
  int asked = 0;
};

std::vector<std::uint64_t> steps_of(const std::vector<job_event>& events) {
  std::vector<std::uint64_t> out;
  for (const job_event& e : events)
    out.push_back(e.step);
  return out;
}

using list = std::vector<std::uint64_t>;

} // namespace

BOOST_AUTO_TEST_CASE(they_come_in_order_and_once) {
  log a({1, 2, 3, 6, 7, 8}), b({1, 2, 4, 5, 6, 7, 8, 9});
  b.all.insert(b.all.begin() + 4, event(job_event_kind::eval, 5));
  b.all.push_back(event(job_event_kind::notice, 5));
  missed_events m(7, 2, 7);
  m.read(a.asker());
  BOOST_TEST(!m.complete());
  m.read(b.asker());
  BOOST_TEST(m.complete());
  BOOST_TEST((steps_of(m.take()) == list{3, 4, 5, 5, 6}));
}

BOOST_AUTO_TEST_CASE(a_log_is_read_no_further_than_needed) {
  log a({1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  missed_events m(7, 2, 4);
  m.read(a.asker());
  BOOST_TEST(a.asked == 2);
  BOOST_TEST((steps_of(m.take()) == list{3}));
}

BOOST_AUTO_TEST_CASE(who_does_not_answer_is_passed_over) {
  log a({1, 2, 3});
  a.answers = false;
  log none({});
  missed_events m(7, 0, 4);
  BOOST_TEST(!m.read(a.asker()));
  BOOST_TEST(m.read(none.asker()));
  BOOST_TEST(!m.complete());
  BOOST_TEST(m.take().empty());
}

BOOST_AUTO_TEST_CASE(a_log_that_says_the_same_for_ever_is_left) {
  missed_events m(7, 0, 9);
  int asked = 0;
  BOOST_TEST(m.read([&](const ask_events&, client_reply& out) {
    out.events.push_back(event(job_event_kind::step, 1));
    out.value = 0;
    return ++asked < 5;
  }));
  BOOST_TEST(asked == 1);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::runtime
