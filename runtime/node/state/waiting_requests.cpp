// runtime/node/state/waiting_requests.cpp -- requests by their tokens.
#include "runtime/node/state/waiting_requests.hpp"

#include "runtime/core/view.hpp"
#include "runtime/core/view_changes.hpp"

#include <algorithm>
#include <utility>

namespace shoal::runtime {

/// Adds to a list of what was given up.
static void keep(auto& list, const auto& one) {
  list.push_back(one);
  if (list.size() > waiting_requests::unwanted_max)
    list.pop_front();
}

bool waiting_requests::want(std::uint64_t token, wanted_view w) {
  std::lock_guard lock(mutex_);
  if (shoal_)
    wanted_[token] = {std::move(w), {}};
  return shoal_.has_value();
}

void waiting_requests::want_other_shoal(std::uint64_t token) {
  std::lock_guard lock(mutex_);
  wanted_[token] = {{}, shoal_.value_or(core::shoal_id{})};
}

waiting_requests::submitted
waiting_requests::submit(std::uint64_t token, core::job_entry& job,
                         clock::time_point now) {
  std::lock_guard lock(mutex_);
  if (shoal_) {
    wanted_[token] = {{job.id, {}}, {}};
    return submitted::propose;
  }
  std::erase_if(early_, [&](const early_job& e) { return now >= e.until; });
  if (early_.size() >= early_jobs_max)
    return submitted::too_many;
  early_.push_back({token, std::move(job), now + agreement_wait});
  return submitted::kept;
}

bool waiting_requests::is_reached(const kept_view& w, const core::view& v,
                                  outcome& o) {
  if (w.reached)
    return w.reached(v, o);
  return w.tag != 0 ? core::find_job(v, w.tag) != nullptr
                    : v.shoal != w.not_shoal;
}

waiting_requests::adopted_view waiting_requests::adopted(const core::view& v) {
  adopted_view out;
  std::lock_guard lock(mutex_);
  shoal_ = v.shoal;
  out.jobs.swap(early_);
  std::erase_if(unwanted_, [&](core::job_id job) {
    if (core::find_job(v, job) == nullptr)
      return false;
    out.unwanted.push_back(job);
    return true;
  });
  std::erase_if(unused_, [&](const core::cluster_key& key) {
    if (std::ranges::find(v.invites, key, &core::invitation::key)
        == v.invites.end())
      return false;
    out.unused.push_back(key);
    return true;
  });
  for (auto w = wanted_.begin(); w != wanted_.end();) {
    outcome o;
    o.job = w->second.tag;
    const bool reached = is_reached(w->second, v, o);
    if (reached)
      out.answers.push_back({w->first, std::move(o)});
    w = reached ? wanted_.erase(w) : std::next(w);
  }
  return out;
}

std::vector<std::uint64_t> waiting_requests::rejected(core::job_id tag) {
  std::vector<std::uint64_t> tokens;
  std::lock_guard lock(mutex_);
  std::erase(unwanted_, tag);
  for (auto w = wanted_.begin(); w != wanted_.end();)
    if (w->second.tag == tag) {
      tokens.push_back(w->first);
      w = wanted_.erase(w);
    } else {
      ++w;
    }
  return tokens;
}

waiting_requests::given_up waiting_requests::give_up(std::uint64_t token) {
  std::lock_guard lock(mutex_);
  asked_.erase(token);
  if (std::erase_if(early_, [&](const auto& e) { return e.token == token; }))
    return {waited_for::job, 0, {}};
  const auto found = wanted_.find(token);
  if (found == wanted_.end())
    return {};
  const kept_view& w = found->second;
  given_up out{waited_for::view, 0, w.invite};
  if (w.invite) {
    out.what = waited_for::invite;
    keep(unused_, *w.invite);
  } else if (w.tag != 0 && !w.reached) {
    out.what = waited_for::job;
    out.job = w.tag;
    keep(unwanted_, w.tag);
  }
  wanted_.erase(found);
  return out;
}

void waiting_requests::asked(std::uint64_t token, const core::peer_id& peer,
                             clock::time_point now, clock::time_point until) {
  std::lock_guard lock(mutex_);
  std::erase_if(asked_, [&](const auto& a) { return now >= a.second.until; });
  asked_[token] = {peer, until};
}

bool waiting_requests::replied(std::uint64_t token, const core::peer_id& from) {
  std::lock_guard lock(mutex_);
  const auto asked = asked_.find(token);
  if (asked == asked_.end() || asked->second.peer != from)
    return false; // no request is waiting for it
  asked_.erase(asked);
  return true;
}

void waiting_requests::forget(std::uint64_t token) {
  std::lock_guard lock(mutex_);
  asked_.erase(token);
}

} // namespace shoal::runtime
