// tests/runtime/work/device_queue_test.cpp -- work in order, on one thread.
#include "kernels/backend.hpp"
#include "runtime/work/device_queue.hpp"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

using namespace shoal;

BOOST_AUTO_TEST_SUITE(device_queue)

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

BOOST_AUTO_TEST_SUITE_END()
