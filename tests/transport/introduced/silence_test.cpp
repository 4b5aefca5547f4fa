// tests/transport/introduced/silence_test.cpp -- whether a progress thread
// turns.
#include "transport/introduced/commands.hpp"
#include "transport/introduced/fabric.hpp"

#include <boost/test/unit_test.hpp>
#include <poll.h>
#include <unistd.h>

#include <latch>

BOOST_AUTO_TEST_SUITE(introduced_silence)

using namespace shoal::transport;
using namespace std::chrono_literals;

namespace {

/// A progress thread that stands still at its beginning.
class stuck_engine final : public introduced::engine {
public:
  stuck_engine(introduced::commands& queue, int wake_fd, std::latch& go_on)
    : queue_(queue), wake_fd_(wake_fd), go_on_(go_on) {}
  const std::string& address() const override { return address_; }
  void run() override {
    go_on_.wait();
    for (bool closed = false; !closed;) {
      std::vector<introduced::command> all;
      queue_.take(all);
      for (const introduced::command& c : all)
        closed = closed || c.what == introduced::command::kind::close;
      pollfd wakes{wake_fd_, POLLIN, 0};
      std::uint64_t count = 0;
      if (!closed && queue_.may_sleep()) {
        ::poll(&wakes, 1, -1);
        [[maybe_unused]] auto n = ::read(wake_fd_, &count, sizeof count);
      }
    }
  }

private:
  introduced::commands& queue_;
  int wake_fd_;
  std::latch& go_on_;
  std::string address_ = "nowhere";
};

class stuck_fabric final : public introduced::fabric {
public:
  explicit stuck_fabric(std::latch& go_on)
    : introduced::fabric("stuck", introduced::config{},
                         [&go_on](introduced::commands& queue, int wake_fd) {
                           return std::make_unique<stuck_engine>(queue, wake_fd,
                                                                 go_on);
                         }) {}
};

} // namespace

BOOST_AUTO_TEST_CASE(it_is_asked_and_answers_by_taking) {
  introduced::commands queue(4, {});
  std::vector<introduced::command> all;
  const std::chrono::steady_clock::time_point begin{1h};
  bool wake = false;
  BOOST_TEST(queue.may_sleep());
  BOOST_TEST((queue.silent_for(begin, wake) == 0ns)); // this asks
  BOOST_TEST(wake);
  BOOST_TEST(!queue.may_sleep()); // it owes an answer
  wake = false;
  BOOST_TEST((queue.silent_for(begin + 2s, wake) == 2s));
  BOOST_TEST((queue.silent_for(begin + 5s, wake) == 5s));
  BOOST_TEST(!wake);
  queue.take(all);
  BOOST_TEST(all.empty());
  BOOST_TEST(queue.may_sleep());
  BOOST_TEST((queue.silent_for(begin + 6s, wake) == 0ns)); // asks again
  BOOST_TEST(wake);
  queue.take(all);
  wake = false;
  BOOST_TEST((queue.silent_for(begin + 6s + fabric::look_every / 2, wake)
              == 0ns)); // not so often
  BOOST_TEST(!wake);
  BOOST_TEST(queue.close(wake));
  BOOST_TEST((queue.silent_for(begin + 100s, wake) == 0ns));
}

BOOST_AUTO_TEST_CASE(a_thread_that_stands_still_is_silent_until_it_turns) {
  std::latch go_on(1);
  stuck_fabric f(go_on);
  while (f.silent_for() == 0ns) {
  }
  BOOST_TEST((f.silent_for() > 0ns));
  go_on.count_down();
  while (f.silent_for() != 0ns) {
  }
  f.close();
}

BOOST_AUTO_TEST_SUITE_END()
