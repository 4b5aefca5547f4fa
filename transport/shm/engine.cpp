// transport/shm/engine.cpp -- the loop, the commands, and sleeping.

#include "transport/shm/engine.hpp"

#include "transport/assert.hpp"
#include "transport/introduced/host.hpp"
#include "transport/shm/foreign.hpp"

#include <sched.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <utility>

namespace shoal::transport::shm {

namespace {

// Cookies of epoll events; any other is the connection number of a link.
constexpr std::uint64_t wake_cookie = 1;
constexpr std::uint64_t bell_cookie = 2;
/// How often a thread that never sleeps polls its pidfds.
constexpr std::chrono::milliseconds poll_interval{10};

/// After work the thread checks for more this many times without a system call,
/// for some microseconds, the time of an answer. Then it yields, in case
/// another thread wants the core.
constexpr int pause_turns = 64;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

bool watch(int epoll, int fd, std::uint64_t cookie) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = cookie;
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

} // namespace

engine::engine(const config& settings, fabric_handler& handler,
               introduced::commands& queue, int wake_fd,
               std::shared_ptr<const arena> memory)
  : settings_(settings), handler_(handler), queue_(queue), wake_fd_(wake_fd),
    host_(introduced::this_host()), token_(introduced::random_token()),
    memory_(std::move(memory)), directory_memory_(sizeof(directory)),
    directory_(new (directory_memory_.bytes().data()) directory) {
  directory_->token = token_;
  if (memory_) {
    directory_->arena_bytes = memory_->size();
    directory_->arena_descriptor =
      static_cast<std::uint64_t>(memory_->descriptor());
  }
  introduced::node_address self;
  self.over = introduced::medium::shared_memory;
  self.host = host_;
  self.pid = static_cast<std::uint32_t>(getpid());
  self.peer = settings.self;
  self.role = settings.role;
  self.instance = settings.instance;
  self.capabilities = settings.capabilities;
  self.token = token_;
  const std::array<std::uint32_t, 2> way{
    static_cast<std::uint32_t>(directory_memory_.descriptor()),
    static_cast<std::uint32_t>(bell_.descriptor())};
  const auto bytes = std::as_bytes(std::span(way));
  self.way.assign(bytes.begin(), bytes.end());
  address_ = format_address(self);
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0 || !watch(epoll_, wake_fd_, wake_cookie)
      || !watch(epoll_, bell_.readable(), bell_cookie)) {
    const int error = errno;
    if (epoll_ >= 0)
      ::close(epoll_);
    throw std::system_error(error, std::generic_category(), "epoll");
  }
}

engine::~engine() {
  ::close(epoll_);
}

void engine::say(const std::string& line) {
  const auto now = steady::now().time_since_epoch();
  if (const auto text = lines_.pass("[shm] " + line, now);
      text && settings_.log)
    settings_.log(*text);
}

void engine::run() {
  auto last_work = steady::now();
  int idle_turns = 0;
  while (!closing_ || !links_.empty()) {
    bool work = take_commands();
    start_connects();
    for (auto& [id, l] : links_)
      work = move(*l) || work;
    if (ending_ != 0) {
      finish_links();
      work = true;
    }
    idle_turns = work ? 0 : idle_turns + 1;
    if (!work && idle_turns < pause_turns) {
      pause();
      continue;
    }
    const auto now = steady::now();
    if (now >= poll_at_) { // a thread that never sleeps must see deaths, too
      poll_at_ = now + poll_interval;
      work = poll(0) || work; // it may have ended links, taken commands
    }
    if (work)
      last_work = now;
    else if (now - last_work < settings_.spin)
      sched_yield();
    else {
      sleep(now);
      last_work = steady::now();
    }
  }
  start_connects(); // those that waited for a link to end: canceled
}

/// One turn of one link. @returns whether any data moved
bool engine::move(link& l) {
  if (l.over)
    return false;
  bool work = false;
  if (l.now == link::state::connecting)
    work = advance_connecting(l);
  if (l.now == link::state::up && !l.over)
    work = receive(l) || work;
  if (l.now == link::state::up && !l.over)
    work = read(l) || work;
  if (l.now == link::state::up && !l.over)
    work = send(l) || work;
  return work;
}

const directory* engine::directory_of(const link& l) const {
  return reinterpret_cast<const directory*>(l.peer_directory.bytes().data());
}

/// Wakes the peer if it sleeps; call after publishing data.
void engine::wake(link& l) {
  std::atomic_thread_fence(std::memory_order_seq_cst); // E-2
  const auto asleep = directory_of(l)->asleep.load(std::memory_order_relaxed);
  if (asleep % 2 == 0 || asleep == l.rung_for)
    return;
  l.rung_for = asleep; // once for each sleep
  ring_bell(l.bell);
}

