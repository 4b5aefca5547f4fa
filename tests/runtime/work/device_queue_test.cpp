// tests/runtime/work/device_queue_test.cpp -- work in order, on one thread.
#include "kernels/backend.hpp"
#include "runtime/work/device_queue.hpp"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

BOOST_AUTO_TEST_SUITE(device_queue)

using namespace shoal;

BOOST_AUTO_TEST_CASE(work_runs_in_order_and_done_follows_it) {
  std::vector<int> seen;
  std::vector<std::thread::id> threads;
  auto device = runtime::make_io_device();
  for (int i = 0; i < 1000; ++i)
    device->submit(
      [&, i](kernels::backend&) {
        seen.push_back(2 * i);
        threads.push_back(std::this_thread::get_id());
      },
      [&, i] { seen.push_back(2 * i + 1); });
  device->submit({}, {});
  device->close();
  device->submit([&](kernels::backend&) { seen.clear(); }, {});
  device->close();
  BOOST_REQUIRE(seen.size() == 2000u);
  for (int i = 0; i < 2000; ++i)
    BOOST_REQUIRE(seen[static_cast<std::size_t>(i)] == i);
  for (const auto& id : threads)
    BOOST_REQUIRE((id == threads.front() && id != std::this_thread::get_id()));
}

BOOST_AUTO_TEST_CASE(a_cpu_device_has_the_cpu_backend) {
  std::string name;
  auto device = runtime::make_cpu_device(2);
  device->submit([&](kernels::backend& b) { name = b.name(); }, {});
  device->close();
  BOOST_TEST(name.find("cpu") == 0u);
}

BOOST_AUTO_TEST_CASE(work_may_submit_work) {
  std::atomic<int> count{0};
  {
    auto device = runtime::make_io_device();
    device->submit(
      [&](kernels::backend&) {
        device->submit([&](kernels::backend&) { ++count; }, [&] { ++count; });
      },
      {});
    while (count == 0) // the second piece must be in before close()
      std::this_thread::yield();
    device->close();
  }
  BOOST_TEST(count.load() == 2);
}

BOOST_AUTO_TEST_CASE(it_says_since_when_a_piece_is_in_front) {
  auto device = runtime::make_io_device();
  BOOST_TEST(device->busy_since() == 0);
  std::promise<void> begun, go;
  device->submit(
    [&](auto&) {
      begun.set_value();
      go.get_future().wait();
    },
    {});
  BOOST_TEST(device->busy_since() > 0); // also before it runs
  begun.get_future().wait();
  const auto first = device->busy_since();
  BOOST_TEST(first > 0);
  device->submit({}, {}); // waits, and is not in front
  BOOST_TEST(device->busy_since() == first);
  go.set_value();
  device->close();
  BOOST_TEST(device->busy_since() == 0);
}

namespace {

using runtime::device_queue;
using runtime::urgency;

/// A device that is held at a piece of work until it is let go.
struct held_device {
  std::unique_ptr<device_queue> queue = runtime::make_io_device();
  std::vector<std::string> seen; ///< written by work only
  std::size_t wanted = 0;        ///< number of segments to wait for
  std::promise<void> let_go, complete;

  held_device() {
    queue->submit([this](auto&) { let_go.get_future().wait(); }, {});
  }
  void see(const std::string& what) {
    seen.push_back(what);
    if (seen.size() == wanted)
      complete.set_value();
  }
  device_queue::work note(const std::string& what) {
    return [this, what](kernels::backend&) { see(what); };
  }
  void submit(const std::string& what, urgency how) {
    queue->submit(note(what), [this, what] { see(what + " done"); }, {0, how});
  }
  /// Of `count` segments; `during` runs in the k-th as during(k).
  void submit_pass(const std::string& what, int count, urgency how,
                   std::function<void(int)> during = {}) {
    queue->submit_pass(
      [this, what, count, during, k = 0](kernels::backend&) mutable {
        see(what + std::to_string(++k));
        if (during)
          during(k);
        return k != count;
      },
      [this, what] { see(what + " done"); }, {0, how});
  }
  /// Lets it go, and closes the queue when so much has been seen.
  void check(const std::vector<std::string>& expected) {
    wanted = expected.size();
    let_go.set_value();
    const auto end = complete.get_future().wait_for(std::chrono::minutes(1));
    BOOST_TEST((end == std::future_status::ready));
    queue->close();
    BOOST_TEST(seen == expected, boost::test_tools::per_element());
  }
};

} // namespace

BOOST_AUTO_TEST_CASE(urgent_work_goes_first_and_each_class_keeps_its_order) {
  held_device d;
  d.submit("a", urgency::usual);
  d.submit("x", urgency::urgent);
  d.submit("b", urgency::usual);
  d.submit("y", urgency::urgent);
  d.check({"x", "x done", "y", "y done", "a", "a done", "b", "b done"});
}

