// runtime/discovery/address_finder.cpp -- resolves and reads, round by round.
#include "runtime/discovery/address_finder.hpp"

#include "runtime/files/file.hpp"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

namespace shoal::runtime {

static constexpr std::chrono::seconds lookup_period_alone{2};
static constexpr std::chrono::seconds lookup_period_company{30};

std::vector<std::string> resolve_all(const std::string& address) {
  std::vector<std::string> out;
  std::string host;
  std::string port;
  if (!split_host_port(address, host, port))
    return out;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &list) != 0)
    return out;
  for (addrinfo* a = list; a && out.size() < found_addresses_max;
       a = a->ai_next) {
    char text[NI_MAXHOST] = {};
    if (::getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof text, nullptr, 0,
                      NI_NUMERICHOST)
        != 0)
      continue;
    const std::string at = a->ai_family == AF_INET6
                             ? "[" + std::string(text) + "]:" + port
                             : text + (":" + port);
    if (std::ranges::find(out, at) == out.end())
      out.push_back(at);
  }
  ::freeaddrinfo(list);
  return out;
}

class address_finder::impl {
public:
  impl(finder_config config, finder_handler& node)
    : config_(std::move(config)), node_(node) {
    thread_ = std::thread([this] { run(); });
  }

  ~impl() {
    {
      std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void set_alone(bool alone) {
    {
      std::lock_guard lock(mutex_);
      if (alone_ == alone)
        return;
      alone_ = alone;
    }
    changed_.notify_all();
  }

private:
  void run() {
    std::unique_lock lock(mutex_);
    while (!stopped_) {
      const bool was_alone = alone_;
      lock.unlock();
      round();
      lock.lock();
      changed_.wait_for(lock,
                        was_alone ? lookup_period_alone : lookup_period_company,
                        [&] { return stopped_ || (alone_ && !was_alone); });
    }
  }

  void round() {
    std::vector<std::string> names = config_.names;
    read_hosts(names);
    std::size_t count = 0;
    std::set<std::string> unknown;
    for (const std::string& name : names) {
      const std::vector<std::string> found = resolve_all(name);
      if (found.empty() && !stopping()) {
        unknown.insert(name);
        if (!unknown_.contains(name))
          node_.say("[discovery] no address is known of " + name
                    + ": check the name; it is looked up again meanwhile");
      }
      for (const std::string& address : found)
        if (!stopping() && ++count <= found_addresses_max)
          node_.listed(address);
    }
    unknown_ = std::move(unknown);
  }

  void read_hosts(std::vector<std::string>& names) {
    if (config_.hosts_file.empty())
      return;
    const auto hosts = read_hosts_file(config_.hosts_file);
    const std::string wrong = hosts ? std::string() : hosts.message();
    if (!wrong.empty() && wrong != logged_)
      node_.say("[discovery] hosts file " + wrong);
    logged_ = wrong;
    if (hosts)
      names.insert(names.end(), hosts->begin(), hosts->end());
  }

  bool stopping() {
    std::lock_guard lock(mutex_);
    return stopped_;
  }

  finder_config config_;
  finder_handler& node_;
  std::string logged_;
  std::set<std::string> unknown_; ///< names that were reported
  std::mutex mutex_;              ///< guards what follows
  std::condition_variable changed_;
  bool alone_ = true;
  bool stopped_ = false;
  std::thread thread_;
};

address_finder::address_finder(finder_config config, finder_handler& node)
  : impl_(std::make_unique<impl>(std::move(config), node)) {
}

address_finder::~address_finder() = default;

void address_finder::set_alone(bool alone) {
  impl_->set_alone(alone);
}

} // namespace shoal::runtime
