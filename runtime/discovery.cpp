// runtime/discovery.cpp -- beacons over IPv4 multicast.
#include "runtime/discovery.hpp"

#include "runtime/node/file.hpp" // unique_fd

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <openssl/rand.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

namespace shoal::runtime {

using std::chrono::milliseconds;
using clock = std::chrono::steady_clock;

namespace {

// A newcomer is heard within a moment although a datagram may be lost; a node
// alone asks once a second; one in company only renews what others know.
constexpr milliseconds burst[] = {milliseconds(30), milliseconds(100),
                                  milliseconds(250), milliseconds(500)};
constexpr milliseconds period_alone{1000};
constexpr milliseconds period_company{5000};
constexpr milliseconds interfaces_period{30000};
/// Datagrams read before the thread looks at its timers again.
constexpr int datagrams_max = 64;

/// Index and address of an IPv4 interface.
using interfaces = std::map<unsigned, in_addr>;

bool is_loopback(in_addr a) {
  return (ntohl(a.s_addr) >> 24) == 127;
}

/// The interfaces on which a listener bound to `host` can be reached.
interfaces usable(in_addr host) {
  interfaces out;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0)
    return out;
  bool all = host.s_addr == htonl(INADDR_ANY);
  for (ifaddrs* i = list; i && out.size() < discovery_interfaces_max;
       i = i->ifa_next) {
    if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET
        || !(i->ifa_flags & IFF_UP))
      continue;
    in_addr a = reinterpret_cast<sockaddr_in*>(i->ifa_addr)->sin_addr;
    bool lo = (i->ifa_flags & IFF_LOOPBACK) != 0;
    bool multicast = lo || (i->ifa_flags & IFF_MULTICAST);
    bool wanted = all || (is_loopback(host) ? lo : a.s_addr == host.s_addr);
    if (wanted && multicast)
      out.emplace(::if_nametoindex(i->ifa_name), a);
  }
  ::freeifaddrs(list);
  return out;
}

} // namespace