bool engine::poll(int timeout_ms) {
  std::array<epoll_event, 32> events;
  const int n = epoll_wait(epoll_, events.data(), events.size(), timeout_ms);
  for (int i = 0; i < n; ++i)
    ready(events[static_cast<std::size_t>(i)].data.u64);
  return n > 0;
}

void engine::ready(std::uint64_t cookie) {
  if (cookie == wake_cookie) {
    woken_ = true; // stays readable until the commands are taken
    return;
  }
  if (cookie == bell_cookie)
    return bell_.silence();
  for (auto& [id, l] : links_) {
    if (l->connection != cookie || l->over)
      continue;
    unwatch(*l); // it stays readable
    // Everything that it published is complete, and may include its answer.
    if (l->now == link::state::up)
      receive(*l); // a turn is more than the ring holds
    end(*l, errc::peer_lost);
  }
}

/// Whether a peer has done anything since its link was last checked.
bool engine::anything_new() const {
  for (const auto& [id, l] : links_) {
    if (l->now == link::state::connecting) {
      if ((l->peer_head != nullptr && hears(*l->peer_head, l->connection))
          || channel_for(*directory_of(*l), token_, l->peer_connection))
        return true;
      continue;
    }
    if (l->peer_head->written.load(std::memory_order_acquire)
          != l->reader.taken()
        || l->peer_head->closed.load(std::memory_order_acquire) != 0)
      return true;
    const auto taken = l->peer_head->taken.load(std::memory_order_acquire);
    if (l->head->waits.load(std::memory_order_relaxed) != 0
        && l->writer.plausible(taken) && room(*l, taken))
      return true;
  }
  return false;
}

void engine::sleep(steady::time_point now) {
  using namespace std::chrono;
  // Only a link that connects has a deadline.
  milliseconds timeout{-1};
  for (auto& [id, l] : links_) {
    if (connecting_ == 0)
      break;
    if (l->now != link::state::connecting)
      continue;
    const auto left =
      std::max(ceil<milliseconds>(l->deadline - now), milliseconds(0));
    timeout = timeout.count() < 0 ? left : std::min(timeout, left);
  }
  auto& asleep = directory_->asleep;
  asleep.fetch_add(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst); // E-2
  // The eventfd of the commands stays readable.
  if (!anything_new() && queue_.may_sleep())
    poll(static_cast<int>(timeout.count()));
  asleep.fetch_add(1, std::memory_order_release);
}

bool engine::take_commands() {
  SHOAL_ASSERT(!taking_);
  if (std::exchange(woken_, false)) {
    std::uint64_t count;
    [[maybe_unused]] auto n = ::read(wake_fd_, &count, sizeof count);
  }
  queue_.take(batch_);
  if (batch_.empty())
    return false;
  taking_ = true;
  for (auto& c : batch_)
    execute(c);
  taking_ = false;
  return true;
}

void engine::fail(introduced::command& c, std::error_code why) {
  if (c.done.run != nullptr)
    c.done.run(c.done.context, why);
}

void engine::execute(introduced::command& c) {
  using kind = introduced::command::kind;
  link* l = find(c.peer);
  switch (c.what) {
  case kind::connect:
    to_connect_.push_back(std::move(c.address));
    return;
  case kind::cancel:
    return cancel(c.tag.plan);
  case kind::drop:
    std::erase_if(to_connect_, [&](const std::string& address) {
      const auto parsed = introduced::parse_address(address);
      if (!parsed || parsed->peer != c.peer)
        return false;
      handler_.connect_failed(address, errc::canceled);
      return true;
    });
    if (l == nullptr)
      return;
    if (!l->next_address.empty())
      handler_.connect_failed(std::exchange(l->next_address, {}),
                              errc::canceled);
    return end(*l, errc::canceled);
  case kind::close:
    closing_ = true;
    for (auto& [id, each] : links_)
      end(*each, errc::canceled);
    return;
  default:
    break;
  }
  if (l == nullptr || l->connection != c.connection || l->over
      || l->now != link::state::up)
    return fail(c, closing_ ? errc::canceled : errc::peer_lost);
  if (c.what == kind::message) {
    l->messages.push_back(std::move(c.message));
  } else if (c.what == kind::send) {
    const auto id = next_transfer_++;
    l->sends[id] = {c.tag,
                    c.from,
                    0,
                    c.done,
                    memory_ && c.from.size() >= arena::allocation_bytes_min
                      ? memory_->offset_of(c.from)
                      : std::nullopt,
                    {}};
    l->turn.push_back(id);
  } else {
    l->posted.emplace(c.tag, receive_op{c.into, c.done});
  }
}

fabric::fabric(const config& settings, fabric_handler& handler,
               std::shared_ptr<const arena> memory)
  : introduced::fabric(
    "shm", settings, [&](introduced::commands& queue, int wake_fd) {
      return std::make_unique<engine>(settings, handler, queue, wake_fd,
                                      std::move(memory));
    }) {
}

} // namespace shoal::transport::shm
