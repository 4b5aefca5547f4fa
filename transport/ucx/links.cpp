// transport/ucx/links.cpp -- how a connection begins and ends.
//
// Both nodes connect, and each then says hello. A node that gets a hello of a
// peer that it knows answers hello_ack, and repeats its own hello if the peer's
// hello shows that it was not received. A hello_ack makes the link up. The
// exchange also gives UCX the ids of both endpoints, without which it would not
// report the death of a peer.

#include "transport/assert.hpp"
#include "transport/introduced/host.hpp"
#include "transport/ucx/engine.hpp"

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace shoal::transport::ucx {

namespace {

std::string short_name(const peer_id& id) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out = "peer ";
  for (std::size_t i = 0; i != 4; ++i) {
    out += digits[id[i] >> 4];
    out += digits[id[i] & 15];
  }
  return out;
}

} // namespace

link* engine::find(const peer_id& peer) {
  auto found = links_.find(peer);
  return found == links_.end() ? nullptr : found->second.get();
}

void engine::start_connects() {
  for (auto& address : std::exchange(to_connect_, {}))
    connect(address);
}

void engine::connect(const std::string& address) {
  auto parsed = parse_address(address);
  if (closing_ || !parsed) {
    handler_.connect_failed(address,
                            closing_ ? errc::canceled : errc::unreachable);
    return;
  }
  if (parsed->token == token_ || parsed->peer == settings_.self) {
    handler_.connect_failed(address, errc::self);
    return;
  }
  if (parsed->over != settings_.over
      || (parsed->over == medium::ucx_memory && parsed->host != host_)) {
    handler_.connect_failed(address, errc::unreachable);
    return;
  }
  if (auto old = find(parsed->peer)) {
    if (old->now != link::state::closing && old->peer.token == parsed->token) {
      if (old->now == link::state::parked)
        start_hello(*old);
      return;
    }
    // A new process of that peer: the old process is gone, or soon will be.
    begin_close(*old, errc::peer_lost, false);
    auto waiting = std::exchange(old->next_address, address);
    if (!waiting.empty() && waiting != address)
      handler_.connect_failed(waiting, errc::canceled);
    return;
  }
  if (by_token_.contains(parsed->token)) { // two ids, one process: a lie
    handler_.connect_failed(address, errc::unreachable);
    return;
  }
  auto made = std::make_unique<link>();
  made->peer = std::move(*parsed);
  made->address = address;
  do
    made->connection = random_token();
  while (made->connection <= 1); // 0 and 1 are epoll cookies
  if (!open(*made)) {
    if (made->pidfd >= 0)
      ::close(made->pidfd);
    handler_.connect_failed(address, errc::unreachable);
    return;
  }
  auto& l = *made;
  by_token_[l.peer.token] = &l;
  links_[l.peer.peer] = std::move(made);
  start_hello(l);
  take_early(l);
}

/// Watches the peer's process, and makes the endpoint if that is our part.
bool engine::open(link& l) {
  if (l.peer.host == host_
      && l.peer.pid != static_cast<std::uint32_t>(getpid())) {
    l.pidfd = open_pidfd(l.peer.pid);
    if (l.pidfd < 0 && errno == ESRCH)
      return false;
    // Without a pidfd (old kernel, no descriptors), the keepalive must do.
    if (l.pidfd >= 0 && !worker_->watch(l.pidfd, l.connection))
      ::close(std::exchange(l.pidfd, -1));
  }
  return lets_other_begin(l) || make_endpoint(l);
}

bool engine::make_endpoint(link& l) {
  auto status = UCS_ERR_UNREACHABLE;
  if (settings_.over != medium::tcp)
    status =
      worker_->connect(l.peer.way, &engine::on_failure, this, l.endpoint);
  else if (const auto door = door_of(l.peer.way, settings_.trusted))
    status = worker_->dial(*door, &engine::on_failure, this, l.endpoint);
  if (status != UCS_OK) {
    say(short_name(l.peer.peer)
        + " cannot be reached: " + ucs_status_string(status));
    return false;
  }
  return true;
}

