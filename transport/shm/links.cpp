// transport/shm/links.cpp -- how a connection begins and ends.
//
// Both nodes connect: each makes a channel for the other, enters it in its own
// directory and rings the bell. Each looks in the other's directory for its
// channel, maps it, and says so in its own channel (channel_head::hears). A
// node that has mapped the other's channel and is heard is up. Data in memory
// is believed only if it carries both tokens, which strangers do not know.

#include "transport/assert.hpp"
#include "transport/introduced/host.hpp"
#include "transport/shm/engine.hpp"
#include "transport/shm/foreign.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

namespace shoal::transport::shm {

namespace {

std::string short_name(const peer_id& id) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out = "peer ";
  for (std::size_t i = 0; i != 4; ++i) {
    out += digits[static_cast<unsigned>(id[i]) >> 4];
    out += digits[static_cast<unsigned>(id[i]) & 15];
  }
  return out;
}

/// The descriptors in an address: of the directory and of the bell.
std::optional<std::array<std::uint32_t, 2>>
descriptors(const introduced::node_address& a) {
  std::array<std::uint32_t, 2> out;
  if (a.way.size() != sizeof out)
    return {};
  std::memcpy(out.data(), a.way.data(), sizeof out);
  return out;
}

/// Same machine, user and pid namespace.
bool within_reach(const introduced::host_id& a, const introduced::host_id& b) {
  return a.boot_id == b.boot_id && a.uid == b.uid
         && a.pid_namespace == b.pid_namespace;
}

constexpr std::size_t channel_bytes = ring_offset + ring_bytes;

/// The directory of a node, if it is the one that the address names.
std::optional<view> open_directory(const introduced::node_address& a) {
  const auto way = descriptors(a);
  if (!way)
    return {};
  auto seen = view::open(a.pid, (*way)[0], sizeof(directory));
  if (!seen || !directory_in(seen->bytes(), a.token))
    return {};
  return seen;
}

bool is_there(const introduced::node_address& a) {
  return open_directory(a).has_value();
}

} // namespace

link* engine::find(const peer_id& peer) {
  const auto found = links_.find(peer);
  return found == links_.end() ? nullptr : found->second.get();
}

void engine::start_connects() {
  for (auto& address : std::exchange(to_connect_, {}))
    connect(address);
}

void engine::connect(const std::string& address) {
  auto parsed = introduced::parse_address(address);
  if (closing_ || !parsed) {
    handler_.connect_failed(address,
                            closing_ ? errc::canceled : errc::unreachable);
    return;
  }
  if (parsed->token == token_ || parsed->peer == settings_.self) {
    handler_.connect_failed(address, errc::self);
    return;
  }
  if (parsed->over != introduced::medium::shared_memory
      || !within_reach(parsed->host, host_)) {
    handler_.connect_failed(address, errc::unreachable);
    return;
  }
  if (link* old = find(parsed->peer)) {
    if (!old->over && old->peer.token == parsed->token
        && !(old->now == link::state::up
             && old->peer_head->closed.load(std::memory_order_acquire) != 0))
      return;
    // That link ended, or the peer has a new process. A late address of a
    // process that is gone ends nothing.
    if (old->peer.token != parsed->token && !is_there(*parsed)) {
      handler_.connect_failed(address, errc::unreachable);
      return;
    }
    end(*old, errc::peer_lost);
    auto waiting = std::exchange(old->next_address, address);
    if (!waiting.empty() && waiting != address)
      handler_.connect_failed(waiting, errc::canceled);
    return;
  }
  auto made = std::make_unique<link>();
  made->peer = std::move(*parsed);
  made->address = address;
  bool opened = false;
  try {
    opened = open(*made);
  } catch (const std::exception& e) {
    say(short_name(made->peer.peer) + " cannot be reached: " + e.what());
  }
  if (!opened) {
    withdraw(*made);
    handler_.connect_failed(address, errc::unreachable);
    return;
  }
  made->deadline = steady::now() + settings_.hello_timeout;
  ++connecting_;
  link& l = *made;
  links_[l.peer.peer] = std::move(made);
  advance_connecting(l);
  wake(l);
}

/// Watches the peer, maps its directory and makes a channel for it.
bool engine::open(link& l) {
  do
    l.connection = introduced::random_token();
  while (l.connection <= 2); // epoll cookies
  const auto way = descriptors(l.peer);
  if (!way)
    return false;
  if (l.peer.pid != static_cast<std::uint32_t>(getpid())) {
    // Without a pidfd the death of the peer would not be noticed.
    l.pidfd = introduced::open_pidfd(l.peer.pid);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = l.connection;
    if (l.pidfd < 0 || epoll_ctl(epoll_, EPOLL_CTL_ADD, l.pidfd, &event) != 0)
      return false;
  }
  auto seen = open_directory(l.peer);
  if (!seen)
    return false;
  l.peer_directory = std::move(*seen);
  map_arena(l);
  l.bell = open_bell(l.peer.pid, (*way)[1]);
  epoll_event gone{}; // EPOLLERR: nobody reads it any more
  gone.data.u64 = l.connection;
  if (l.bell < 0 || epoll_ctl(epoll_, EPOLL_CTL_ADD, l.bell, &gone) != 0)
    return false;
  for (std::size_t i = 0; i != peers_max && l.entry == link::no_entry; ++i)
    if (directory_->entries[i].to == 0)
      l.entry = i;
  if (l.entry == link::no_entry) {
    say("has " + std::to_string(peers_max) + " peers on this machine already");
    return false;
  }
  l.channel = segment(channel_bytes);
  l.head = new (l.channel.bytes().data()) channel_head;
  l.head->from = token_;
  l.head->to = l.peer.token;
  l.head->connection = l.connection;
  l.head->reads = l.peer_arena.bytes().empty() ? 0 : 1;
  l.exposed = exposure(*l.head);
  l.writer = ring_writer(l.channel.bytes().subspan(ring_offset, ring_bytes));
  auto& entry = directory_->entries[l.entry];
  entry.connection = l.connection;
  entry.descriptor = static_cast<std::uint64_t>(l.channel.descriptor());
  entry.to.store(l.peer.token, std::memory_order_release);
  return true;
}

