// runtime/core/cluster/contact.cpp -- connections, what peers say on them, and
// the choice between two shoals that meet.
#include "runtime/core/cluster/membership_impl.hpp"

#include <algorithm>
#include <tuple>

namespace shoal::core::cluster {

using impl = membership::impl;

namespace {

/// Which of two shoals goes on: the one with running jobs, with more to
/// remember (jobs, then invites), with more members to disturb, of the lower
/// id. So a peer that was invited joins its inviter's, and not the reverse.
bool better(const hello& a, const hello& b) {
  auto key = [](const hello& h) {
    return std::tuple(h.running == 0, h.jobs.empty(), !h.admissions, ~h.members,
                      h.shoal);
  };
  return key(a) < key(b);
}

} // namespace

hello impl::make_hello() const {
  hello h;
  h.cluster = config_.cluster;
  h.shoal = view_.shoal;
  h.number = view_.number;
  h.members = std::uint32_t(view_.members.size());
  for (const bool runs : {true, false})
    for (const job_entry& j : view_.jobs)
      if ((j.state == job_state::running) == runs)
        h.jobs.push_back(j.id);
  h.running = std::uint32_t(running());
  h.admissions = !view_.invites.empty() || !view_.revoked.empty();
  h.joinable = phase_ == phase::member && current_entry() && i_vote()
               && !config_.embedded && !leaving_ && !leaving_now_;
  h.name = config_.self.name;
  h.version = config_.version;
  h.addresses = config_.self.addresses;
  if (config_.digest_key != nullptr) {
    h.key = config_.digest_key(keys_.current);
    for (const cluster_key& k : keys_.replaced)
      h.replaced.push_back(config_.digest_key(k));
  }
  h.superseded = superseded();
  return h;
}

/// Members see our shoal and epoch in heartbeats; strangers only here.
void impl::say_hellos() {
  std::vector<peer_id> to;
  for (auto& [id, l] : links_) {
    bool stranger = l.shoal != view_.shoal || find_member(view_, id) == nullptr;
    if (now_ < l.hello_at || (!stranger && l.hello_at != 0))
      continue;
    l.hello_at = now_ + hello_interval;
    to.push_back(id);
  }
  if (!to.empty())
    out_->push_back(send{std::move(to), make_hello()});
}

/// The connected peer of another shoal that could best admit us: of a shoal
/// whose key replaced ours, else with the same key (K-4).
const impl::link* impl::best_contact(peer_id* who) const {
  const link* best = nullptr;
  key_age best_age = key_age::same;
  std::size_t equals = 0;
  for (const auto& [id, l] : links_) {
    if (!l.said || !l.said->joinable || l.said->cluster != config_.cluster
        || now_ - l.said_at > hello_life
        || (seated_ && l.said->shoal == view_.shoal))
      continue;
    const key_age age = age_of_key(*l.said);
    if (age != key_age::same && age != key_age::newer)
      continue;
    // One shoal is one choice, however many members the hello of each names.
    bool equal = best != nullptr && l.said->shoal == best->said->shoal;
    bool wins = best == nullptr
                || (!equal
                    && (age != best_age ? age == key_age::newer
                                        : better(*l.said, *best->said)));
    if (wins || equal)
      equals = wins ? 1 : equals + 1;
    // Of several members of the best shoal another one at every attempt.
    if (wins || (equal && attempts_ % equals == 0)) {
      best = &l;
      best_age = age;
      *who = id;
    }
  }
  return best;
}

void impl::choose_merge() {
  peer_id who{};
  const link* l = nullptr;
  bool may = phase_ == phase::member && i_vote() && current_entry() && !leaving_
             && !leaving_now_ && (!config_.embedded || !config_.seeds.empty());
  if (may) {
    l = superseding_contact();
    if (l == nullptr)
      l = best_contact(&who);
  }
  if (l == nullptr || !yields_to(*l)) {
    wishes_.merge.reset();
    return;
  }
  nanoseconds since = now_;
  if (wishes_.merge && wishes_.merge->into == l->said->shoal)
    since = wishes_.merge->since;
  wishes_.merge =
    merge_wish{l->said->shoal, l->said->addresses, since, may_give_up_jobs(*l)};
}

/// Whether our shoal is the one of the two that dissolves.
bool impl::yields_to(const link& l) {
  // Else those without room would found shoals and dissolve them, for ever.
  if (l.said->members + view_.members.size() > members_max)
    return false;
  if (running() > 0 && !may_give_up_jobs(l)) {
    say_apart(l);
    return false;
  }
  if (supersedes_ours(l) != nullptr)
    return true;
  if (age_of_key(*l.said) == key_age::newer)
    return true;
  if (is_superseded_by_ours(l) && !runs_what_we_lack(l))
    return false; // it yields, as soon as it can
  return config_.embedded || better(*l.said, make_hello());
}

void impl::say_apart(const link& l) {
  const bool newer = age_of_key(*l.said) == key_age::newer;
  const bool forced = supersedes_ours(l) != nullptr;
  if (warned_apart_ || is_superseded_by_ours(l)
      || (l.said->running == 0 && !newer && !forced))
    return;
  warned_apart_ = true;
  say("another shoal of cluster '" + config_.cluster + "' "
      + (newer    ? "has replaced the cluster key"
         : forced ? "was made in place of this one by `recover --force`, and "
                    "this one runs a job that it does not, or has gone on"
                  : "runs jobs too")
      + " (" + l.said->name + "); the two stay apart until "
      + (newer || forced ? "this" : "one")
      + " runs none: `shoal cancel` ends one");
}

bool impl::connected_to(const std::string& address) const {
  auto has = [&](const std::vector<std::string>& all) {
    return std::ranges::find(all, address) != all.end();
  };
  if (has(config_.self.addresses))
    return true;
  // Names and translated addresses: who answered there.
  if (auto r = reached_.find(address); r != reached_.end())
    if (links_.contains(r->second))
      return true;
  for (const auto& [id, l] : links_) {
    const member* m = find_member(view_, id);
    if ((m != nullptr && has(m->addresses))
        || (l.said && has(l.said->addresses)))
      return true;
  }
  return false;
}

/// Whether it was not dialled yet, or not for the first time to the end.
bool impl::dial_is_open(const std::string& address) const {
  if (connected_to(address) || barred_.contains(address))
    return false;
  auto at = dials_.find(address);
  return at == dials_.end()
         || (at->second.failures == 0 && now_ < at->second.pending_until);
}

void impl::dial_now(const std::string& address, bool once) {
  auto at = dials_.find(address);
  auto waits = [&](const dial& d) {
    return now_ < d.pending_until || (!once && now_ < d.next_at);
  };
  if (address.empty() || barred_.contains(address)
      || (at != dials_.end() && waits(at->second)) || connected_to(address))
    return;
  if (at == dials_.end()) {
    if (dials_.size() >= dials_max)
      std::erase_if(
        dials_, [&](const auto& d) { return d.second.pending_until <= now_; });
    if (dials_.size() >= dials_max)
      return;
    at = dials_.emplace(address, dial{}).first;
    at->second.once = once;
  }
  at->second.pending_until = now_ + dial_timeout;
  out_->push_back(connect{address});
}

/// Addresses that we do not stop trying: of members without a connection,
/// and, while we are on our own, of those that the user gave (seeds.cpp: in
/// company).
std::vector<std::string> impl::wanted_addresses() const {
  std::vector<std::string> out;
  for (const member& m : view_.members)
    if (!links_.contains(m.id.peer) && m.id.peer != config_.self.id.peer)
      out.insert(out.end(), m.addresses.begin(), m.addresses.end());
  if (!in_company())
    for (const std::string& a : config_.seeds)
      out.push_back(a);
  return out;
}

void impl::dial_due() {
  for (const std::string& a : wanted_addresses())
    dial_now(a, false);
}

/// Whoever was revoked keeps its address in old views and a key that those who
/// were away still have. So its word ends nobody: it only bars the address, and
/// counts if nobody else is there for long.
void impl::on(const turned_away& e) {
  if (barred_.size() >= barred_max || !barred_.insert(e.address).second)
    return;
  const bool alone = needs_admission() && links_.empty();
  say(e.address + " says that this peer was revoked: it is not dialled again"
      + (alone ? ", and this peer ends unless another admits it" : ""));
  if (alone && accuser_.empty()) {
    accuser_ = e.address;
    shut_out_at_ = now_ + config_.shut_out_patience;
  }
}

/// A member in contact with its quorum, even if that is itself, asks nobody.
bool impl::needs_admission() const {
  return phase_ != phase::member || !current_entry();
}

void impl::end_if_shut_out() {
  if (!links_.empty() || !needs_admission()) {
    accuser_.clear();
    shut_out_at_ = time_max;
  } else if (now_ >= shut_out_at_) {
    out_->push_back(shut_out{accuser_});
    phase_ = phase::gone;
  }
}

/// A connected peer has shown which view it is in: whoever is behind gets the
/// newer one.
void impl::heard(const peer_id& from, const shoal_id& shoal, epoch number) {
  link& l = links_.at(from);
  l.shoal = shoal;
  l.number = number;
  if (shoal == view_.shoal) {
    if (number < view_.number)
      send_to(from, decided{view_});
    else if (number > view_.number)
      send_to(from, view_request{view_.shoal, view_.number});
  } else {
    tell_former(from, shoal, number);
  }
}

/// Tells a late member that its shoal has dissolved, or has sent us away, if we
/// know.
bool impl::tell_former(const peer_id& to, const shoal_id& shoal, epoch number) {
  for (const view& v : former_)
    if (v.shoal == shoal && v.number > number) {
      send_to(to, decided{v});
      return true;
    }
  return false;
}

void impl::on(const peer_id& from, const hello& m) {
  link& l = links_.at(from);
  if (!l.said) // it may have come up before we could tell it anything
    l.hello_at = std::min(l.hello_at, now_);
  l.said = m;
  l.said_at = now_;
  for (const std::string& a : m.addresses)
    dials_.erase(a); // it has answered
  heard(from, m.shoal, m.number);
}

void impl::on(const peer_id& from, const heartbeat& m) {
  send_to(from, heartbeat_ack{view_.shoal, view_.number, m.sequence});
  heard(from, m.shoal, m.number);
}

void impl::on(const peer_id& from, const heartbeat_ack& m) {
  heard(from, m.shoal, m.number);
  if (m.shoal == view_.shoal)
    detector_.on_ack(from, m.sequence, now_, *out_);
}

void impl::on(const peer_id& from, const gossip& m) {
  heard(from, m.shoal, m.number);
  if (m.shoal == view_.shoal && m.number == view_.number
      && find_member(view_, from) != nullptr)
    detector_.on_alerts(from, m.alerts);
}

/// Whether `from` may know that view and it can be one. That a quorum agreed
/// is not proved: peers crash, they do not lie. Who waits for others of its
/// shoal believes anybody that it has ended: they may all be gone.
bool impl::believable(const peer_id& from, const view& v) const {
  bool knows =
    find_member(v, from) != nullptr
    || (find_member(view_, from) != nullptr
        && (v.shoal == view_.shoal || v.dissolved_into))
    || (v.shoal == view_.shoal && v.dissolved_into && phase_ == phase::waiting);
  return knows && v.cluster == config_.cluster
         && std::ranges::any_of(v.members, votes);
}

void impl::on(const peer_id& from, const decided& m) {
  if (!believable(from, m.value))
    return;
  link& l = links_.at(from);
  if (m.value.shoal == l.shoal) // it may be gone before it beats again
    l.number = std::max(l.number, m.value.number);
  if (m.value.shoal != view_.shoal && m.value.dissolved_into)
    keep_former(m.value);
  else
    adopt(m.value);
}

void impl::on(const peer_id& from, const view_request& m) {
  if (m.shoal == view_.shoal && m.number < view_.number)
    send_to(from, decided{view_});
  else
    tell_former(from, m.shoal, m.number);
}

/// Hands a message of the agreement on if it is about our view's successor;
/// else one of the two peers is behind.
template <class Message>
void impl::vote(const peer_id& from, const Message& m) {
  if (m.shoal != view_.shoal) {
    tell_former(from, m.shoal, m.base);
  } else if (m.base < view_.number) {
    send_to(from, decided{view_});
  } else if (m.base > view_.number) {
    send_to(from, view_request{view_.shoal, view_.number});
  } else if (!may_be_a_copy()) {
    agreement_.on(from, m, now_, *out_);
  }
}

void impl::on(const peer_id& from, const prepare& m) {
  vote(from, m);
}
void impl::on(const peer_id& from, const promise& m) {
  vote(from, m);
}
void impl::on(const peer_id& from, const accept& m) {
  vote(from, m);
}
void impl::on(const peer_id& from, const accepted& m) {
  vote(from, m);
}
void impl::on(const peer_id& from, const refused& m) {
  vote(from, m);
}

} // namespace shoal::core::cluster
