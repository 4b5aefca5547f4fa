// runtime/core/training/job/state/checkpoint_rounds.cpp -- a round from its begin to
// the second store.
#include "runtime/core/training/job/state/checkpoint_rounds.hpp"

#include "runtime/core/training/shards.hpp"

#include <algorithm>
#include <utility>

namespace shoal::core {

void checkpoint_rounds::halt() {
  reported_ = kept_ = 0;
  left_out_.clear();
  publisher_ = {};
  refusing_.clear();
  left_to_others_ = 0;
  tried_after_ = refused_first;
  stores_.clear();
}

bool checkpoint_rounds::resume(const resume_decision& to,
                               std::uint64_t origin_step) {
  unable_ = to.unable;
  const bool saved = to.checkpoint.manifest != blob_digest{};
  pace_.resume(saved ? to.checkpoint.step : origin_step, to.checkpoint_lag,
               to.from == resume_decision::source::checkpoint);
  return saved && to.checkpoint.step == to.version.step && !to.checkpointed
         && every_ > 0;
}

void checkpoint_rounds::keep_newest(const duty& d, const resume_decision& to,
                                    const known_checkpoints& known,
                                    job_actions& out) const {
  if (!to.checkpoint_holders.empty())
    keep(share(d, to.unable), to.checkpoint, to.checkpoint_holders.front(),
         known, out);
}

// ---- Begun -----------------------------------------------------------------

void checkpoint_rounds::begin(const duty& d, std::uint64_t step, bool last,
                              job_actions& out) {
  pace_.begun(step);
  publisher_ = publisher_of(*d.place, unable_);
  left_out_[step] = unable_;
  if (left_out_.size() > begun_max)
    left_out_.erase(left_out_.begin());
  out.emplace_back(job_action::run_checkpoint{d.header.digest, step, last,
                                              unable_, publisher_});
}

void checkpoint_rounds::note(const duty& d,
                             const std::map<peer_id, vote>& votes,
                             std::uint64_t step, bool finite,
                             job_actions& out) {
  bool writing = false;
  unable_.clear();
  for (const auto& [peer, v] : votes) {
    writing = writing || v.writing;
    if (v.unable)
      unable_.push_back(peer);
  }
  // What others have seen when they were publishers may be long ago.
  const auto next = votes.find(publisher_of(*d.place, unable_));
  pace_.heard(next == votes.end() ? 0 : next->second.checkpoint_lag, writing);
  if (slow_reported_ || !finite || !pace_.slow(step))
    return;
  slow_reported_ = true;
  out.emplace_back(job_action::checkpoints_slow{step, pace_.agreed_lag()});
}

bool checkpoint_rounds::publishing(const duty& d, std::uint64_t step) const {
  return publisher_ == d.self && pace_.under_way(step);
}

bool checkpoint_rounds::hands_over(const duty& d, std::uint64_t step) const {
  return !told(step) && !std::ranges::binary_search(unable_, d.self)
         && others_can_save(*d.place, d.self, unable_);
}

// ---- Published -------------------------------------------------------------

bool checkpoint_rounds::take(const duty& d, const job_event::checkpointed& e,
                             std::uint64_t current,
                             const std::vector<peer_id>& members,
                             known_checkpoints& known, nanoseconds now,
                             job_actions& out) {
  // A slow checkpoint may end after a later one.
  const bool late = newer_told(d.header, e.step);
  if (late && (!e.known || last_.checkpoint.manifest != blob_digest{}))
    return false;
  checkpoint_published m{
    d.header, {e.step, {}, d.header.since}, e.bytes, e.why, e.trying, e.refused,
    {}};
  if (const auto at = left_out_.find(e.step); at != left_out_.end())
    m.unable = at->second;
  if (e.known) {
    if (!late)
      pace_.published(e.step, current);
    m.checkpoint.manifest = e.manifest;
    known.hold(m.checkpoint, d.self, e.lacks);
    // It has not gathered what others refused to keep before.
    keep(share(d, m.unable), m.checkpoint, d.self, known, out);
    out.emplace_back(
      job_action::checkpoint_known{m.checkpoint, d.self, e.bytes, m.unable});
  } else {
    pace_.ended(e.step);
    say_failed(d, d.self, m, out);
  }
  send_to(members, d.self, m, out);
  if (!late) {
    last_ = std::move(m);
    published_by_ = d.self;
  }
  if (e.known || !e.trying)
    result_known(e.step, now);
  return true;
}

void checkpoint_rounds::say_failed(const duty& d, const peer_id& from,
                                   const checkpoint_published& m,
                                   job_actions& out) const {
  const peer_id& at = m.refused == peer_id{} ? from : m.refused;
  const bool others = m.trying && d.mine(m.header) && !d.place->replicas.empty()
                      && others_can_save(*d.place, at, m.unable);
  out.emplace_back(job_action::checkpoint_failed{m.checkpoint.step, at, m.why,
                                                 m.trying, others});
}

bool checkpoint_rounds::take(const duty& d, const peer_id& from,
                             const checkpoint_published& m,
                             known_checkpoints& known, nanoseconds now,
                             job_actions& out) {
  const bool exists = m.checkpoint.manifest != blob_digest{};
  if (exists)
    known.hear(m.checkpoint, {from});
  const bool repeated = m == last_;
  if (exists && m.checkpoint != last_.checkpoint)
    out.emplace_back(
      job_action::checkpoint_known{m.checkpoint, from, m.bytes, m.unable});
  if (!exists && !repeated)
    say_failed(d, from, m, out);
  if (m.header.since >= last_.header.since
      && !newer_told(m.header, m.checkpoint.step)) {
    last_ = m;
    published_by_ = from;
  }
  bool ends = false;
  if (const part_set parts = exists ? share(d, m.unable) : part_set{};
      !parts.empty()) {
    if (d.mine(m.header) && known.newest() == m.checkpoint
        && known.has(m.checkpoint, parts))
      ends = say_kept(d, m.checkpoint, known, out);
    else if (!repeated)
      keep(parts, m.checkpoint, from, known, out);
  } else if (exists && d.mine(m.header) && refusing_.contains(d.self)
             && (repeated || !try_again(d, m, from, known, out))) {
    // The peer that is to keep it instead may not have heard.
    send_to(d.sealers, d.self, have_checkpoint{d.header, m.checkpoint, true},
            out);
  }
  if (!d.mine(m.header) || m.trying)
    return ends;
  result_known(m.checkpoint.step, now);
  return true;
}

/// The disk that refused may have room by now. Until it has a checkpoint, the others
/// go on without it.
bool checkpoint_rounds::try_again(const duty& d, const checkpoint_published& m,
                                  const peer_id& from,
                                  const known_checkpoints& known,
                                  job_actions& out) {
  if (++left_to_others_ < tried_after_)
    return false;
  left_to_others_ = 0;
  tried_after_ = std::min(2 * tried_after_, refused_most);
  refusing_.erase(d.self);
  keep(share(d, m.unable), m.checkpoint, from, known, out);
  return true;
}

/// The result of a checkpoint is known. The end of the run now waits for a
/// second store.
void checkpoint_rounds::result_known(std::uint64_t step, nanoseconds now) {
  if (told(step))
    return;
  reported_ = step + 1;
  waits_since_ = now;
}

/// Whether a later checkpoint was reported under this assignment.
bool checkpoint_rounds::newer_told(const job_header& header,
                                   std::uint64_t step) const {
  return last_.header == header && last_.checkpoint.step > step;
}

// ---- Kept ------------------------------------------------------------------

/// The parts that our store should have; none: we are no keeper.
part_set
checkpoint_rounds::share(const duty& d, std::vector<peer_id> unable) const {
  if (!d.place)
    return {};
  unable.insert(unable.end(), refusing_.begin(), refusing_.end());
  return parts_kept_by(d.self, *d.place, parts_, unable);
}

/// Has our store get the parts, unless it has them, or a newer checkpoint.
void checkpoint_rounds::keep(const part_set& parts, const checkpoint_ref& c,
                             const peer_id& at, const known_checkpoints& known,
                             job_actions& out) const {
  if (!parts.empty() && known.newest() <= c && !known.has(c, parts))
    out.emplace_back(job_action::keep_checkpoint{c, parts, at});
}

/// @pre d.place
std::vector<peer_id> checkpoint_rounds::keepers_of_last(const duty& d) const {
  std::vector<peer_id> out = last_.header == d.header ? last_.unable : unable_;
  out.insert(out.end(), refusing_.begin(), refusing_.end());
  return checkpoint_keepers(*d.place, out);
}

bool checkpoint_rounds::kept(const duty& d, std::uint64_t step,
                             nanoseconds now) const {
  const bool failed =
    last_.header == d.header && last_.checkpoint.manifest == blob_digest{};
  const peer_id& maker = last_.header == d.header ? published_by_ : publisher_;
  const std::vector<peer_id> keepers = keepers_of_last(d);
  const bool nobody =
    std::ranges::all_of(keepers, [&](const peer_id& p) { return p == maker; });
  const bool all_refuse = std::ranges::all_of(keepers, [&](const peer_id& p) {
    return p == maker || refusing_.contains(p);
  });
  return failed || nobody || kept_ > step
         || now - waits_since_
              >= (all_refuse ? refused_wait_max : keep_wait_max);
}

bool checkpoint_rounds::take(const duty& d, const peer_id& from,
                             const have_checkpoint& m, known_checkpoints& known,
                             job_actions& out) {
  // A publisher that shares the parts says if it has got more of them.
  if ((from == published_by_ && d.place->part_keepers.empty())
      || !std::ranges::binary_search(d.sealers, from))
    return false;
  if (!m.refused) {
    refusing_.erase(from);
    known.hear(m.checkpoint, {from});
    stored(d, m.checkpoint, from, part_set(m.lacks));
    return true;
  }
  if (!refusing_.insert(from).second)
    return false;
  if (d.mine(last_.header) && last_.checkpoint.manifest != blob_digest{})
    keep(share(d, last_.unable), last_.checkpoint, published_by_, known, out);
  return true;
}

/// A store has it: looks whether each part is in two. The publisher's has what
/// it has gathered, or more as it said.
void checkpoint_rounds::stored(const duty& d, const checkpoint_ref& c,
                               const peer_id& at, const part_set& lacks) {
  if (kept_ > c.step)
    return;
  auto& stores = stores_[c];
  stores[at] = lacks;
  std::vector<part_set> all;
  for (const auto& [peer, what] : stores)
    all.push_back(what);
  const bool told = last_.checkpoint == c && d.mine(last_.header);
  const peer_id& publisher = told ? published_by_ : publisher_;
  if (!stores.contains(publisher))
    all.emplace_back(part_range{0, parts_})
      .remove(parts_gathered_by(publisher, *d.place, parts_,
                                told ? last_.unable : unable_));
  const std::size_t wanted =
    d.place->part_keepers.empty()
      ? 2
      : std::min<std::size_t>(2, d.place->keepers.size());
  if (everywhere(parts_, wanted, all)) {
    kept_ = c.step + 1;
    std::erase_if(stores_,
                  [&](const auto& s) { return s.first.step <= c.step; });
  } else if (stores_.size() > begun_max) {
    stores_.erase(stores_.begin());
  }
}

/// To the peers that wait for it at the end.
bool checkpoint_rounds::say_kept(const duty& d, const checkpoint_ref& newest,
                                 const known_checkpoints& known,
                                 job_actions& out) {
  if (published_by_ == d.self && d.place->part_keepers.empty())
    return false;
  refusing_.erase(d.self);
  tried_after_ = refused_first;
  const part_set& lacks = known.held().at(newest);
  send_to(d.participants, d.self,
          have_checkpoint{d.header, newest, false, lacks.runs()}, out);
  stored(d, newest, d.self, lacks);
  return true;
}

bool checkpoint_rounds::take(const duty& d, const job_event::keep_refused& e,
                             job_actions& out) {
  if (!d.place || e.checkpoint != last_.checkpoint || !d.mine(last_.header))
    return false;
  refusing_.insert(d.self);
  send_to(d.sealers, d.self, have_checkpoint{d.header, e.checkpoint, true},
          out);
  return true;
}

bool checkpoint_rounds::held(const duty& d, const checkpoint_ref& c,
                             const known_checkpoints& known, job_actions& out) {
  if (known.newest() != c || !d.place || !d.mine(last_.header)
      || c != last_.checkpoint || !known.has(c, share(d, last_.unable)))
    return false;
  return say_kept(d, c, known, out);
}

std::vector<peer_id> checkpoint_rounds::refusing(const duty& d) const {
  const auto& unable = d.participates() ? unable_ : last_.unable;
  std::set<peer_id> all(unable.begin(), unable.end());
  all.insert(refusing_.begin(), refusing_.end());
  return {all.begin(), all.end()};
}

void checkpoint_rounds::repeat(const duty& d,
                               const std::vector<peer_id>& members,
                               job_actions& out) const {
  if (last_.header == d.header && published_by_ == d.self)
    send_to(members, d.self, last_, out);
}

} // namespace shoal::core
