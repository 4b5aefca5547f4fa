// actors/serving/serve_stalls.cpp -- shows core::stall_watch what moves, and carries
// out its decisions.
#include "actors/serving/serve_stalls.hpp"

#include "actors/job/parts/queue_sight.hpp"
#include "runtime/context.hpp"
#include "runtime/core/planning/plan.hpp"
#include "runtime/core/view.hpp"
#include "runtime/links/links.hpp"
#include "runtime/store/store.hpp"
#include "runtime/work/device_queue.hpp"

#include <algorithm>
#include <utility>

namespace shoal::actors {

core::nanoseconds
longest_piece(const core::view& view, const core::job_entry& job,
              const core::island_place& place,
              const runtime::serve_config& config) {
  if (place.replicas.empty())
    return 0;
  std::uint32_t blocks = job.blocks;
  for (const core::stage_place& s : place.replicas.front().stages)
    blocks = std::min(blocks, s.last_block - s.first_block);
  core::pass_costs computed = runtime::pass_costs_of(
    config, 1, std::max<std::uint64_t>(1, config.pass_tokens), config.context);
  core::pass_costs sent;
  sent.boundary_bytes = std::exchange(computed.boundary_bytes, 0);
  const auto apart = [&](const core::pass_costs& c) {
    return core::times_of_pass(view, job, place, c).apart;
  };
  core::pass_costs head; // a pass may have logits of many rows
  head.head_flops = computed.head_flops * core::serving::pass_scored_max;
  head.head_traffic_bytes = computed.head_traffic_bytes;
  return std::max(
    {apart(computed) / std::max(1u, blocks), apart(head), apart(sent)});
}

serve_stalls::serve_stalls(runtime::context& node, core::island_id id,
                           std::function<void(const std::string&)> tell)
  : node_(node), id_(id), tell_(std::move(tell)), watch_(node.self()) {
}

void serve_stalls::predict(std::shared_ptr<const core::view> view,
                           const core::island_place& place,
                           const runtime::serve_config& config) {
  view_ = std::move(view);
  std::erase_if(damaged_, [&](const auto& d) {
    return core::find_member(*view_, d.first) == nullptr;
  });
  largest_unit_ = 0;
  for (const std::uint32_t u :
       {std::uint32_t{0}, std::uint32_t{1},
        std::uint32_t(config.model.num_hidden_layers) + 1})
    largest_unit_ = std::max(largest_unit_, runtime::weight_bytes(config, u));
  if (const core::job_entry* job = core::find_job(*view_, id_.job))
    predicted_ = longest_piece(*view_, *job, place, config);
}

std::string serve_stalls::name_of(const core::peer_id& peer) const {
  const core::member* m = view_ ? core::find_member(*view_, peer) : nullptr;
  return m == nullptr || m->name.empty() ? core::short_name(peer) : m->name;
}

/// A thread that moves hidden states may hang, as the device may; if it does so
/// still in another place, it cannot be stopped.
core::nanoseconds serve_stalls::links_silent(const core::job_header& under) {
  const core::nanoseconds silent = node_.links().silent_for().count();
  if (silent < links_silent_min) {
    silent_under_.reset();
    silent_since_before_ = false;
    return 0;
  }
  silent_since_before_ = silent_under_ && *silent_under_ != under;
  if (!silent_under_)
    silent_under_ = under;
  return silent;
}

/// Passes go before usual work of other jobs, so a piece of these only counts if it
/// is what the passes wait for, and then that job watches it.
core::nanoseconds serve_stalls::device_busy(core::nanoseconds now) const {
  const auto front = node_.device().front();
  const bool others = front.job != id_.job && front.job != 0;
  if (others && now - front.since < stall_min / 2)
    return 0;
  return busy_for(node_.device(), id_.job, now);
}

core::stall_watch::sight
serve_stalls::look(const pipeline_sight& p, core::nanoseconds now) {
  if (stalled_at_ != 0 && now - stalled_at_ >= calm_after) {
    stalled_at_ = 0;
    ++period_;
  }
  core::stall_watch::sight s;
  s.header = p.header;
  // The one that speaks for the pipeline waits for the last stage.
  for (std::size_t i = 1; i <= p.stages.size(); ++i)
    if (const auto& peer = p.stages[i % p.stages.size()];
        std::ranges::find(s.sealers, peer) == s.sealers.end())
      s.sealers.push_back(peer);
  s.active = p.works || p.loads || p.ends;
  s.halting = p.ends;
  s.loading = p.loads;
  s.period = period_;
  s.chain = true;
  s.mark = p.moved;
  if (p.loads)
    s.mark += node_.blob_bytes_moved() + node_.blobs().activity().bytes;
  const core::nanoseconds silent = links_silent(p.header);
  s.halting = s.halting || silent_since_before_;
  if (s.active)
    s.computing = std::max(device_busy(now), silent);
  s.predicted =
    std::max(predicted_, stall_min / core::stall_watch::budget_factor);
  s.disk_predicted = core::stall_watch::piece_time(
    largest_unit_, node_.blobs().activity().bytes_per_s);
  if (p.waits_for)
    s.sending_to.push_back(*p.waits_for);
  s.where = p.where;
  const auto add = [&](const std::string& more) {
    s.where += (s.where.empty() ? "" : ", ") + more;
  };
  if (silent > 0)
    add("its links stand still");
  else if (p.waits_for)
    add("waits for " + name_of(*p.waits_for));
  return s;
}

void serve_stalls::tick(const pipeline_sight& here, core::nanoseconds now) {
  carry_out(watch_.tick(look(here, now), now), now);
}

void serve_stalls::received(const core::peer_id& from,
                            const core::stall_report& r,
                            const pipeline_sight& here, core::nanoseconds now) {
  carry_out(watch_.received(from, r, look(here, now), now), now);
}

void serve_stalls::carry_out(const core::stall_watch::actions& actions,
                             core::nanoseconds now) {
  using watch = core::stall_watch;
  const bool quorum = node_.in_quorum();
  for (const watch::action& action : actions) {
    if (const auto* a = std::get_if<watch::send>(&action)) {
      node_.send(a->to, core::job_message(a->report));
    } else if (const auto* a = std::get_if<watch::stalled>(&action)) {
      tell_("the pipeline stands still at " + name_of(node_.self()) + ": "
            + a->why);
    } else if (const auto* a = std::get_if<watch::expel>(&action)) {
      stalled_at_ = now;
      if (!view_ || view_->members.size() == 1) { // nobody could go on
        tell_(name_of(a->peer) + " is slow: " + a->why);
        continue;
      }
      tell_(core::to_text(*a, name_of(a->peer), quorum));
      if (quorum)
        node_.propose_expulsion(a->peer, view_->number);
    } else if (const auto* a = std::get_if<watch::retry>(&action)) {
      stalled_at_ = now;
      tell_((quorum ? "the pipeline begins anew: "
                    : "the pipeline stands still; without a quorum it cannot "
                      "begin anew: ")
            + a->why);
      node_.propose_retry(id_, a->since);
    } else if (const auto* a = std::get_if<watch::hung>(&action)) {
      tell_(core::to_text(*a, name_of(node_.self()), quorum));
      node_.hung(a->why);
    }
  }
}

void serve_stalls::damaged(const core::peer_id& by, std::uint64_t pass,
                           core::epoch since) {
  const std::size_t times = ++damaged_[by];
  const bool goes =
    times >= damaged_max && view_->members.size() > 1 && node_.in_quorum();
  tell_(name_of(by) + " has sent hidden states of pass " + std::to_string(pass)
        + " that are not those it computed, " + std::to_string(times)
        + (goes ? " times so far: it is expelled"
                : " times so far: the pipeline begins anew"));
  if (!goes)
    return node_.propose_retry(id_, since);
  node_.propose_expulsion(by, view_->number);
}

} // namespace shoal::actors
