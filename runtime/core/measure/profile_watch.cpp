// runtime/core/measure/profile_watch.cpp -- when a measured profile is worth a
// view.
#include "runtime/core/measure/profile_watch.hpp"

#include "runtime/core/measure/median.hpp"
#include "runtime/core/planning/layout/cost.hpp" // assumed values, muldiv
#include "runtime/core/text/amounts.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>

namespace shoal::core {

namespace {

/// "1.5 times": the ratio of the two values, as text.
std::string times(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t tenths =
    muldiv(std::max(a, b), 10, std::max<std::uint64_t>(std::min(a, b), 1));
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10)
         + (a < b ? " times slower" : " times faster");
}

std::string gflops_text(std::uint64_t mflops) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GFLOP/s", double(mflops) / 1000);
  return text;
}

} // namespace

std::uint64_t rounded(std::uint64_t value) {
  const int bits = std::bit_width(value);
  if (bits <= 4)
    return value;
  const std::uint64_t step = std::uint64_t{1} << (bits - 4);
  if (value > ~std::uint64_t{0} - step)
    return value / step * step;
  return (value + step / 2) / step * step;
}

std::uint64_t rounded_room(std::uint64_t bytes) {
  const int bits = std::bit_width(bytes);
  return bits <= 7 ? bytes : bytes >> (bits - 7) << (bits - 7);
}

void steady_figure::set(std::uint64_t value) noexcept {
  value_ = value;
  streak_ = 0;
}

std::optional<std::uint64_t>
steady_figure::observe(nanoseconds now, std::uint64_t measured) {
  const bool above = measured > muldiv(value_, off_permille_, 1000);
  const bool below = muldiv(measured, off_permille_, 1000) < value_;
  if (!above && !below) {
    streak_ = 0;
    return {};
  }
  if (streak_ == 0 || above != above_) {
    streak_ = 0;
    since_ = now;
    above_ = above;
  }
  seen_[streak_++ % streak_needed] = measured;
  const nanoseconds lasted = now - since_;
  const bool few = lasted >= nanoseconds(streak_ - 1) * far_apart;
  if (streak_ < streak_needed || lasted < (few ? few_time_ : streak_time_))
    return {};
  return rounded(median(seen_));
}

profile_watch::profile_watch(const device_profile& measured_at_start)
  : device_(measured_at_start), mflops_at_start_(measured_at_start.mflops),
    speed_(measured_at_start.mflops, speed_off_permille, speed_off_for),
    straggler_(measured_at_start.mflops, straggler_off_permille,
               straggler_off_for, straggler_few_for) {
}

profile_watch::job_pace& profile_watch::pace_of(job_id job) {
  if (!jobs_.contains(job) && jobs_.size() >= jobs_max)
    jobs_.erase(jobs_.begin());
  return jobs_[job];
}

void profile_watch::placed(job_id job, std::size_t sharers) {
  job_pace& pace = pace_of(job);
  if (pace.sharers != sharers)
    pace = {};
  pace.sharers = sharers;
  pace.settling = settling_steps;
}

void profile_watch::step(nanoseconds now, job_id job, nanoseconds expected,
                         nanoseconds took, std::uint64_t believed) {
  if (expected <= 0 || took <= 0 || believed == 0)
    return;
  job_pace& pace = pace_of(job);
  if (pace.settling > 0) {
    --pace.settling;
    return;
  }
  if (pace.seen < pace.first.size()) {
    pace.first[pace.seen++] =
      muldiv(std::uint64_t(took), 1000, std::uint64_t(expected));
    if (pace.seen == pace.first.size()) {
      std::ranges::nth_element(pace.first, pace.first.begin() + 1);
      pace.usual = std::max<std::uint64_t>(pace.first[1], 1);
    }
    return;
  }
  const std::uint64_t measured =
    muldiv(muldiv(believed, pace.usual, 1000), std::uint64_t(expected),
           std::uint64_t(took));
  const auto off = speed_.observe(now, std::max<std::uint64_t>(measured, 1));
  const auto much =
    straggler_.observe(now, std::max<std::uint64_t>(measured, 1));
  const auto value = much ? much : off;
  if (!value || now < speed_rests_until_)
    return;
  speed_rests_until_ = now + rest;
  why_ = "steps run " + times(*value, speed_.value()) + " than the "
         + gflops_text(speed_.value()) + " that plans counted on";
  set_speed(*value);
}

void profile_watch::set_speed(std::uint64_t mflops) {
  speed_.set(mflops);
  straggler_.set(mflops);
  device_.mflops = mflops;
  changed_ = true;
}

void profile_watch::no_job() {
  if (device_.mflops == mflops_at_start_)
    return;
  why_ = "no job trains here now: plans count on the "
         + gflops_text(mflops_at_start_)
         + " that were measured at the start again";
  set_speed(mflops_at_start_);
  jobs_.clear();
}

void profile_watch::network(nanoseconds now, const std::string& name,
                            nanoseconds latency, std::uint64_t bytes_per_s) {
  auto at = links_.find(name);
  if (at == links_.end()) {
    if (links_.size() >= networks_max)
      return;
    const bool host = name == "host";
    at = links_
           .emplace(
             name,
             link_kind{{std::uint64_t(host ? assumed_host_hop : assumed_hop),
                        latency_off_permille, links_off_for},
                       {host ? assumed_host_bytes_per_s : assumed_bytes_per_s,
                        rate_off_permille, links_off_for},
                       false})
           .first;
  }
  link_kind& kind = at->second;
  const auto look = [&](steady_figure& figure, std::uint64_t measured,
                        const char* verb, std::string (*text)(std::uint64_t)) {
    if (measured == 0)
      return;
    const auto value = figure.observe(now, measured);
    if (!value || now < links_rest_until_)
      return;
    why_ = (name == "host" ? "links within this machine" : "links by " + name)
           + verb + text(*value) + " (plans counted on " + text(figure.value())
           + ")";
    figure.set(*value);
    kind.measured = true;
    changed_ = links_changed_ = true;
  };
  look(kind.latency, std::uint64_t(latency), " take ", delay_text);
  look(kind.rate, bytes_per_s, " carry ", rate_text);
}

void profile_watch::disk(std::uint64_t bytes, bool refused) {
  const std::uint64_t was = device_.disk_bytes;
  std::uint64_t room = rounded_room(bytes);
  if (refused && was > 0) // files are not divided: a little is of no use
    room = std::min(room, rounded_room(was - 1));
  // 0 would say that it is not known.
  const std::uint64_t is =
    std::clamp<std::uint64_t>(room, 1, limits::bytes_max);
  const bool worth = is < was ? refused || was - is >= was / disk_shrunk_share
                              : is - was > was / disk_grown_share;
  if (!worth)
    return;
  why_ = "the disk has "
         + (is > 1 ? "room for " + size_text(is) + " of" : "no room for")
         + " files of served models (plans counted on "
         + (was > 1 ? size_text(was) : "none") + ")";
  device_.disk_bytes = is;
  changed_ = true;
}

std::optional<profile_watch::proposal> profile_watch::take(nanoseconds now) {
  if (!changed_)
    return {};
  changed_ = false;
  if (links_changed_)
    links_rest_until_ = now + rest;
  links_changed_ = false;
  proposal out{device_, {}, std::move(why_)};
  for (const auto& [name, kind] : links_)
    if (kind.measured)
      out.networks.push_back(
        {name, nanoseconds(kind.latency.value()), kind.rate.value()});
  return out;
}

} // namespace shoal::core
