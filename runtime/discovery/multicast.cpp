// runtime/discovery/multicast.cpp -- the sockets of discovery, for both
// families.
#include "runtime/discovery/multicast.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#ifndef IPV6_MULTICAST_ALL // of linux/in6.h, which clashes with netinet/in.h
#define IPV6_MULTICAST_ALL 29
#endif

namespace shoal::runtime {

namespace {

constexpr std::size_t control_bytes = 128;

template <class Value>
bool set(const unique_fd& fd, int level, int option, const Value& value) {
  return ::setsockopt(fd.get(), level, option, &value, sizeof value) == 0;
}

unique_fd make_socket(int family) {
  return unique_fd(
    ::socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

in_addr group4() {
  in_addr a{};
  ::inet_pton(AF_INET, discovery_group, &a);
  return a;
}

in6_addr group6() {
  in6_addr a{};
  ::inet_pton(AF_INET6, discovery_group6, &a);
  return a;
}

in_addr four_of(const ip_address& a) {
  in_addr out{};
  if (is_v4(a))
    std::memcpy(&out, a.data() + 12, sizeof out);
  return out;
}

bool wanted(const scoped_address& host, const network_interface& i) {
  if (is_any(host.address) || !i.multicast)
    return i.multicast;
  if (is_loopback(host.address))
    return i.loopback;
  return (host.interface == 0 || host.interface == i.index)
         && std::ranges::find(i.addresses, host.address) != i.addresses.end();
}

} // namespace

std::vector<network_interface> list_interfaces() {
  std::vector<network_interface> out;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0)
    return out;
  for (ifaddrs* i = list; i; i = i->ifa_next) {
    const bool loopback = (i->ifa_flags & IFF_LOOPBACK) != 0;
    if (!(i->ifa_flags & IFF_UP))
      continue;
    const unsigned index = ::if_nametoindex(i->ifa_name);
    auto at = std::ranges::find(out, index, &network_interface::index);
    if (at == out.end()) {
      if (index == 0 || out.size() >= discovery_interfaces_max)
        continue;
      at = out.insert(
        out.end(),
        {index, loopback, loopback || (i->ifa_flags & IFF_MULTICAST) != 0, {}});
    }
    if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET) {
      at->addresses.push_back(
        from_v4(&reinterpret_cast<sockaddr_in*>(i->ifa_addr)->sin_addr));
    } else if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET6) {
      ip_address a{};
      std::memcpy(a.data(),
                  &reinterpret_cast<sockaddr_in6*>(i->ifa_addr)->sin6_addr,
                  a.size());
      at->addresses.push_back(a);
    }
  }
  ::freeifaddrs(list);
  return out;
}

std::vector<beacon_way>
ways_to(const scoped_address& host, const std::vector<network_interface>& all) {
  const bool any = is_any(host.address);
  const bool four = !any ? is_v4(host.address) : true; // [::] accepts IPv4 too
  const bool six = any ? !is_v4(host.address) : !four;
  std::vector<beacon_way> out;
  for (const network_interface& i : all) {
    if (!wanted(host, i))
      continue;
    // The first address of each family, or the listener's own.
    const ip_address* v4 = nullptr;
    const ip_address* v6 = nullptr;
    for (const ip_address& a : i.addresses) {
      if (!any && !is_loopback(host.address) && a != host.address)
        continue;
      if (is_v4(a))
        v4 = v4 ? v4 : &a;
      else if (!v6 || (is_link_local(a) && !is_link_local(*v6)))
        v6 = &a;
    }
    if (i.loopback) {
      beacon_way w{i.index, true, false, v4 ? *v4 : ip_address{}, {}};
      if (!any)
        w.offered = host.address;
      else if (v4 || v6)
        w.offered = v4 && four ? *v4 : six && v6 ? *v6 : ip_address{};
      if (!is_any(w.offered))
        out.push_back(w);
      continue;
    }
    if (four && v4)
      out.push_back({i.index, false, false, *v4, *v4});
    if (six && v6)
      out.push_back({i.index, false, true, *v6, *v6});
  }
  return out;
}

