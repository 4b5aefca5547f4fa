// runtime/control/client_requests.cpp -- carries out a client's requests.
#include "runtime/control/client_requests.hpp"

#include "runtime/core/errc.hpp"
#include "runtime/core/text/amounts.hpp"
#include "runtime/jobs/job_journal.hpp"

#include <algorithm>
#include <limits>

namespace shoal::runtime {

static constexpr char taken_back_text[] = "taken back before it was agreed";

/// Events in one reply: with their text they fit a control message.
static constexpr std::size_t events_bytes_max = std::size_t{512} << 10;

static void refuse(client_reply& out, std::string why,
                   reply_code code = reply_code::refused) {
  out.code = code;
  out.text = std::move(why);
}

/// Nothing, if it was done.
static void refuse(client_reply& out, not_done n) {
  if (n.code != reply_code::ok)
    refuse(out, std::move(n.why), n.code);
}

client_requests::client_requests(control_handler& node,
                                 std::function<void()> wake)
  : node_(node), wake_(std::move(wake)) {
}

void client_requests::ask(client_key who, client_request request,
                          const answer& reply, bool handed_on) {
  client_reply out;
  out.number = request.number;
  waiter w{who, request.number, 0, {}, clock::now(), reply, {}};
  w.handed_on = handed_on;
  core::peer_id other{};
  if (is_for_another(request, other, out)) {
    if (out.code != reply_code::ok)
      return reply(std::move(out));
    return wait_for(
      std::move(w), other_peer_wait,
      "that peer has not answered in time; see `shoal status`",
      [&](auto token) { node_.hand_on(token, other, std::move(request)); });
  }
  std::visit(
    [&](auto& body) {
      if constexpr (requires { on(who, body, out); }) {
        on(who, body, out);
        reply(std::move(out));
      } else {
        on(std::move(w), body);
      }
    },
    request.body);
}

bool client_requests::serves_follower(clock::time_point now) const {
  std::lock_guard lock(mutex_);
  return now - last_asked_ <= last_fetch_pause_max
         && std::ranges::any_of(followers_, [this](const auto& f) {
              return node_.journal().ended(f.second);
            });
}

void client_requests::on(waiter w, ask_events& r) {
  if (!w.handed_on) { // a peer looks for a few steps
    std::lock_guard lock(mutex_);
    followers_[w.who] = r.job;
    last_asked_ = clock::now();
  }
  client_reply out;
  out.number = w.number;
  if (read_events(r, out) || !may_wait(w.who, out))
    return w.reply(std::move(out));
  w.events = r;
  w.until += events_wait;
  waiters_.push_back(std::move(w));
}

void client_requests::on(waiter w, submit_job& r) {
  w.submits = true;
  agree(std::move(w),
        [&](auto token) { node_.submit(token, std::move(r.job)); });
}

void client_requests::on(waiter w, const recover_force&) {
  agree(std::move(w), [&](auto token) { node_.recover(token); });
}

void client_requests::on(waiter w, const make_invite& r) {
  agree(std::move(w), [&](auto token) { node_.invite(token, r); });
}

void client_requests::on(waiter w, const use_invite& r) {
  agree(std::move(w), [&](auto token) { node_.redeem(token, r); });
}

void client_requests::on(waiter w, const revoke& r) {
  agree(std::move(w), [&](auto token) { node_.revoke_peer(token, r); });
}

void client_requests::on(waiter w, const remove_job& r) {
  agree(std::move(w), [&](auto token) { node_.remove_job(token, r.job); });
}

bool client_requests::is_for_another(client_request& r, core::peer_id& to,
                                     client_reply& out) {
  if (r.peer.empty())
    return false;
  if (!is_handed_on(r)) {
    refuse(
      out,
      "a node hands on only what is asked of status, logs, steps and leave: "
      "for the rest connect to the peer itself, by --peer and "
      "--cluster-key FILE");
    return true;
  }
  meant_peer meant = node_.find(r.peer);
  if (meant.self)
    return false;
  to = meant.peer;
  if (!meant.why.empty())
    refuse(out, std::move(meant.why), reply_code::not_found);
  return true;
}

void client_requests::wait_for(
  waiter w, std::chrono::milliseconds patience, std::string late,
  const std::function<void(std::uint64_t token)>& start) {
  client_reply out;
  out.number = w.number;
  if (!may_wait(w.who, out))
    return w.reply(std::move(out));
  w.token = ++last_token_;
  w.until += patience;
  w.late = std::move(late);
  waiters_.push_back(std::move(w));
  start(last_token_);
}

void client_requests::agree(
  waiter w, const std::function<void(std::uint64_t token)>& start) {
  wait_for(
    std::move(w), agreement_wait,
    "no view was agreed in time; it may still be: look at `shoal status`",
    start);
}

void client_requests::forget(client_key who) {
  {
    std::lock_guard lock(mutex_);
    followers_.erase(who);
  }
  std::erase_if(uploads_,
                [who](const auto& u) { return u.second.owner == who; });
  announced_.erase(who);
  leave_blobs(who);
  waiters_.remove_if([this, who](const waiter& w) {
    if (w.who == who && w.token != 0)
      (void)node_.given_up(w.token);
    return w.who == who;
  });
}

void client_requests::has_job(client_key who) {
  committed_[who] = {{}, {}, true};
}

void client_requests::leave_blobs(client_key who) {
  const auto at = committed_.find(who);
  if (at == committed_.end())
    return;
  const committed_blobs its = std::move(at->second);
  committed_.erase(at);
  if (its.has_job)
    return;
  // A job that was just being submitted may run: its blobs stay claimed for a while.
  if (std::ranges::none_of(
        waiters_, [who](const waiter& w) { return w.who == who && w.submits; }))
    node_.blobs().drop_claims(who);
  std::vector<core::blob_digest> left;
  for (const core::blob_digest& d : its.added) {
    const auto other = std::ranges::find_if(
      committed_, [&](const auto& c) { return c.second.all.contains(d); });
    if (other != committed_.end())
      other->second.added.insert(d);
    else
      left.push_back(d);
  }
  if (!left.empty())
    node_.left_behind(std::move(left));
}

void client_requests::answered(std::uint64_t token, outcome o) {
  {
    std::lock_guard lock(mutex_);
    outcomes_.emplace_back(token, std::move(o));
  }
  wake_();
}

void client_requests::work(clock::time_point now) {
  std::deque<std::pair<std::uint64_t, outcome>> outcomes;
  {
    std::lock_guard lock(mutex_);
    outcomes.swap(outcomes_);
  }
  for (auto w = waiters_.begin(); w != waiters_.end();) {
    client_reply out;
    out.number = w->number;
    bool ready = false;
    if (w->token == 0) {
      ready = read_events(w->events, out);
    } else {
      for (auto& [token, o] : outcomes)
        if (token == w->token) {
          ready = true;
          out.value = o.job;
          out.text = std::move(o.text);
          out.bytes = std::move(o.bytes);
          out.events = std::move(o.events);
          out.ended = o.ended;
          if (!o.why.empty())
            refuse(out, o.why);
          else if (w->submits) {
            node_.blobs().submitted(w->who, o.job);
            has_job(w->who);
          }
        }
      if (!ready && now >= w->until) {
        const auto why = node_.given_up(w->token);
        refuse(out, why && !why->empty() ? *why : w->late);
      }
    }
    if (!ready && now < w->until) {
      ++w;
      continue;
    }
    answer reply = std::move(w->reply);
    w = waiters_.erase(w);
    reply(std::move(out));
  }
}

void client_requests::on(client_key who, const take_back& r, client_reply&) {
  work(clock::now()); // what is agreed already is told
  const auto w = std::ranges::find_if(waiters_, [&](const waiter& one) {
    return one.who == who && one.number == r.request && one.token != 0;
  });
  if (w == waiters_.end())
    return;
  const auto why = node_.given_up(w->token);
  if (!why)
    return; // its outcome is on the way
  client_reply out;
  out.number = w->number;
  refuse(out, why->empty() ? taken_back_text : *why);
  const answer reply = std::move(w->reply);
  waiters_.erase(w);
  reply(std::move(out));
}

std::optional<client_requests::clock::time_point> client_requests::due() const {
  std::optional<clock::time_point> at;
  for (const waiter& w : waiters_)
    if (!at || w.until < *at)
      at = w.until;
  return at;
}

void client_requests::on(client_key, const ask_status&, client_reply& out) {
  out.text = node_.status();
}

std::uint64_t client_requests::reserved_for_others(client_key who) const {
  std::uint64_t out = 0;
  for (const auto& [number, u] : uploads_)
    if (u.owner != who)
      out += u.total_bytes - u.bytes;
  for (const auto& [client, bytes] : announced_)
    if (client != who)
      out += bytes;
  return out;
}

std::uint64_t client_requests::room_left(std::uint64_t reserved) const {
  const store::space disk = node_.blobs().room();
  if (disk.all_bytes == 0)
    return std::numeric_limits<std::uint64_t>::max();
  return disk.to_fill() - std::min(disk.to_fill(), reserved);
}

bool client_requests::has_room(std::uint64_t bytes, std::uint64_t reserved,
                               client_reply& out) const {
  if (bytes <= room_left(reserved))
    return true;
  const store::space disk = node_.blobs().room();
  refuse(out,
         "the disk of this node has too little room: "
           + core::size_text(disk.free_bytes) + " are free, "
           + (reserved > 0 ? core::size_text(reserved)
                               + " of them are reserved for other uploads "
                                 "under way, "
                           : std::string())
           + "the upload needs " + core::size_text(bytes) + ", and "
           + core::size_text(disk.reserve_bytes) + " stay free: make room, "
           + (reserved > 0 ? "wait until the others have ended, " : "")
           + "or upload to another node",
         reply_code::again_later);
  return false;
}

void client_requests::on(client_key who, const put_begin& r,
                         client_reply& out) {
  std::size_t own = 0;
  std::uint64_t announced = r.total_bytes;
  for (const auto& [number, u] : uploads_)
    if (u.owner == who) {
      ++own;
      announced += u.total_bytes;
    }
  if (own >= control_uploads_max)
    return refuse(out, "too many uploads at a time");
  if (r.total_bytes > store::blob_bytes_max)
    return refuse(out, "larger than a blob may be");
  if (announced > control_upload_bytes_max)
    return refuse(out, "unfinished uploads of one client may have "
                         + core::size_text(control_upload_bytes_max)
                         + " together (control_upload_bytes_max), not "
                         + core::size_text(announced));
  // What it will upload next may be here already, and then needs no room: it counts
  // only against others, where these have reserved some, and only at first.
  const std::uint64_t reserved = reserved_for_others(who);
  const auto own_room = announced_.find(who);
  const bool is_first = own_room == announced_.end();
  const std::uint64_t needed =
    is_first && reserved > 0 ? r.total_bytes + r.more_bytes : r.total_bytes;
  if (!has_room(needed, reserved, out))
    return;
  std::uint64_t kept = is_first ? room_left(reserved) : own_room->second;
  kept -= std::min(kept, r.total_bytes);
  if (r.more_bytes > 0)
    announced_[who] = std::min(kept, r.more_bytes);
  else
    announced_.erase(who);
  out.value = ++last_token_;
  uploads_[out.value] = upload{who, node_.blobs().write(), 0, r.total_bytes};
}

client_requests::upload*
client_requests::find_upload(client_key who, std::uint64_t number,
                             client_reply& out) {
  auto u = uploads_.find(number);
  if (u != uploads_.end() && u->second.owner == who)
    return &u->second;
  refuse(out, "no such upload", reply_code::not_found);
  return nullptr;
}

void client_requests::on(client_key who, const put_chunk& r,
                         client_reply& out) {
  upload* u = find_upload(who, r.upload, out);
  if (!u)
    return;
  if (r.offset != u->bytes || r.bytes.size() > u->total_bytes - u->bytes) {
    uploads_.erase(r.upload);
    return refuse(out, "a piece of the upload is out of order");
  }
  // Checked again: others fill the disk, too, and may announce any size.
  if (!has_room(r.bytes.size(), 0, out)) {
    out.code = reply_code::refused;
    uploads_.erase(r.upload);
    return;
  }
  if (auto error = u->writer->append(r.bytes)) {
    uploads_.erase(r.upload);
    return refuse(out, "cannot store the upload: " + error.message());
  }
  u->bytes += r.bytes.size();
  node_.blobs().renew_claims(who);
}

void client_requests::on(client_key who, const put_commit& r,
                         client_reply& out) {
  upload* u = find_upload(who, r.upload, out);
  if (!u)
    return;
  const bool was_here = node_.blobs().contains(r.digest);
  if (u->bytes != u->total_bytes) {
    refuse(out, "the upload is not complete");
  } else if (auto error = u->writer->commit(out.digest, r.digest)) {
    refuse(out, "cannot store the upload: " + error.message());
  } else {
    node_.blobs().claim(who, out.digest);
    if (committed_blobs& its = committed_[who]; !its.has_job) {
      its.all.insert(out.digest);
      if (!was_here)
        its.added.insert(out.digest);
    }
  }
  uploads_.erase(r.upload);
}

void client_requests::on(client_key, const get_blob& r, client_reply& out) {
  {
    std::lock_guard lock(mutex_);
    last_asked_ = clock::now();
  }
  out.digest = r.digest;
  if (node_.blobs().contains(r.digest)) {
    std::error_code error;
    auto blob = node_.blobs().read(r.digest, error);
    if (!blob)
      return refuse(out, "cannot read the blob: " + error.message());
    auto bytes = blob->bytes();
    out.value = bytes.size();
    if (r.offset > bytes.size())
      return refuse(out, "beyond the end of the blob");
    bytes = bytes.subspan(r.offset);
    bytes = bytes.first(std::min<std::size_t>(bytes.size(), r.bytes));
    out.bytes.assign(bytes.begin(), bytes.end());
    std::lock_guard lock(mutex_);
    fetches_.erase(r.digest);
    return;
  }
  refuse(out, "being fetched from peers", reply_code::again_later);
  {
    std::lock_guard lock(mutex_);
    auto known = fetches_.find(r.digest);
    if (known != fetches_.end()) {
      if (known->second) {
        refuse(out, "no peer gives this file now: " + known->second->message(),
               reply_code::not_found);
        fetches_.erase(known);
      }
      return;
    }
    if (fetches_.size() >= control_fetches_max)
      std::erase_if(fetches_, [](const auto& f) { return f.second; });
    if (fetches_.size() >= control_fetches_max)
      return refuse(out, "too many fetches at a time");
    fetches_.emplace(r.digest, std::nullopt);
  }
  node_.fetch(r.digest, [this, digest = r.digest](std::error_code error) {
    std::lock_guard lock(mutex_);
    if (error)
      fetches_[digest] = error;
    else
      fetches_.erase(digest);
  });
}

void client_requests::on(client_key, const stop_job& r, client_reply& out) {
  refuse(out, node_.stop_job(r.job, r.drain));
}

void client_requests::on(client_key, const wait_no_longer& r,
                         client_reply& out) {
  refuse(out, node_.wait_no_longer(r.job));
}

void client_requests::on(client_key who, const offer_checkpoint& r,
                         client_reply& out) {
  if (!node_.blobs().contains(r.manifest))
    return refuse(out, "the checkpoint's manifest is not in this node's store",
                  reply_code::not_found);
  refuse(out, node_.offer(r));
  if (out.code == reply_code::ok)
    has_job(who);
}

void client_requests::on(client_key, const ask_job& r, client_reply& out) {
  out.value = node_.journal().next(r.job);
  out.text = node_.describe(r.job);
  if (out.text.empty())
    refuse(out,
           "no such job in this shoal (it keeps the newest few that have "
           "ended; see `shoal jobs`)",
           reply_code::not_found);
}

void client_requests::on(client_key, const leave_shoal& r, client_reply&) {
  node_.leave(r.drain);
}

void client_requests::on(client_key, const ask_lines& r, client_reply& out) {
  out.text = node_.lines(r, out.value);
}

/// Whether one more request of this client may wait.
bool client_requests::may_wait(client_key who, client_reply& out) const {
  const auto kept = std::ranges::count(waiters_, who, &waiter::who);
  if (std::size_t(kept) < control_waiting_max)
    return true;
  refuse(out, "this client has " + std::to_string(kept)
                + " requests waiting already (control_waiting_max): read the "
                  "answers first");
  return false;
}

bool client_requests::read_events(const ask_events& r, client_reply& out) {
  std::uint64_t next = r.from;
  // Checked first: if the job ends meanwhile, its last event may not have been
  // read.
  bool ended = node_.journal().ended(r.job);
  out.events = node_.journal().read(r.job, r.from, next);
  std::size_t bytes = 0;
  std::size_t fits = 0;
  while (fits < out.events.size() && fits < reply_events_max
         && bytes < events_bytes_max)
    bytes += out.events[fits++].text.size() + 128;
  next -= out.events.size() - fits;
  ended = ended && fits == out.events.size();
  out.events.resize(fits);
  out.value = next;
  out.ended = ended;
  return fits > 0 || ended;
}

} // namespace shoal::runtime
