// runtime/discovery/discovery.cpp -- sends beacons by schedule and hears
// others.
#include "runtime/discovery/discovery.hpp"

#include "runtime/discovery/multicast.hpp"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

namespace shoal::runtime {

using std::chrono::milliseconds;
using clock = std::chrono::steady_clock;

namespace {

// A newcomer is heard within a moment even if a datagram is lost. A node that
// is alone asks once a second; a node with peers only renews what others know.
constexpr milliseconds burst[] = {milliseconds(30), milliseconds(100),
                                  milliseconds(250), milliseconds(500)};
constexpr milliseconds period_alone{1000};
constexpr milliseconds period_company{5000};
/// How often to check for interfaces that came or went. IPv6 addresses appear a
/// second or two after their interface.
constexpr milliseconds interfaces_period_alone{2000};
constexpr milliseconds interfaces_period_company{30000};
/// The shortest time between two log lines about a flood.
constexpr milliseconds flood_period{60000};
/// Datagrams read before the thread checks its timers again.
constexpr int datagrams_max = 64;

} // namespace

class discovery::impl {
public:
  impl(discovery_config config, discovery_handler& node)
    : config_(std::move(config)), node_(node), keys_{config_.key} {
    const std::string& at = config_.listener;
    host_ = parse_ip(host_of(at)).value_or(scoped_address{});
    const auto* end = at.data() + at.size();
    std::from_chars(at.data() + at.rfind(':') + 1, end, port_);
    wake_.reset(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    open_ = sockets_.open();
    if (!open_)
      say("[discovery] no multicast here (" + std::string(std::strerror(errno))
          + "): only --join finds peers");
    thread_ = std::thread([this] { run(); });
  }

  ~impl() {
    stopped_ = true;
    wake();
    thread_.join();
  }

  void set_keys(std::vector<transport::tls::shared_key> keys) {
    std::lock_guard lock(keys_mutex_);
    keys_ = std::move(keys);
  }

  void set_alone(bool alone) {
    if (alone_.exchange(alone) != alone && alone)
      wake();
  }

private:
  std::vector<transport::tls::shared_key> keys() const {
    std::lock_guard lock(keys_mutex_);
    return keys_;
  }

  void say(const std::string& line) { node_.say(line); }

  void wake() {
    std::uint64_t one = 1;
    [[maybe_unused]] ssize_t n = ::write(wake_.get(), &one, sizeof one);
  }

  /// Follows interfaces that come and go.
  void refresh_interfaces() {
    const auto all = list_interfaces();
    for (const std::string& wrong : sockets_.join(host_, all))
      say("[discovery] " + wrong);
    ways_ = ways_to(host_, all);
  }

  /// Sends with the current key, and then with other keys by which a peer was
  /// heard: a peer that was away while the key was replaced then hears us, too,
  /// and dials. Others know us by the first, and do not wonder about the rest.
  void send() {
    const transport::tls::shared_key current = keys().front();
    std::set<transport::tls::shared_key> old = std::exchange(heard_by_, {});
    old.erase(current);
    for (const beacon_way& way : ways_)
      send(current, way);
    for (const auto& key : old)
      for (const beacon_way& way : ways_)
        send(key, way);
  }

  static std::int64_t unix_ms() {
    return std::chrono::duration_cast<milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
  }

  /// Increases with each call, also over a restart of this process.
  std::uint64_t next_time() {
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::system_clock::now().time_since_epoch());
    sent_at_ = std::max(sent_at_ + 1, static_cast<std::uint64_t>(us.count()));
    return sent_at_;
  }

  void send(const transport::tls::shared_key& key, const beacon_way& way) {
    beacon b;
    b.port = port_;
    b.alone = alone_;
    b.time = next_time();
    b.address = way.offered;
    std::memcpy(b.sender.data(), config_.self.data(), b.sender.size());
    const auto bytes = encode_beacon(b, config_.cluster, key);
    const auto error = sockets_.send(way, bytes);
    // An IPv6 address cannot be used during duplicate detection.
    if (error && error != std::errc::address_not_available
        && failed_.emplace(way.interface, way.v6).second)
      say("[discovery] cannot send on interface "
          + std::to_string(way.interface) + (way.v6 ? " (IPv6): " : ": ")
          + error.message());
  }

  void receive(beacon_filter::time now) {
    for (int i = 0; i < datagrams_max; ++i) {
      std::array<std::byte, beacon_bytes + 1> bytes; // one more shows excess
      const auto d = sockets_.receive(bytes);
      if (!d)
        break;
      if (filter_.admits(d->source.address, now))
        look(*d, std::span(bytes).first(std::min(d->bytes, bytes.size())), now);
    }
    node_.counted(filter_.counts());
  }