class discovery::impl {
public:
  explicit impl(discovery_config config)
    : config_(std::move(config)), keys_{config_.key} {
    if (::inet_pton(AF_INET, config_.host.c_str(), &host_) != 1)
      host_.s_addr = config_.host == "::1" || config_.host == "localhost"
                       ? htonl(INADDR_LOOPBACK)
                       : htonl(INADDR_ANY);
    ::inet_pton(AF_INET, discovery_group, &group_);
    wake_.reset(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (!open())
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

  void say(const std::string& line) {
    if (config_.say)
      config_.say(line);
  }

  void wake() {
    std::uint64_t one = 1;
    [[maybe_unused]] ssize_t n = ::write(wake_.get(), &one, sizeof one);
  }

  bool open() {
    in_.reset(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    out_.reset(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    int on = 1;
    int off = 0;
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(discovery_port);
    at.sin_addr = group_; // so that only what is sent to the group arrives
    bool good =
      in_ && out_
      && ::setsockopt(in_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0
      && ::setsockopt(in_.get(), IPPROTO_IP, IP_MULTICAST_ALL, &off, sizeof off)
           == 0
      && ::setsockopt(out_.get(), IPPROTO_IP, IP_MULTICAST_LOOP, &on, sizeof on)
           == 0
      && ::setsockopt(out_.get(), IPPROTO_IP, IP_MULTICAST_TTL, &on, sizeof on)
           == 0
      && ::bind(in_.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0;
    if (!good) {
      in_.reset();
      out_.reset();
    }
    return good;
  }

  /// Follows interfaces that come and go.
  void refresh_interfaces() {
    interfaces now = usable(host_);
    for (const auto& [index, address] : now) {
      ip_mreqn request{};
      request.imr_multiaddr = group_;
      request.imr_address = address;
      request.imr_ifindex = static_cast<int>(index);
      if (::setsockopt(in_.get(), IPPROTO_IP, IP_ADD_MEMBERSHIP, &request,
                       sizeof request)
            != 0
          && errno != EADDRINUSE && failed_.insert(index).second)
        say("[discovery] cannot join the group on interface "
            + std::to_string(index) + ": " + std::strerror(errno));
    }
    interfaces_ = std::move(now);
  }

  /// With the key in use, and with others by which somebody was heard: whoever
  /// was away while the key was replaced hears us too, and dials.
  void send() {
    std::set<transport::tls::shared_key> by = std::exchange(heard_by_, {});
    by.insert(keys().front());
    for (const auto& key : by)
      send(key);
  }

  void send(const transport::tls::shared_key& key) {
    beacon b;
    b.port = config_.port;
    b.alone = alone_;
    std::memcpy(b.sender.data(), config_.self.data(), b.sender.size());
    RAND_bytes(b.nonce.data(), static_cast<int>(b.nonce.size()));
    auto bytes = encode_beacon(b, config_.cluster, key);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(discovery_port);
    to.sin_addr = group_;
    for (const auto& [index, address] : interfaces_) {
      ip_mreqn via{};
      via.imr_address = address;
      via.imr_ifindex = static_cast<int>(index);
      if (::setsockopt(out_.get(), IPPROTO_IP, IP_MULTICAST_IF, &via,
                       sizeof via)
          != 0)
        continue;
      ssize_t n = ::sendto(out_.get(), bytes.data(), bytes.size(), 0,
                           reinterpret_cast<sockaddr*>(&to), sizeof to);
      if (n < 0 && failed_.insert(index).second)
        say("[discovery] cannot send on interface " + std::to_string(index)
            + ": " + std::strerror(errno));
    }
  }

  void receive() {
    for (int i = 0; i < datagrams_max; ++i) {
      std::array<std::byte, beacon_bytes + 1> bytes; // one more: too long
      sockaddr_in from{};
      socklen_t size = sizeof from;
      ssize_t n = ::recvfrom(in_.get(), bytes.data(), bytes.size(), 0,
                             reinterpret_cast<sockaddr*>(&from), &size);
      if (n < 0)
        return;
      const auto datagram = std::span(bytes).first(static_cast<std::size_t>(n));
      std::optional<beacon> b;
      transport::tls::shared_key by{};
      for (const auto& key : keys())
        if (!b) {
          b = decode_beacon(datagram, config_.cluster, key);
          by = key;
        }
      if (!b
          || std::memcmp(b->sender.data(), config_.self.data(),
                         b->sender.size())
               == 0)
        continue;
      heard_by_.insert(by);
      char text[INET_ADDRSTRLEN] = {};
      ::inet_ntop(AF_INET, &from.sin_addr, text, sizeof text);
      std::uint64_t sender = 0;
      std::memcpy(&sender, b->sender.data(), sizeof sender);
      if (config_.found)
        config_.found(std::string(text) + ":" + std::to_string(b->port),
                      sender);
    }
  }

  void run() {
    clock::time_point next_send = clock::now();
    clock::time_point next_refresh = next_send;
    std::size_t sent = 0;
    while (!stopped_) {
      clock::time_point now = clock::now();
      if (in_ && now >= next_refresh) {
        refresh_interfaces();
        next_refresh = now + interfaces_period;
      }
      if (in_ && now >= next_send) {
        send();
        milliseconds wait = sent < std::size(burst) ? burst[sent]
                            : alone_                ? period_alone
                                                    : period_company;
        ++sent;
        next_send = now + wait;
      }
      auto wait = std::chrono::ceil<milliseconds>(
        std::min(next_send, next_refresh) - clock::now());
      pollfd fds[] = {{wake_.get(), POLLIN, 0}, {in_.get(), POLLIN, 0}};
      ::poll(fds, in_ ? 2 : 1,
             in_ ? static_cast<int>(std::max<long>(0, wait.count())) : -1);
      if (fds[0].revents) {
        std::uint64_t count = 0;
        [[maybe_unused]] ssize_t n = ::read(wake_.get(), &count, sizeof count);
        next_send = std::min(next_send, clock::now() + burst[0]);
      }
      if (in_ && fds[1].revents)
        receive();
    }
  }

  discovery_config config_;
  mutable std::mutex keys_mutex_;
  std::vector<transport::tls::shared_key> keys_; ///< guarded by it
  std::set<transport::tls::shared_key>
    heard_by_; ///< since send(); thread_ only
  in_addr host_{};
  in_addr group_{};
  unique_fd wake_;
  unique_fd in_;
  unique_fd out_;
  interfaces interfaces_;
  std::set<unsigned> failed_; ///< interfaces that were complained about
  std::atomic<bool> alone_{true};
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

discovery::discovery(discovery_config config)
  : impl_(std::make_unique<impl>(std::move(config))) {
}

discovery::~discovery() = default;

void discovery::set_keys(std::vector<transport::tls::shared_key> keys) {
  impl_->set_keys(std::move(keys));
}

void discovery::set_alone(bool alone) {
  impl_->set_alone(alone);
}

} // namespace shoal::runtime
