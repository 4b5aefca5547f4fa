// transport/ucx/engine.cpp -- the loop, the commands, and incoming frames.

#include "transport/ucx/engine.hpp"

#include "transport/assert.hpp"
#include "transport/introduced/host.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace shoal::transport::ucx {

namespace {

constexpr std::uint64_t wake_cookie = 1;
/// Progress calls before the next check for commands.
constexpr int progress_burst = 64;
/// How often a thread that never sleeps polls its pidfds.
constexpr std::chrono::milliseconds poll_interval{10};

} // namespace

engine::engine(const config& settings, fabric_handler& handler, commands& queue,
               int wake_fd)
  : settings_(settings), handler_(handler), queue_(queue), wake_fd_(wake_fd),
    host_(this_host()), token_(random_token()),
    worker_(
      std::make_unique<worker>(settings.over, settings.devices, settings.log)) {
  worker_->on_message(frame_id, &engine::on_frame, this);
  if (!worker_->watch(wake_fd_, wake_cookie))
    throw std::system_error(errno, std::generic_category(), "ucx: epoll");
  node_address self;
  self.over = settings.over;
  self.host = host_;
  self.pid = static_cast<std::uint32_t>(getpid());
  self.peer = settings.self;
  self.role = settings.role;
  self.instance = settings.instance;
  self.capabilities = settings.capabilities;
  self.token = token_;
  if (settings.over == medium::tcp) {
    doors_ = std::make_unique<listeners>(
      worker_->handle(), settings.trusted,
      [this](ucp_listener_h door, ucp_conn_request_h request) {
        on_knock(door, request);
      });
    self.way = doors_->way();
  } else {
    self.way = worker_->address();
  }
  if (self.way.size() > way_bytes_max)
    throw std::runtime_error("ucx: worker address of "
                             + std::to_string(self.way.size()) + " bytes");
  address_ = format_address(self);
}

engine::~engine() {
  drop_worker();
}

/// Destroys the worker, which ends all requests. With buried endpoints that
/// would abort: then its memory and theirs stays; all other endpoints are
/// closed by now.
void engine::drop_worker() {
  doors_.reset();
  if (buried_.empty()) {
    worker_.reset();
    return;
  }
  static_cast<void>(worker_.release());
  for (auto& l : buried_)
    static_cast<void>(l.release());
  buried_.clear();
}

void engine::say(const std::string& line) {
  const auto now = steady::now().time_since_epoch();
  if (const auto text = lines_.pass("[ucx] " + line, now);
      text && settings_.log)
    settings_.log(*text);
}

void engine::run() {
  auto last_work = steady::now();
  while (!closing_ || !links_.empty() || !knocks_.empty() || !guests_.empty()
         || !leaving_.empty()) {
    bool work = take_commands();
    start_connects();
    for (int i = 0; i != progress_burst && worker_; ++i) {
      if (worker_->progress() == 0)
        break;
      work = true;
    }
    work = advance_links() || work;
    auto now = steady::now();
    work = receive_guests(now) || work;
    send_pings(now);
    // Also without sleep: UCX may be busy with a peer that no longer reads.
    if (worker_ && now >= poll_at_) {
      poll_at_ = now + poll_interval;
      worker_->poll([this](std::uint64_t cookie) { ready(cookie); });
    }
    if (work) {
      last_work = now;
    } else if (now - last_work < settings_.spin) {
      sched_yield();
    } else {
      sleep(now);
      last_work = steady::now();
    }
  }
  start_connects(); // those that waited for a link to end: canceled
}

void engine::sleep(steady::time_point now) {
  using namespace std::chrono;
  if (!worker_)
    return;
  // Only a link that changes, and a ping, has a deadline. A closing link may
  // wait for UCX, which need not signal that it has released a request.
  milliseconds timeout{-1};
  if (settings_.over == medium::rdma && !links_.empty())
    timeout = std::max(ceil<milliseconds>(ping_at_ - now), milliseconds(0));
  if (const auto due = guests_due(now); due != steady::time_point::max())
    timeout = std::max(ceil<milliseconds>(due - now), milliseconds(0));
  for (auto& [id, l] : links_) {
    if (changing_ == 0)
      break;
    if (l->now == link::state::up || l->now == link::state::parked)
      continue;
    auto left =
      l->now == link::state::closing
        ? milliseconds(1)
        : std::max(ceil<milliseconds>(l->deadline - now), milliseconds(0));
    timeout = timeout.count() < 0 ? left : std::min(timeout, left);
  }
  if (queue_.may_sleep())
    worker_->wait(static_cast<int>(timeout.count()),
                  [this](std::uint64_t cookie) { ready(cookie); });
}

