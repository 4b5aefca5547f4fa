// runtime/discovery/address_watcher.cpp -- a socket to the kernel, and a thread.
#include "runtime/discovery/address_watcher.hpp"

#include "runtime/core/measure/address_watch.hpp"
#include "runtime/discovery/own_addresses.hpp"
#include "runtime/files/posix.hpp"
#include "runtime/host/ip_address.hpp"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

namespace shoal::runtime {

namespace {

/// Events of interfaces that go up or down, and of addresses.
constexpr unsigned groups =
  RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;

core::nanoseconds steady_now() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

bool is_local(const std::string& address) {
  const auto ip = parse_ip(host_of(address));
  return ip && is_loopback(ip->address);
}

} // namespace

class address_watcher::impl {
public:
  impl(address_watcher_config config, address_handler& node)
    : config_(std::move(config)), node_(node), watch_(config_.told) {
    const auto host = parse_ip(host_of(config_.listener));
    if (!host || !is_any(host->address))
      return;
    kernel_ = posix::descriptor(::socket(
      AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
    stop_ = posix::descriptor(::eventfd(0, EFD_CLOEXEC));
    sockaddr_nl at{};
    at.nl_family = AF_NETLINK;
    at.nl_groups = groups;
    if (!kernel_ || !stop_
        || ::bind(kernel_.get(), reinterpret_cast<sockaddr*>(&at), sizeof at)
             != 0) {
      node_.say(std::string("[node] cannot hear of new addresses of this "
                            "machine (")
                + std::strerror(errno) + "): others keep those of the start");
      return;
    }
    thread_ = std::thread([this] { run(); });
  }

  ~impl() {
    if (!thread_.joinable())
      return;
    const std::uint64_t one = 1;
    [[maybe_unused]] auto n = ::write(stop_.get(), &one, sizeof one);
    thread_.join();
  }

private:
  void run() {
    look(); // for changes since the list was made
    std::array<pollfd, 2> wait{
      {{kernel_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
    while (wait[1].revents == 0) {
      if (wait[0].revents != 0) {
        drain();
        look();
      }
      if (auto addresses = watch_.take(steady_now()))
        node_.addresses_changed(std::move(*addresses));
      if (::poll(wait.data(), wait.size(), patience()) < 0)
        wait[0].revents = wait[1].revents = 0; // EINTR
    }
  }

  int patience() const {
    const auto due = watch_.due();
    if (!due)
      return -1;
    const auto left = (*due - steady_now()) / 1'000'000 + 1;
    return static_cast<int>(std::max<core::nanoseconds>(left, 0));
  }

  /// The contents do not matter, nor do lost messages (ENOBUFS).
  void drain() {
    std::array<char, 8192> text;
    while (::recv(kernel_.get(), text.data(), text.size(), 0) > 0
           || errno == EINTR || errno == ENOBUFS)
      ;
  }

  void look() {
    auto there = reachable_addresses(config_.listener);
    // Local addresses are what is advertised if there are no others.
    if (std::ranges::all_of(there, is_local))
      there.clear();
    watch_.observe(steady_now(), there);
  }

  address_watcher_config config_;
  address_handler& node_;
  core::address_watch watch_;
  posix::descriptor kernel_, stop_;
  std::thread thread_;
};

address_watcher::address_watcher(address_watcher_config config,
                                 address_handler& node)
  : impl_(std::make_unique<impl>(std::move(config), node)) {
}

address_watcher::~address_watcher() = default;

} // namespace shoal::runtime