BOOST_AUTO_TEST_CASE(a_pass_runs_to_its_end_if_nobody_urgent_waits) {
  held_device d;
  d.submit_pass("p", 3, urgency::usual, [&](int k) {
    if (k == 1)
      d.submit("a", urgency::usual);
  });
  d.submit("b", urgency::usual);
  d.check({"p1", "p2", "p3", "p done", "b", "b done", "a", "a done"});
}

BOOST_AUTO_TEST_CASE(a_pass_gives_the_device_back_and_goes_on_first) {
  held_device d;
  d.submit_pass("p", 4, urgency::usual, [&](int k) {
    if (k == 2) {
      d.submit("x", urgency::urgent);
      d.submit_pass("y", 2, urgency::urgent);
    }
  });
  d.submit_pass("q", 2, urgency::usual);
  d.check({"p1", "p2", "x", "x done", "y1", "y2", "y done", "p3", "p4",
           "p done", "q1", "q2", "q done"});
}

BOOST_AUTO_TEST_CASE(an_urgent_pass_waits_for_no_other) {
  held_device d;
  d.submit_pass("x", 3, urgency::urgent, [&](int k) {
    if (k == 1)
      d.submit("y", urgency::urgent);
  });
  d.check({"x1", "x2", "x3", "x done", "y", "y done"});
}

BOOST_AUTO_TEST_CASE(what_is_submitted_in_the_last_segment_waits_for_done) {
  held_device d;
  d.submit_pass("p", 2, urgency::usual, [&](int k) {
    if (k == 2)
      d.submit("x", urgency::urgent);
  });
  d.check({"p1", "p2", "p done", "x", "x done"});
}

BOOST_AUTO_TEST_CASE(close_runs_all_that_waits_to_its_end) {
  held_device d;
  d.submit_pass("p", 3, urgency::usual);
  d.submit("a", urgency::usual);
  d.submit_pass("y", 2, urgency::urgent);
  d.let_go.set_value();
  d.queue->close();
  const std::vector<std::string> expected{
    "y1", "y2", "y done", "p1", "p2", "p3", "p done", "a", "a done"};
  BOOST_TEST(d.seen == expected, boost::test_tools::per_element());
  const auto kept = std::make_shared<int>(0); // dropped, and not kept
  for (const urgency how : {urgency::usual, urgency::urgent})
    d.queue->submit_pass(
      [&, kept](kernels::backend&) {
        d.seen.clear();
        return false;
      },
      [kept] {}, {0, how});
  BOOST_TEST(kept.use_count() == 1);
  BOOST_TEST(d.seen == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(urgent_work_runs_between_the_calls_of_a_usual_piece) {
  auto device = runtime::make_cpu_device(1);
  std::vector<std::string> seen;
  std::vector<float> values(10);
  std::promise<void> end;
  device->submit(
    [&](kernels::backend& b) {
      const auto say = [&](const char* what) {
        return [&seen, what](kernels::backend&) { seen.push_back(what); };
      };
      device->submit(say("x"), [&] { seen.push_back("x done"); },
                     {5, urgency::urgent});
      device->submit(say("usual"), [&] { end.set_value(); }, {6});
      seen.push_back("before");
      b.fill(values, 1);
      seen.push_back("after");
      BOOST_TEST(device->front().job == 7u);
    },
    [&] { seen.push_back("done"); }, {7});
  end.get_future().wait();
  device->close();
  const std::vector<std::string> expected{"before", "x",    "x done",
                                          "after",  "done", "usual"};
  BOOST_TEST(seen == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(it_says_since_when_it_is_busy_with_whose_work) {
  auto device = runtime::make_io_device();
  BOOST_TEST(device->busy_since(7) == 0);
  BOOST_TEST(device->front().job == 0u);
  std::vector<device_queue::piece_in_front> fronts;
  const auto look = [&](auto&) { fronts.push_back(device->front()); };
  std::promise<void> begun, go;
  device->submit_pass(
    [&, k = 0](kernels::backend& b) mutable {
      look(b);
      if (++k == 1) {
        begun.set_value();
        go.get_future().wait();
      }
      return k != 2;
    },
    {}, {7});
  begun.get_future().wait();
  BOOST_TEST(device->busy_since(7) == device->busy_since());
  BOOST_TEST(device->busy_since(7) > 0);
  BOOST_TEST(device->busy_since(8) == 0);
  BOOST_TEST(device->busy_since(0) == 0);
  device->submit(look, {}, {8, urgency::urgent});
  device->submit(look, {}, {9});
  BOOST_TEST(device->busy_since(8) == 0); // waits
  go.set_value();
  device->close();
  BOOST_REQUIRE(fronts.size() == 4u);
  for (std::size_t i = 0; i != 4; ++i) {
    BOOST_TEST(fronts[i].job == (std::vector<core::job_id>{7, 8, 7, 9}[i]));
    BOOST_TEST(fronts[i].since >= (i == 0 ? 1 : fronts[i - 1].since));
  }
  BOOST_TEST(device->busy_since() == 0);
}

BOOST_AUTO_TEST_SUITE_END()
