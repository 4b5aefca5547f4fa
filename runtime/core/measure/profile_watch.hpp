// runtime/core/measure/profile_watch.hpp -- when what was measured is worth a
// view.
//
// Plans are made from the profile in the view, so it follows what is measured
// in operation: how long the device works on a job's steps, and the throughput
// of links. A new profile may mean a new plan, and noise must not cause one. So
// a value is replaced only when it has been off by its factor, in the same
// direction, in streak_needed observations in a row and for long enough. The
// new value is the median of the latest, rounded to eighths of a power of two;
// neither the device's value nor those of links are replaced twice within
// `rest`. If a device is off by much (a straggler), its value is replaced soon,
// within ten steps that take 0.1 s or more; if it is off by less, only a
// lasting difference is worth moving state.
//
//   steady  --off--> streak of 1, 2, ... --long enough--> new value, steady
//              `--within the factor, or off to the other side--> steady
//
// Speed of a device: a step that the plan expects to take E and that took T
// shows E / T of the speed in the profile. The error of the plan's arithmetic
// on this machine is the same for all steps of a job that as many peers work for on
// this machine's cores. Hence later steps of a
// job are compared with its first ones (streak_needed): with the second fastest
// of them, as a start may be slow and no step is fast by chance. Steps right
// after a change of the plan (settling_steps) do not count: memory is touched
// for the first time, and text and state are in transit.
//
// Units:   nanoseconds, bytes; integers only. Threads: none of its own.
// Cost:    a few integer operations per observation.
#pragma once

#include "runtime/core/view.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace shoal::core {

/// One value with its streak.
class steady_figure {
public:
  static constexpr std::size_t streak_needed = 6;

  /// If the mean distance of observations is larger, they count as few.
  static constexpr nanoseconds far_apart = 100'000'000;

  /// @param off_permille 2000: off if less than half or more than twice
  /// @param streak_time how long it must be off
  /// @param few_time the same, if observations are few; 0: as streak_time
  steady_figure(std::uint64_t value, std::uint32_t off_permille,
                nanoseconds streak_time, nanoseconds few_time = 0)
    : value_(value), off_permille_(off_permille), streak_time_(streak_time),
      few_time_(few_time > 0 ? few_time : streak_time) {}

  std::uint64_t value() const noexcept { return value_; }
  void set(std::uint64_t value) noexcept;
  /// @returns the value that should replace value(); set() replaces it
  std::optional<std::uint64_t> observe(nanoseconds now, std::uint64_t measured);

private:
  std::uint64_t value_;
  std::uint32_t off_permille_;
  nanoseconds streak_time_, few_time_;
  bool above_ = false;
  std::size_t streak_ = 0;
  nanoseconds since_ = 0; ///< begin of the streak
  std::array<std::uint64_t, streak_needed> seen_{};
};

/// Rounded down to 64ths of a power of two: room that is there.
[[nodiscard]] std::uint64_t rounded_room(std::uint64_t bytes);

/// Rounded to eighths of a power of two, so that equal machines look equal.
[[nodiscard]] std::uint64_t rounded(std::uint64_t value);

class profile_watch {
public:
  /// A step's speed is worth a view when it is off by this factor for this
  /// time, or by a larger factor for a shorter time; likewise that of links.
  static constexpr std::uint32_t speed_off_permille = 1500;
  static constexpr nanoseconds speed_off_for = 30'000'000'000;
  static constexpr std::uint32_t straggler_off_permille = 3000;
  static constexpr nanoseconds straggler_off_for = 2'000'000'000;
  /// If a step took 0.25 s, 2 s would be nine steps: too many, counting the one
  /// during which the device became slow and those until the view changes.
  static constexpr nanoseconds straggler_few_for = 800'000'000;
  static constexpr std::uint32_t rate_off_permille = 2000;
  static constexpr std::uint32_t latency_off_permille = 4000;
  /// The speed of links varies with other work of the machine; plans need not.
  static constexpr nanoseconds links_off_for = 30'000'000'000;
  /// The room on a disk is worth a view when it has shrunk by an eighth or grown by
  /// a fourth; or at once, by a 64th at least, if the disk has refused what plans had
  /// for it.
  static constexpr std::uint64_t disk_shrunk_share = 8;
  static constexpr std::uint64_t disk_grown_share = 4;
  static constexpr nanoseconds rest = 10'000'000'000;
  /// Jobs remembered; the oldest is forgotten.
  static constexpr std::size_t jobs_max = 64;

  explicit profile_watch(const device_profile& measured_at_start);

  /// A job's first steps under another assignment are not observed.
  static constexpr std::size_t settling_steps = 3;

  /// A job has another assignment. @param sharers  members that work for it on this
  /// machine's cores: how much they hinder each other is an error of the plan, too,
  /// so that with another number what is usual is learnt anew
  void placed(job_id job, std::size_t sharers = 1);
  /// A step of a job took the device `took` where `expected` was expected with
  /// `believed` MFLOP/s. With a zero it is no observation.
  void step(nanoseconds now, job_id job, nanoseconds expected, nanoseconds took,
            std::uint64_t believed);
  /// No job trains here: what was measured at the start counts again. A job may
  /// have been slow by its own small matrices, or by work that has ended, too.
  void no_job();
  /// Measurement of links of one kind at this end; 0: unknown.
  void network(nanoseconds now, const std::string& name, nanoseconds latency,
               std::uint64_t bytes_per_s);

  /// Room on the disk for the files of served models, and whether the disk has just
  /// refused some.
  void disk(std::uint64_t bytes, bool refused);

  /// A profile that should replace the current one, if there is any.
  struct proposal {
    device_profile device;
    std::vector<network_profile> networks;
    std::string why; ///< as text for users
  };
  std::optional<proposal> take(nanoseconds now);

private:
  struct job_pace;
  job_pace& pace_of(job_id job);
  void set_speed(std::uint64_t mflops);

  struct job_pace {
    std::array<std::uint64_t, steady_figure::streak_needed>
      first{}; ///< permille
    std::size_t seen = 0;
    std::uint64_t usual = 0;  ///< of `first`: took / expected
    std::size_t settling = 0; ///< steps still to be ignored
    std::size_t sharers = 1;
  };
  struct link_kind {
    steady_figure latency;
    steady_figure rate;
    bool measured = false; ///< false: the value is the plan's assumption
  };

  device_profile device_;
  std::uint64_t mflops_at_start_;
  steady_figure speed_;
  steady_figure straggler_; ///< the same, with the other factor
  std::map<job_id, job_pace> jobs_;
  std::map<std::string, link_kind> links_;
  bool changed_ = false;
  bool links_changed_ = false;
  std::string why_;
  nanoseconds speed_rests_until_ = 0;
  nanoseconds links_rest_until_ = 0;
};

} // namespace shoal::core