void engine::start_hello(link& l) {
  l.now = link::state::connecting;
  ++changing_;
  l.deadline = steady::now() + settings_.hello_timeout;
  send_hello(l);
}

/// Ends an attempt to connect. An endpoint that the other end never answered is
/// kept for the next attempt, except over TCP, where endpoints are not paired.
void engine::give_up(link& l, std::error_code why) {
  if (l.peer_connection != 0 || settings_.over == medium::tcp) {
    begin_close(l, why, l.peer_connection == 0);
    return;
  }
  l.now = link::state::parked;
  --changing_;
  handler_.connect_failed(l.address, why);
}

void engine::send_hello(link& l) {
  frame f;
  f.kind = frame_kind::hello;
  send_small(l, f, UCP_AM_SEND_FLAG_REPLY);
}

void engine::send_ack(link& l) {
  frame f;
  f.kind = frame_kind::hello_ack;
  send_small(l, f, UCP_AM_SEND_FLAG_REPLY);
}

/// For RDMA, where UCX's own keepalive never gives up (worker.cpp: UD_TIMEOUT).
void engine::send_pings(steady::time_point now) {
  if (settings_.over != medium::rdma || closing_ || now < ping_at_)
    return;
  ping_at_ = now + ping_interval;
  frame f;
  f.kind = frame_kind::ping;
  for (auto& [id, l] : links_)
    if (l->now == link::state::up && l->ping == nullptr)
      l->ping = send_small(*l, f);
}

