// apps/terminal/signal_order.hpp -- whether a signal means "in order" or "at
// once".
//
// One press of Ctrl-C may arrive several times: `timeout` signals its child and
// then the whole group, and so do srun and other wrappers. So a later signal
// counts only if it comes `apart_min` after the first.
//
//   first --any signal, sooner than apart_min--> echo: nothing
//     `--any signal, later--> again: at once
//
// SIGHUP is sent by the terminal that closes, and again by its shell, at any
// time after that: it is a first signal, but never a later one.
//
// Time:    an argument. Threads: one at a time.
#pragma once

#include <chrono>
#include <optional>

namespace shoal::apps {

class signal_order {
public:
  using clock = std::chrono::steady_clock;

  /// Echoes of one signal arrive within milliseconds, also on a loaded machine;
  /// a user who wants to stop at once first waits for an effect.
  static constexpr std::chrono::seconds apart_min{1};

  enum class meaning {
    first, ///< end in order
    echo,  ///< the first one again: ignore it
    again  ///< end at once
  };

  /// A signal has come. @param hangup  it is SIGHUP
  meaning take(clock::time_point now, bool hangup = false) {
    if (!first_) {
      first_ = now;
      return meaning::first;
    }
    return hangup || now - *first_ < apart_min ? meaning::echo : meaning::again;
  }

private:
  std::optional<clock::time_point> first_;
};

} // namespace shoal::apps