  void look(const multicast::datagram& d, std::span<const std::byte> bytes,
            beacon_filter::time now) {
    std::optional<beacon> b;
    transport::tls::shared_key used_key{};
    for (const auto& key : keys())
      if (!b) {
        b = decode_beacon(bytes, config_.cluster, key);
        used_key = key;
      }
    if (!b) {
      if (!filter_.is_home(d.source.address, now))
        node_.strange(host_of(to_text({d.source.address, 0}, 0)));
      return filter_.strange(unix_ms());
    }
    if (std::memcmp(b->sender.data(), config_.self.data(), b->sender.size())
        == 0)
      return;
    std::uint64_t sender = 0;
    std::memcpy(&sender, b->sender.data(), sizeof sender);
    const bool connected = node_.connected(sender);
    using verdict = beacon_filter::verdict;
    const verdict v =
      filter_.judge(*b, {d.source.address, d.loopback}, connected, now);
    // Connected peers know the current key. If they were answered with an old
    // key, they would answer with it, too, for ever.
    if (!connected && v != verdict::old && v != verdict::elsewhere)
      heard_by_.insert(used_key);
    if (v == verdict::dial)
      node_.found(to_text({b->address, d.source.interface}, b->port));
  }

  void complain(clock::time_point now) {
    const std::uint64_t dropped = filter_.counts().crowded - logged_crowded_;
    if (dropped == 0 || now < next_complaint_)
      return;
    logged_crowded_ += dropped;
    next_complaint_ = now + flood_period;
    say("[discovery] a flood of beacons: dropped " + std::to_string(dropped)
        + " unread; use --join to find peers");
  }

  void run() {
    clock::time_point next_send = clock::now();
    clock::time_point next_refresh = next_send;
    std::size_t sent = 0;
    while (!stopped_) {
      clock::time_point now = clock::now();
      if (open_ && now >= next_refresh) {
        refresh_interfaces();
        next_refresh =
          now + (alone_ ? interfaces_period_alone : interfaces_period_company);
      }
      if (open_ && now >= next_send) {
        send();
        milliseconds wait = sent < std::size(burst) ? burst[sent]
                            : alone_                ? period_alone
                                                    : period_company;
        ++sent;
        next_send = now + wait;
        complain(now);
      }
      auto wait = std::chrono::ceil<milliseconds>(
        std::min(next_send, next_refresh) - clock::now());
      std::vector<pollfd> fds{{wake_.get(), POLLIN, 0}};
      for (int fd : sockets_.descriptors())
        fds.push_back({fd, POLLIN, 0});
      ::poll(fds.data(), fds.size(),
             open_ ? static_cast<int>(std::max<long>(0, wait.count())) : -1);
      if (fds[0].revents) {
        std::uint64_t count = 0;
        [[maybe_unused]] ssize_t n = ::read(wake_.get(), &count, sizeof count);
        next_send = std::min(next_send, clock::now() + burst[0]);
      }
      if (std::any_of(fds.begin() + 1, fds.end(),
                      [](const pollfd& f) { return f.revents != 0; }))
        receive(clock::now().time_since_epoch());
    }
  }

  discovery_config config_;
  discovery_handler& node_;
  mutable std::mutex keys_mutex_;
  std::vector<transport::tls::shared_key> keys_; ///< guarded by it
  scoped_address host_;
  std::uint16_t port_ = 0;
  unique_fd wake_;
  std::atomic<bool> alone_{true};
  std::atomic<bool> stopped_{false};

  // Only for thread_.
  multicast sockets_;
  bool open_ = false;
  beacon_filter filter_;
  std::set<transport::tls::shared_key> heard_by_; ///< since send()
  std::vector<beacon_way> ways_;
  std::set<std::pair<unsigned, bool>> failed_; ///< that were logged
  std::uint64_t sent_at_ = 0;
  std::uint64_t logged_crowded_ = 0;
  clock::time_point next_complaint_{};
  std::thread thread_;
};

discovery::discovery(discovery_config config, discovery_handler& node)
  : impl_(std::make_unique<impl>(std::move(config), node)) {
}

discovery::~discovery() = default;

void discovery::set_keys(std::vector<transport::tls::shared_key> keys) {
  impl_->set_keys(std::move(keys));
}

void discovery::set_alone(bool alone) {
  impl_->set_alone(alone);
}

} // namespace shoal::runtime