bool multicast::open4() {
  in4_ = make_socket(AF_INET);
  out4_ = make_socket(AF_INET);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(discovery_port);
  at.sin_addr = group4(); // so that only datagrams to the group arrive
  return in4_ && out4_ && set(in4_, SOL_SOCKET, SO_REUSEADDR, 1)
         && set(in4_, IPPROTO_IP, IP_MULTICAST_ALL, 0)
         && set(in4_, IPPROTO_IP, IP_PKTINFO, 1)
         && set(out4_, IPPROTO_IP, IP_MULTICAST_LOOP, 1)
         && set(out4_, IPPROTO_IP, IP_MULTICAST_TTL, 1)
         && ::bind(in4_.get(), reinterpret_cast<sockaddr*>(&at), sizeof at)
              == 0;
}

bool multicast::open6() {
  in6_ = make_socket(AF_INET6);
  out6_ = make_socket(AF_INET6);
  sockaddr_in6 at{}; // a group would bind it to one interface
  at.sin6_family = AF_INET6;
  at.sin6_port = htons(discovery_port);
  if (!in6_ || !out6_ || !set(in6_, SOL_SOCKET, SO_REUSEADDR, 1)
      || !set(in6_, IPPROTO_IPV6, IPV6_V6ONLY, 1)
      || !set(in6_, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1)
      || !set(out6_, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 1)
      || !set(out6_, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, 1))
    return false;
  (void)set(in6_, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0); // older than Linux 4.20
  return ::bind(in6_.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0;
}

bool multicast::open() {
  const bool four = open4();
  const int why = errno;
  const bool six = open6();
  if (!four)
    in4_.reset();
  if (!six)
    in6_.reset();
  if (!four && !six)
    errno = why;
  return four || six;
}

std::vector<std::string>
multicast::join(const scoped_address& host,
                const std::vector<network_interface>& all) {
  std::vector<std::string> wrong;
  loopback_.clear();
  for (const network_interface& i : all) {
    loopback_[i.index] = i.loopback;
    if (!wanted(host, i))
      continue;
    bool has6 = false;
    for (const ip_address& a : i.addresses)
      has6 = has6 || !is_v4(a);
    const auto attempt = [&](bool v6, const auto& request) {
      const bool ok = v6 ? set(in6_, IPPROTO_IPV6, IPV6_JOIN_GROUP, request)
                         : set(in4_, IPPROTO_IP, IP_ADD_MEMBERSHIP, request);
      if (!ok && errno != EADDRINUSE
          && std::exchange(reported_[{i.index, v6}], true) == false)
        wrong.push_back("cannot join the group on interface "
                        + std::to_string(i.index) + (v6 ? " (IPv6): " : ": ")
                        + std::strerror(errno));
    };
    if (in4_) {
      ip_mreqn request{};
      request.imr_multiaddr = group4();
      request.imr_ifindex = static_cast<int>(i.index);
      attempt(false, request);
    }
    if (in6_ && has6 && !i.loopback) {
      ipv6_mreq request{};
      request.ipv6mr_multiaddr = group6();
      request.ipv6mr_interface = i.index;
      attempt(true, request);
    }
  }
  return wrong;
}

std::error_code
multicast::send(const beacon_way& way, std::span<const std::byte> bytes) {
  iovec data{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, control_bytes> control{};
  sockaddr_in to4{};
  sockaddr_in6 to6{};
  msghdr m{};
  m.msg_iov = &data;
  m.msg_iovlen = 1;
  m.msg_control = control.data();
  const auto add = [&](int level, int type, const auto& value) {
    m.msg_controllen = CMSG_SPACE(sizeof value);
    cmsghdr* c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = level;
    c->cmsg_type = type;
    c->cmsg_len = CMSG_LEN(sizeof value);
    std::memcpy(CMSG_DATA(c), &value, sizeof value);
  };
  if (way.v6) {
    to6.sin6_family = AF_INET6;
    to6.sin6_port = htons(discovery_port);
    to6.sin6_addr = group6();
    to6.sin6_scope_id = way.interface;
    m.msg_name = &to6;
    m.msg_namelen = sizeof to6;
    in6_pktinfo info{};
    info.ipi6_ifindex = way.interface;
    std::memcpy(&info.ipi6_addr, way.source.data(), way.source.size());
    add(IPPROTO_IPV6, IPV6_PKTINFO, info);
  } else {
    to4.sin_family = AF_INET;
    to4.sin_port = htons(discovery_port);
    to4.sin_addr = group4();
    m.msg_name = &to4;
    m.msg_namelen = sizeof to4;
    in_pktinfo info{};
    info.ipi_ifindex = static_cast<int>(way.interface);
    info.ipi_spec_dst = four_of(way.source);
    add(IPPROTO_IP, IP_PKTINFO, info);
  }
  const unique_fd& out = way.v6 ? out6_ : out4_;
  if (!out || ::sendmsg(out.get(), &m, 0) < 0)
    return {out ? errno : EAFNOSUPPORT, std::generic_category()};
  return {};
}

std::optional<multicast::datagram>
multicast::receive(int from, bool v6, std::span<std::byte> into) {
  for (;;) {
    iovec data{into.data(), into.size()};
    alignas(cmsghdr) std::array<char, control_bytes> control{};
    sockaddr_storage source{};
    msghdr m{};
    m.msg_name = &source;
    m.msg_namelen = sizeof source;
    m.msg_iov = &data;
    m.msg_iovlen = 1;
    m.msg_control = control.data();
    m.msg_controllen = control.size();
    const ssize_t n = ::recvmsg(from, &m, 0);
    if (n < 0)
      return std::nullopt;
    datagram d;
    d.bytes = static_cast<std::size_t>(n);
    bool to_group = false;
    unsigned interface = 0;
    for (cmsghdr* c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
      if (v6 && c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
        in6_pktinfo info{};
        std::memcpy(&info, CMSG_DATA(c), sizeof info);
        const in6_addr group = group6();
        to_group = std::memcmp(&info.ipi6_addr, &group, sizeof group) == 0;
        interface = info.ipi6_ifindex;
      } else if (!v6 && c->cmsg_level == IPPROTO_IP
                 && c->cmsg_type == IP_PKTINFO) {
        in_pktinfo info{};
        std::memcpy(&info, CMSG_DATA(c), sizeof info);
        to_group = info.ipi_addr.s_addr == group4().s_addr;
        interface = static_cast<unsigned>(info.ipi_ifindex);
      }
    if (!to_group)
      continue;
    const auto at = loopback_.find(interface);
    d.loopback = at != loopback_.end() && at->second;
    if (v6) {
      const auto& a = reinterpret_cast<const sockaddr_in6&>(source);
      std::memcpy(d.source.address.data(), &a.sin6_addr,
                  d.source.address.size());
      if (is_link_local(d.source.address))
        d.source.interface = interface;
    } else {
      d.source.address =
        from_v4(&reinterpret_cast<const sockaddr_in&>(source).sin_addr);
    }
    return d;
  }
}

std::optional<multicast::datagram>
multicast::receive(std::span<std::byte> into) {
  std::optional<datagram> d;
  if (in4_)
    d = receive(in4_.get(), false, into);
  if (!d && in6_)
    d = receive(in6_.get(), true, into);
  return d;
}

std::vector<int> multicast::descriptors() const {
  std::vector<int> out;
  for (const unique_fd* fd : {&in4_, &in6_})
    if (*fd)
      out.push_back(fd->get());
  return out;
}

} // namespace shoal::runtime
