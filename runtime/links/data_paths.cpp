// runtime/links/data_paths.cpp -- opens fabrics, offers them, connects over
// them.
#include "runtime/links/data_paths.hpp"

#include "runtime/core/setup_error.hpp"
#include "transport/introduced/address.hpp"
#include "transport/shm/arena.hpp"
#include "transport/shm/fabric.hpp"
#include "transport/ucx/devices.hpp"
#include "transport/ucx/fabric.hpp"

#include <algorithm>

namespace shoal::runtime {

namespace ucx = transport::ucx;
using std::chrono::steady_clock;
using transport::introduced::medium;

namespace {

/// Limit of the offers to a peer before the node settles for TLS; each waits
/// longer than the one before. From the second on the next best fabric is tried
/// as well.
constexpr int tries_max = 5;
constexpr int tries_before_next = 2;
constexpr std::chrono::seconds retry{2};
/// Each end begins when the other's offer comes. So patience is longer than
/// from any offer to the next, and longer than a node that asks to be admitted
/// has to wait, whose offers are not heard until then.
static_assert(data_paths::patience > tries_max * retry);

std::vector<ucx::network> parsed(const std::vector<std::string>& texts) {
  std::vector<ucx::network> out;
  for (const auto& text : texts) {
    const auto n = ucx::parse_network(text);
    if (!n)
      throw usage_error("fabric.trusted_networks: '" + text
                        + "' is no network such as 10.1.0.0/16 or fd00::/8");
    out.push_back(*n);
  }
  return out;
}

std::string joined(const std::vector<std::string>& list) {
  std::string out;
  for (const auto& item : list)
    out += (out.empty() ? "" : ",") + item;
  return out;
}

} // namespace

void check(const fabric_choice& c) {
  bool known = false;
  for (const char* name : {"auto", "tls", "shm", "rdma", "ucx-tcp"})
    known = known || c.force == name;
  if (!known)
    throw usage_error("fabric.force is '" + c.force
                      + "'; expected auto, tls, shm, rdma or ucx-tcp");
  for (const auto& name : c.exclude)
    if (name != "shm" && name != "rdma" && name != "ucx-tcp")
      throw usage_error("fabric.exclude has '" + name
                        + "'; expected shm, rdma or ucx-tcp");
  if ((c.force == "rdma" || c.force == "ucx-tcp") && c.trusted.empty())
    throw usage_error(
      "fabric.force = " + c.force
      + " needs fabric.trusted_networks, such as 10.1.0.0/16: "
        "every machine in such a network can read and write this "
        "process's memory");
  (void)parsed(c.trusted);
}

struct data_paths::path {
  fabric_kind kind = fabric_kind::shm;
  medium over = medium::shared_memory;
  std::size_t index = 0;
  std::unique_ptr<data_paths::events> events;
  std::unique_ptr<transport::fabric> fabric;
  std::atomic<transport::fabric*> ready{nullptr}; ///< set by open()
  std::string self;                               ///< address; set before ready
  std::string why;                                ///< reason if it is not open
};

class data_paths::events final : public transport::fabric_handler {
public:
  events(data_paths& owner, path& p) : owner_(owner), path_(p) {}
  void up(const transport::peer_info& peer) override {
    owner_.changed(path_, peer.id, true, {});
  }
  void down(const core::peer_id& peer, std::error_code why) override {
    owner_.changed(path_, peer, false, why.message());
  }
  void message(const core::peer_id&, std::span<const std::byte>) override {
    // Control messages go only over TLS.
  }
  void
  connect_failed(const std::string& address, std::error_code why) override {
    owner_.failed(path_, address, why);
  }

private:
  data_paths& owner_;
  path& path_;
};

data_paths::data_paths(config c, data_path_handler& handler)
  : config_(std::move(c)), handler_(handler) {
  constexpr std::pair<fabric_kind, medium> kinds[count] = {
    {fabric_kind::shm, medium::shared_memory},
    {fabric_kind::rdma, medium::rdma},
    {fabric_kind::ucx_tcp, medium::tcp}};
  for (std::size_t i = 0; i < count; ++i) {
    paths_[i] = std::make_unique<path>();
    paths_[i]->kind = kinds[i].first;
    paths_[i]->over = kinds[i].second;
    paths_[i]->index = i;
    paths_[i]->events = std::make_unique<events>(*this, *paths_[i]);
  }
}

data_paths::~data_paths() {
  close();
}

void data_paths::open() {
  for (const auto& p : paths_)
    open(*p);
}

/// Why a fabric must not be opened by configuration; empty if it may be.
static std::string turned_off(const fabric_choice& may, fabric_kind kind) {
  if (may.force != "auto" && may.force != name_of(kind))
    return "turned off: fabric.force = " + may.force;
  if (std::count(may.exclude.begin(), may.exclude.end(), name_of(kind)) != 0)
    return "turned off: fabric.exclude";
  if (kind == fabric_kind::shm && !may.shared_memory)
    return "turned off: --no-shared-memory";
  return "";
}

std::shared_ptr<transport::shm::arena>
make_tensor_memory(const fabric_choice& may,
                   const std::function<void(const std::string&)>& say) {
  if (!turned_off(may, fabric_kind::shm).empty())
    return nullptr;
  try {
    return std::make_shared<transport::shm::arena>();
  } catch (const std::exception& e) {
    say(std::string("[node] tensors are not in memory that peers of this "
                    "machine can read (")
        + e.what() + "): they are copied twice");
    return nullptr;
  }
}

/// Why `p` must not be opened; empty if it may be.
std::string data_paths::reason_to_close(const path& p) const {
  const fabric_choice& may = config_.may;
  if (auto why = turned_off(may, p.kind); !why.empty())
    return why;
  if (p.kind == fabric_kind::shm)
    return "";
  if (may.trusted.empty())
    return "fabric.trusted_networks is empty";
  // Only if requested: a fault of UCX may end the process
  // (transport/README.md).
  return p.kind == fabric_kind::ucx_tcp && !may.ucx_tcp && may.force == "auto"
           ? "not asked for: fabric.ucx_tcp"
           : "";
}

/// Makes the fabric of `p`. @throws the reason why it cannot be made
std::unique_ptr<transport::fabric> data_paths::make(path& p) {
  ucx::config c;
  c.self = config_.self;
  c.instance = config_.instance;
  c.log = [this](std::string_view line) { handler_.say(std::string(line)); };
  c.hello_timeout = config_.hello_timeout;
  if (p.over == medium::shared_memory)
    return std::make_unique<transport::shm::fabric>(c, *p.events,
                                                    config_.memory);
  const auto networks = parsed(config_.may.trusted);
  c.over = p.over;
  c.trusted = networks;
  c.devices = joined(p.over == medium::rdma ? ucx::rdma_devices(networks)
                                            : ucx::tcp_devices(networks));
  if (c.devices.empty())
    throw setup_error(std::string(p.over == medium::rdma
                                    ? "no active RDMA port"
                                    : "no network interface")
                      + " has an address in fabric.trusted_networks");
  return std::make_unique<ucx::fabric>(std::move(c), *p.events);
}

void data_paths::open(path& p) {
  std::string why = reason_to_close(p);
  if (why.empty())
    try {
      p.fabric = make(p);
      p.self = p.fabric->local_address();
    } catch (const std::exception& e) {
      why = e.what();
      p.fabric.reset();
      handler_.say(std::string("[node] no ") + name_of(p.kind) + " ("
                   + why.substr(0, why.find('\n')) + "): using the next best");
    }
  {
    std::lock_guard lock(mutex_);
    p.why = why.substr(0, why.find('\n'));
  }
  if (!p.fabric)
    return;
  config_.links->add_fabric(p.kind, *p.fabric);
  p.ready = p.fabric.get();
}

void data_paths::close() {
  for (const auto& p : paths_)
    if (p->fabric)
      p->fabric->close();
}

void data_paths::peer_up(const core::peer_id& peer) {
  std::lock_guard lock(mutex_);
  peers_[peer] = {};
}

void data_paths::peer_down(const core::peer_id& peer) {
  {
    std::lock_guard lock(mutex_);
    peers_.erase(peer);
  }
  for (const auto& p : paths_)
    if (transport::fabric* f = p->ready)
      f->drop(peer);
}

void data_paths::take(const core::peer_id& from,
                      const paired_address& address) {
  std::string text(reinterpret_cast<const char*>(address.address.data()),
                   address.address.size());
  const auto parsed = transport::introduced::parse_address(text);
  // A fabric trusts the id in an address; TLS has proved the sender's.
  if (!parsed || parsed->peer != from
      || parsed->role != transport::peer_role::member) {
    handler_.complain("[node] peer " + core::short_name(from)
                      + " sent an address that is not its own; its tensors go "
                        "by TLS");
    return give_up(from);
  }
  for (const auto& p : paths_) {
    transport::fabric* f = p->ready;
    if (!f || p->over != parsed->over)
      continue;
    {
      std::lock_guard lock(mutex_);
      const auto at = peers_.find(from);
      if (at == peers_.end())
        return;
      route& r = at->second[p->index];
      if (p->over == medium::shared_memory && address.host != config_.host) {
        r.hopeless = true;
        r.why = "on another machine";
      }
      if (r.hopeless || r.up)
        return;
      r.address = text;
      r.why = "connecting";
    }
    f->connect(text);
  }
}

/// Stops sending addresses to `peer`.
void data_paths::give_up(const core::peer_id& peer) {
  std::lock_guard lock(mutex_);
  const auto at = peers_.find(peer);
  if (at == peers_.end())
    return;
  for (route& r : at->second) {
    r.hopeless = true;
    r.why = "it sent an address that is not its own";
  }
}

void data_paths::changed(path& p, const core::peer_id& peer, bool up,
                         const std::string& why) {
  {
    std::lock_guard lock(mutex_);
    const auto at = peers_.find(peer);
    if (at != peers_.end()) {
      route& r = at->second[p.index];
      r.up = up;
      r.why = why;
      r.next_try = steady_clock::now() + retry;
    }
  }
  if (up)
    config_.links->peer_up(p.kind, peer);
  else
    config_.links->peer_down(p.kind, peer);
}

void data_paths::failed(path& p, const std::string& address,
                        std::error_code why) {
  std::lock_guard lock(mutex_);
  for (auto& [peer, routes] : peers_) {
    route& r = routes[p.index];
    if (r.address != address || r.up)
      continue;
    // For UCX-TCP the peer may just not have learned of us in time. The same
    // holds for a peer that did not answer (no_answer), which tick() tries
    // again.
    r.hopeless =
      why == transport::errc::unreachable && p.kind != fabric_kind::ucx_tcp;
    r.why = r.hopeless && p.kind == fabric_kind::shm
              ? "another user or pid namespace"
              : why.message();
  }
}

/// Whether a fabric better than `index` is up, or may soon be.
bool data_paths::better_may_come(const routes& r, std::size_t index) const {
  for (std::size_t i = 0; i < index; ++i)
    if (r[i].up
        || (paths_[i]->ready && !r[i].hopeless
            && r[i].tries < tries_before_next))
      return true;
  return false;
}

void data_paths::tick(steady_clock::time_point now) {
  struct offer {
    core::peer_id to;
    const path* over;
    std::string known; ///< the peer's address, if it has sent one
  };
  std::vector<offer> offers;
  {
    std::lock_guard lock(mutex_);
    for (auto& [peer, routes] : peers_)
      for (const auto& p : paths_) {
        route& r = routes[p->index];
        if (!p->ready || r.hopeless || r.up || r.tries >= tries_max
            || now < r.next_try || better_may_come(routes, p->index))
          continue;
        ++r.tries;
        r.next_try = now + r.tries * retry;
        offers.push_back({peer, p.get(), r.address});
      }
  }
  for (const auto& [peer, p, known] : offers) {
    paired_address own{config_.host, {}};
    const auto data = reinterpret_cast<const std::byte*>(p->self.data());
    own.address.assign(data, data + p->self.size());
    (void)handler_.send_address(peer, own); // repeated if it is lost
    if (transport::fabric* f = p->ready; f && !known.empty())
      f->connect(known); // no effect while a connection is in progress
  }
}

pair_choice data_paths::choice(const core::peer_id& peer) const {
  pair_choice out;
  std::lock_guard lock(mutex_);
  const auto at = peers_.find(peer);
  if (at == peers_.end())
    return out;
  for (const auto& p : paths_) {
    const route& r = at->second[p->index];
    if (r.up) {
      out.used = p->kind;
      return out;
    }
    const std::string why = !p->why.empty()  ? p->why
                            : !r.why.empty() ? r.why
                                             : "the peer does not offer it";
    out.instead_of.push_back({name_of(p->kind), why});
  }
  return out;
}

} // namespace shoal::runtime