void engine::on_hello(link& l, const frame& f,
                      const ucp_am_recv_param_t& param) {
  if (l.now == link::state::closing || l.now == link::state::parked)
    return keep_early(f, param);
  if (l.peer_connection != 0 && l.peer_connection != f.from_connection) {
    // The peer has ended the connection and begun another; so must we.
    if (l.now == link::state::connecting)
      l.next_address = l.address;
    begin_close(l, errc::peer_lost, true);
    return keep_early(f, param);
  }
  if (l.endpoint == nullptr
      && (param.recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0)
    adopt(l, param.reply_ep);
  if (l.endpoint == nullptr)
    return;
  l.peer_connection = f.from_connection;
  send_ack(l);
  if (f.to_connection != l.connection)
    send_hello(l);
}

void engine::go_up(link& l) {
  l.now = link::state::up;
  --changing_;
  queue_.enter(l.peer.peer, l.connection, l.in_flight);
  peer_info info;
  info.id = l.peer.peer;
  info.role = l.peer.role;
  info.instance = l.peer.instance;
  info.capabilities = l.peer.capabilities;
  info.remote_address = (l.peer.over == medium::ucx_memory ? "shm:"
                         : l.peer.over == medium::rdma     ? "rdma:"
                                                           : "tcp:")
                        + std::to_string(l.peer.pid);
  handler_.up(info);
}

void engine::on_failure(void* self, ucp_ep_h endpoint, ucs_status_t) noexcept {
  auto e = static_cast<engine*>(self);
  for (auto& [id, l] : e->links_) {
    if (l->endpoint != endpoint)
      continue;
    l->failed = true;
    e->begin_close(*l, errc::peer_lost, true);
    return;
  }
  e->guest_failed(endpoint);
}

/// Only marks the link, so it may be called from anywhere, also in UCX
/// callbacks.
void engine::begin_close(link& l, std::error_code why, bool silent) {
  if (l.now == link::state::closing)
    return;
  if (l.now != link::state::connecting)
    ++changing_;
  l.before = l.now;
  l.now = link::state::closing;
  l.why = why;
  l.silent = silent;
  queue_.leave(l.peer.peer);
}

bool engine::advance_links() {
  if (changing_ == 0)
    return false;
  auto now = steady::now();
  if (closing_ && worker_ && now >= abandon_at_) {
    say("closing without the answers of UCX");
    drop_worker();
    abandoned_ = true;
  }
  bool work = false;
  for (auto next = links_.begin(); next != links_.end();) {
    link& l = *next++->second; // advance_closing() may erase it
    if (l.now == link::state::connecting && now >= l.deadline) {
      say(short_name(l.peer.peer) + " did not answer");
      give_up(l, errc::no_answer);
    }
    if (l.now == link::state::closing)
      work = advance_closing(l, now) || work;
  }
  return work;
}

bool engine::advance_closing(link& l, steady::time_point now) {
  using step = link::closing_step;
  if (must_not_close(l)) {
    if (l.reach_by == steady::time_point{})
      l.reach_by = now + network_bye_timeout;
    if (l.peer_connection != 0 && !l.failed && !abandoned_ && now < l.reach_by)
      return false;
    bury(l);
    return true;
  }
  if (l.step == step::say_bye) {
    if (!l.silent && !l.failed && l.peer_connection != 0 && !abandoned_) {
      // The other end must be told: UCX does not tell a live peer. Queued data
      // is sent first, hence the wait.
      frame f;
      f.kind = frame_kind::bye;
      l.step = step::wait_bye;
      l.deadline =
        now
        + (settings_.over == medium::ucx_memory ? bye_timeout
                                                : network_bye_timeout);
      l.bye = send_small(l, f);
    } else {
      l.step = step::wait_close;
      start_close(l);
    }
    return true;
  }
  if (l.step == step::wait_bye) {
    if (l.bye != nullptr && !l.failed && now < l.deadline && !abandoned_)
      return false;
    l.step = step::wait_close;
    start_close(l);
    return true;
  }
  if (l.close_request != nullptr && !abandoned_) {
    if (ucp_request_check_status(l.close_request) == UCS_INPROGRESS)
      return false;
    ucp_request_free(std::exchange(l.close_request, nullptr));
  }
  if (l.requests != 0 && !abandoned_)
    return false;
  finish(l);
  return true;
}

/// UCX 1.13.1 aborts if an endpoint over ud is force-closed before it has
/// connected, for example to a peer that never answered: its first message then
/// still waits for the connection (ucp_request_send_state_ff). A link that was
/// up is connected, since the other end has received our hello.
bool engine::must_not_close(const link& l) const {
  return settings_.over == medium::rdma && !l.reached
         && l.before != link::state::up && l.endpoint != nullptr
         && l.step == link::closing_step::say_bye;
}

/// Ends a link whose endpoint cannot be closed. It holds no data of callers,
/// only hellos. It stays as long as the worker lives.
void engine::bury(link& l) {
  auto node = links_.find(l.peer.peer);
  auto kept = std::move(node->second);
  links_.erase(node);
  by_token_.erase(l.peer.token);
  --changing_;
  if (l.pidfd >= 0)
    ::close(std::exchange(l.pidfd, -1));
  if (l.before == link::state::connecting && l.next_address != l.address)
    handler_.connect_failed(l.address, l.why);
  if (!l.next_address.empty())
    to_connect_.push_back(std::move(l.next_address));
  if (!abandoned_)
    buried_.push_back(std::move(kept));
}

void engine::start_close(link& l) {
  if (!abandoned_ && l.endpoint != nullptr)
    l.close_request = worker_->force_close(std::exchange(l.endpoint, nullptr));
}

/// UCX has released everything: the rest ends, then the peer is down.
void engine::finish(link& l) {
  auto node = links_.extract(l.peer.peer);
  by_token_.erase(l.peer.token);
  --changing_;
  if (l.pidfd >= 0)
    ::close(l.pidfd);
  end_transfers(l);
  for (auto& c : queue_.withdraw(l.connection))
    fail(c, closing_ ? errc::canceled : errc::peer_lost);
  if (l.before == link::state::up)
    handler_.down(l.peer.peer, l.why);
  else if (l.before == link::state::connecting && l.next_address != l.address)
    handler_.connect_failed(l.address, l.why);
  if (!l.next_address.empty())
    to_connect_.push_back(std::move(l.next_address));
}

} // namespace shoal::transport::ucx