/// Maps the newest channel that the peer has made for us.
/// @returns whether there was one that we had not mapped yet
bool engine::find_channel(link& l) {
  const auto found = channel_for(*directory_of(l), token_, l.peer_connection);
  if (!found)
    return false;
  // Even if the rest fails, it is not tried again.
  l.peer_connection = found->connection;
  auto seen = view::open(l.peer.pid, found->descriptor, channel_bytes);
  if (!seen)
    return false;
  const auto* head =
    channel_in(seen->bytes(), l.peer.token, token_, found->connection);
  if (head == nullptr)
    return false;
  l.peer_channel = std::move(*seen);
  l.peer_head = head;
  l.reader =
    ring_reader(l.peer_channel.bytes().subspan(ring_offset, ring_bytes));
  l.head->hears.store(found->connection, std::memory_order_release);
  return true;
}

bool engine::advance_connecting(link& l) {
  bool work = false;
  if (l.peer_head == nullptr
      || l.peer_head->closed.load(std::memory_order_acquire) != 0)
    work = find_channel(l);
  if (l.peer_head != nullptr && hears(*l.peer_head, l.connection)) {
    go_up(l);
    work = true;
  } else if (steady::now() >= l.deadline) {
    say(short_name(l.peer.peer) + " did not answer");
    end(l, errc::no_answer);
    return true;
  }
  if (work)
    wake(l);
  return work;
}

void engine::go_up(link& l) {
  l.now = link::state::up;
  l.exposes = l.peer_head->reads.load(std::memory_order_relaxed) != 0;
  --connecting_;
  queue_.enter(l.peer.peer, l.connection, l.in_flight);
  peer_info info;
  info.id = l.peer.peer;
  info.role = l.peer.role;
  info.instance = l.peer.instance;
  info.capabilities = l.peer.capabilities;
  info.remote_address = "shm:" + std::to_string(l.peer.pid);
  handler_.up(info);
}

/// Only marks the link, so it may be called from anywhere.
void engine::end(link& l, std::error_code why) {
  if (l.over)
    return;
  l.over = true;
  l.why = why;
  ++ending_;
  if (l.now == link::state::up)
    queue_.leave(l.peer.peer);
}

void engine::finish_links() {
  for (auto next = links_.begin(); next != links_.end();) {
    link& l = *next++->second; // finish() erases it
    if (l.over)
      finish(l);
  }
}

void engine::finish(link& l) {
  const auto node = links_.extract(l.peer.peer);
  --ending_;
  const bool was_up = l.now == link::state::up;
  if (!was_up)
    --connecting_;
  else if (l.pidfd >= 0 || l.peer.pid == static_cast<std::uint32_t>(getpid()))
    send(l); // the peer still reads what fits
  withdraw(l);
  const std::error_code lost = closing_ ? errc::canceled : errc::peer_lost;
  end_transfers(l, lost);
  for (auto& c : queue_.withdraw(l.connection))
    fail(c, lost);
  if (was_up)
    handler_.down(l.peer.peer, l.why);
  else if (l.next_address != l.address)
    handler_.connect_failed(l.address, l.why);
  if (!l.next_address.empty())
    to_connect_.push_back(std::move(l.next_address));
}

/// A forked child may hold copies: closing alone would leave them in the epoll.
void engine::unwatch(link& l) {
  if (l.pidfd >= 0) {
    epoll_ctl(epoll_, EPOLL_CTL_DEL, l.pidfd, nullptr);
    ::close(std::exchange(l.pidfd, -1));
  }
  if (l.bell >= 0)
    epoll_ctl(epoll_, EPOLL_CTL_DEL, l.bell, nullptr);
}

/// Takes the channel back and releases everything of the peer.
void engine::withdraw(link& l) {
  if (l.entry != link::no_entry && l.head != nullptr)
    directory_->entries[l.entry].to.store(0, std::memory_order_release);
  if (l.head != nullptr) {
    l.exposed.withdraw_all();
    l.head->closed.store(1, std::memory_order_release);
    wake(l);
  }
  unwatch(l);
  if (l.bell >= 0)
    ::close(std::exchange(l.bell, -1));
  l.head = nullptr;
  l.peer_head = nullptr;
  l.channel = {};
  l.peer_channel = {};
  l.peer_arena = {};
  l.peer_directory = {};
}

void engine::end_transfers(link& l, std::error_code why) {
  for (auto& [id, op] : std::exchange(l.sends, {})) {
    --l.in_flight->sends;
    op.done.run(op.done.context, why);
  }
  if (std::exchange(l.current.wanted, false))
    complete_receive(l, l.current.op, why);
  for (auto& in : std::exchange(l.reads, {}))
    complete_receive(l, in.op, why);
  for (auto& [tag, op] : std::exchange(l.posted, {}))
    complete_receive(l, op, why);
}

} // namespace shoal::transport::shm