void engine::ready(std::uint64_t cookie) {
  if (cookie == wake_cookie) {
    woken_ = true; // stays readable until the commands are taken
    return;
  }
  for (auto& [id, l] : links_) {
    if (l->connection != cookie || l->pidfd < 0)
      continue;
    ::close(std::exchange(l->pidfd, -1));
    l->failed = true;
    begin_close(*l, errc::peer_lost, true);
  }
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

void engine::fail(command& c, std::error_code why) {
  if (c.done.run != nullptr)
    c.done.run(c.done.context, why);
}

void engine::execute(command& c) {
  auto l = find(c.peer);
  switch (c.what) {
  case command::kind::connect:
    to_connect_.push_back(std::move(c.address));
    return;
  case command::kind::cancel:
    cancel(c.tag.plan);
    return;
  case command::kind::drop:
    if (l == nullptr)
      return;
    if (!l->next_address.empty())
      handler_.connect_failed(std::exchange(l->next_address, {}),
                              errc::canceled);
    if (l->now == link::state::connecting)
      give_up(*l, errc::canceled);
    else if (l->now == link::state::up)
      begin_close(*l, errc::canceled, false);
    return;
  case command::kind::close:
    closing_ = true;
    abandon_at_ = steady::now() + close_timeout;
    for (auto& [id, each] : links_)
      begin_close(*each, errc::canceled, false);
    return;
  default:
    break;
  }
  if (l == nullptr || l->connection != c.connection
      || l->now != link::state::up) {
    fail(c, closing_ ? errc::canceled : errc::peer_lost);
    return;
  }
  if (c.what == command::kind::message)
    send_message(*l, c);
  else if (c.what == command::kind::send)
    send_bulk(*l, c);
  else
    post_receive(*l, c);
}

ucs_status_t
engine::on_frame(void* self, const void* header, std::size_t header_bytes,
                 void* data, std::size_t bytes,
                 const ucp_am_recv_param_t* param) noexcept {
  // UCS_OK for foreign frames: UCX then drops the message, rendezvous included,
  // and its sender gets no answer.
  auto* e = static_cast<engine*>(self);
  const auto f =
    frame_of({static_cast<const std::byte*>(header), header_bytes}, e->token_);
  return f ? e->handle_frame(*f, data, bytes, *param) : UCS_OK; // E-3
}

/// Whether `f` belongs to the current connection. The first answer to our hello
/// gives the other end's number.
bool engine::learn(link& l, const frame& f) {
  return l.now != link::state::closing
         && belongs(f, l.connection, l.peer_connection);
}

ucs_status_t engine::handle_frame(const frame& f, void* data, std::size_t bytes,
                                  const ucp_am_recv_param_t& param) {
  auto found = by_token_.find(f.from_token);
  if (found == by_token_.end()) {
    if (f.kind == frame_kind::hello)
      keep_early(f, param);
    return UCS_OK; // E-3
  }
  link& l = *found->second;
  if (f.kind == frame_kind::hello) {
    on_hello(l, f, param);
    return UCS_OK;
  }
  if (!learn(l, f))
    return UCS_OK; // E-3
  if (l.now == link::state::parked) {
    // It answers after we gave up, so it must learn of that.
    begin_close(l, errc::peer_lost, f.kind == frame_kind::bye);
    return UCS_OK;
  }
  // Any frame on this connection shows that the peer knows us.
  if (l.now == link::state::connecting && f.kind != frame_kind::bye)
    go_up(l);
  bool rendezvous = (param.recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  switch (f.kind) {
  case frame_kind::message:
    on_control(l, f, rendezvous ? nullptr : data, bytes);
    break;
  case frame_kind::bulk:
    return on_bulk(l, f, data, bytes, rendezvous);
  case frame_kind::bulk_ack:
    on_bulk_ack(l, f);
    break;
  case frame_kind::bye:
    begin_close(l, errc::peer_lost, true);
    break;
  default:
    break;
  }
  return UCS_OK;
}

fabric::fabric(config settings, fabric_handler& handler)
  : introduced::fabric("ucx", settings, [&](commands& queue, int wake_fd) {
      return std::make_unique<engine>(settings, handler, queue, wake_fd);
    }) {
}

} // namespace shoal::transport::ucx
