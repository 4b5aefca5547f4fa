// apps/slow_work.hpp -- lines about work that takes long, for the person who
// waits.
//
// A model::watch: silent for quiet_for, then a line every `apart`.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace shoal::apps {

class slow_work {
public:
  using clock = std::chrono::steady_clock;
  /// Nobody wonders before; a line that is gone at once helps nobody.
  static constexpr std::chrono::seconds quiet_for{2};
  /// Often enough to see that it moves, seldom enough for a log.
  static constexpr std::chrono::seconds apart{5};

  explicit slow_work(std::function<void(const std::string&)> say,
                     std::function<clock::time_point()> now = clock::now)
    : say_(std::move(say)), now_(std::move(now)), next_(now_() + quiet_for) {}

  /// @param all  0: not known; `done` is then a number of bytes
  void at(std::string_view what, std::uint64_t done, std::uint64_t all) {
    const auto now = now_();
    if (now < next_)
      return;
    next_ = now + apart;
    const std::string far =
      all > 0
        ? std::to_string(static_cast<int>(100.0 * double(done) / double(all)))
            + " %"
        : std::to_string(done >> 20) + " MiB";
    say_(std::string(what) + ": " + far);
  }

private:
  std::function<void(const std::string&)> say_;
  std::function<clock::time_point()> now_;
  clock::time_point next_;
};

} // namespace shoal::apps
