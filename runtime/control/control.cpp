// runtime/control/control.cpp -- connections of clients, and their requests.
#include "runtime/control/control.hpp"

#include "runtime/control/client_requests.hpp"
#include "runtime/control/frames.hpp"
#include "runtime/control/unix_socket.hpp"
#include "runtime/core/text/hex.hpp"
#include "runtime/jobs/job_journal.hpp"
#include "runtime/wire/codec.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace shoal::runtime {

namespace fs = std::filesystem;
using clock = std::chrono::steady_clock;

namespace {

/// A client on the Unix socket.
struct connection {
  unique_fd fd;
  client_key key = 0;
  frame_reader in;
  std::vector<std::byte> out;
  std::optional<client_request> next; ///< read, and not begun
  bool busy = false;                  ///< a request is in progress
  bool dead = false;

  /// Whether more is read: only when all answers have been sent, and of requests
  /// behind one in progress the first, which may take that one back.
  bool reads() const { return !next && out.empty() && !in.whole(); }
  bool may_begin() const {
    return next && (!busy || std::holds_alternative<take_back>(next->body));
  }
};

} // namespace

class control::impl {
public:
  impl(const fs::path& socket, control_handler& node)
    : socket_(socket), node_(node), requests_(node, [this] { wake(); }) {
    wake_.reset(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    listener_ = listen_unix(socket);
    own_ = posix::file_id::of(socket);
    listening_ = node_.journal().listen([this](core::job_id) { wake(); });
    thread_ = std::thread([this] { run(); });
  }

  ~impl() {
    node_.journal().unlisten(listening_);
    stopped_ = true;
    wake();
    thread_.join();
    for (connection& c : near_)
      flush(c);              // for example a reply to `shoal leave`
    if (own_.is_at(socket_)) // else the directory is another node's now
      ::unlink(socket_.c_str());
  }

  void ask(const core::peer_id& who, client_request request) {
    {
      std::lock_guard lock(mutex_);
      const auto own = std::size_t(
        std::ranges::count(asked_, who, [](auto& r) { return r.who; }));
      if (asked_.size() < control_far_requests_max
          && own < control_far_requests_each_max) {
        asked_.push_back({who, std::move(request), false});
        wake();
        return;
      }
    }
    client_reply busy;
    busy.number = request.number;
    busy.code = reply_code::refused;
    busy.text = "this node has too many requests waiting: ask again later";
    node_.send(who, busy);
  }

  void gone(const core::peer_id& who) {
    std::lock_guard lock(mutex_);
    asked_.push_back({who, {}, true});
    wake();
  }

  bool serves_follower() const {
    return requests_.serves_follower(clock::now());
  }

  void answered(std::uint64_t token, outcome o) {
    requests_.answered(token, std::move(o));
  }

private:
  struct far_request {
    core::peer_id who{};
    client_request request;
    bool gone = false;
  };

  void wake() {
    std::uint64_t one = 1;
    [[maybe_unused]] ssize_t n = ::write(wake_.get(), &one, sizeof one);
  }

  void run() {
    while (!stopped_) {
      take_far();
      requests_.work(clock::now());
      for (connection& c : near_)
        flush(c);
      std::erase_if(near_, [this](connection& c) {
        if (c.dead)
          requests_.forget(c.key);
        return c.dead;
      });
      wait();
    }
  }

  void wait() {
    const clock::time_point now = clock::now();
    const bool accepts = accept_again_ <= now;
    std::vector<pollfd> fds;
    fds.push_back({wake_.get(), POLLIN, 0});
    fds.push_back({listener_.get(), short(accepts ? POLLIN : 0), 0});
    for (connection& c : near_)
      fds.push_back({c.fd.get(),
                     static_cast<short>((c.reads() ? POLLIN : 0)
                                        | (c.out.empty() ? 0 : POLLOUT)),
                     0});
    ::poll(fds.data(), fds.size(), timeout_ms(now, accepts));
    if (fds[0].revents) {
      std::uint64_t count = 0;
      [[maybe_unused]] ssize_t n = ::read(wake_.get(), &count, sizeof count);
    }
    std::size_t i = 2;
    for (connection& c : near_) {
      short events = fds[i++].revents;
      if (events & (POLLIN | POLLHUP | POLLERR))
        read(c);
    }
    if (fds[1].revents & POLLIN)
      accept();
  }

  /// Time until the next action that no descriptor announces; -1: none.
  int timeout_ms(clock::time_point now, bool accepts) const {
    std::optional<clock::time_point> due = requests_.due();
    if (!accepts)
      due = std::min(due.value_or(accept_again_), accept_again_);
    if (!due)
      return -1;
    return static_cast<int>(std::max<long>(
      0, std::chrono::ceil<std::chrono::milliseconds>(*due - now).count()));
  }

  void accept() {
    int fd = ::accept4(listener_.get(), nullptr, nullptr,
                       SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
        accept_again_ = clock::now() + control_accept_pause;
      return;
    }
    if (near_.size() >= control_connections_max) {
      unique_fd one_too_many(fd);
      client_reply busy; // number 0: answers any request
      busy.code = reply_code::refused;
      busy.text = "this node has " + std::to_string(near_.size())
                  + " clients already (control_connections_max): end one";
      const auto bytes = frame(codec::encode(busy));
      (void)::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      return;
    }
    connection& c = near_.emplace_back();
    c.fd.reset(fd);
    c.key = ++last_key_;
  }

  void read(connection& c) {
    if (!c.in.fill(c.fd.get())) {
      c.dead = true;
      return;
    }
    serve(c);
  }

  /// Takes the next complete request, unless one is in progress or its answer
  /// is being sent.
  void serve(connection& c) {
    if (c.dead || !c.out.empty() || !take_next(c) || !c.may_begin())
      return;
    const bool aside = std::exchange(c.busy, true);
    requests_.ask(c.key, *std::exchange(c.next, std::nullopt),
                  [this, key = c.key, aside](const client_reply& reply) {
                    for (connection& to : near_)
                      if (to.key == key)
                        answer(to, reply, aside);
                  });
    if (c.in.whole()) // perhaps what takes it back, which need not wait
      wake();
  }

  /// @returns whether there is a next request
  bool take_next(connection& c) {
    std::vector<std::byte> bytes;
    if (c.next)
      return true;
    if (!c.in.next(bytes)) {
      c.dead = c.in.broken();
      return false;
    }
    envelope e;
    c.dead =
      codec::decode(bytes, e) || !std::holds_alternative<client_request>(e);
    if (!c.dead)
      c.next = std::get<client_request>(std::move(e));
    return !c.dead;
  }

  /// @param aside another request is in progress, and stays so
  void answer(connection& c, const client_reply& reply, bool aside) {
    c.busy = c.busy && aside;
    std::vector<std::byte> bytes = frame(codec::encode(reply));
    c.out.insert(c.out.end(), bytes.begin(), bytes.end());
    wake(); // another request may have arrived with this one
  }

  void flush(connection& c) {
    while (!c.out.empty() && !c.dead) {
      ssize_t n = ::send(c.fd.get(), c.out.data(), c.out.size(), MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR)
        continue;
      if (n < 0) {
        c.dead = errno != EAGAIN && errno != EWOULDBLOCK;
        return;
      }
      c.out.erase(c.out.begin(), c.out.begin() + n);
    }
    serve(c);
  }

  void take_far() {
    std::deque<far_request> asked;
    {
      std::lock_guard lock(mutex_);
      asked.swap(asked_);
    }
    for (far_request& r : asked) {
      auto known = far_.find(r.who);
      if (r.gone) {
        if (known != far_.end()) {
          requests_.forget(known->second);
          far_.erase(known);
        }
        continue;
      }
      if (known == far_.end())
        known = far_.emplace(r.who, ++last_key_).first;
      const bool by_peer = std::holds_alternative<ask_events>(r.request.body)
                           && node_.find(core::to_hex(r.who)).why.empty();
      requests_.ask(
        known->second, std::move(r.request),
        [this, who = r.who](const client_reply& reply) {
          node_.send(who, reply);
        },
        by_peer);
    }
  }

  fs::path socket_;
  posix::file_id own_; ///< of the socket
  control_handler& node_;
  unique_fd wake_;
  unique_fd listener_;
  client_requests requests_;
  std::list<connection> near_;
  std::map<core::peer_id, client_key> far_;
  client_key last_key_ = 0;
  clock::time_point accept_again_{}; ///< not before this time
  std::uint64_t listening_ = 0;
  std::mutex mutex_;
  std::deque<far_request> asked_;
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

control::control(const fs::path& socket, control_handler& node)
  : impl_(std::make_unique<impl>(socket, node)) {
}

control::~control() = default;

void control::ask(const core::peer_id& who, client_request request) {
  impl_->ask(who, std::move(request));
}

void control::gone(const core::peer_id& who) {
  impl_->gone(who);
}

bool control::serves_follower() const {
  return impl_->serves_follower();
}

void control::answered(std::uint64_t token, outcome o) {
  impl_->answered(token, std::move(o));
}

} // namespace shoal::runtime
