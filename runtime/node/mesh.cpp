// runtime/node/mesh.cpp -- this node's fabrics, and the peers that they reach.
#include "runtime/node/mesh.hpp"

#include "transport/shm/arena.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

namespace shoal::runtime {

using std::chrono::steady_clock;

/// Probing starts after probe_after, when the better fabrics have had time to
/// come up, and then looks for unmeasured links at each probe_interval.
static constexpr std::chrono::seconds probe_after{3};
static constexpr std::chrono::milliseconds probe_interval{500};
/// Members send something four times a second, others once.
static constexpr std::chrono::milliseconds alive_window{1500};
/// Time after which a client that proved a replaced key is dropped: the client
/// that asked for the revocation gets its answer first.
static constexpr std::chrono::milliseconds client_grace{300};

/// Threads that are silent for longer give no sign of life. Others may ask, too:
/// one of them may have asked just before.
static constexpr std::chrono::milliseconds links_silent_max{500};

/// Random, but higher for a process that starts later, as far as clocks agree:
/// of two processes with one identity that meet, the later one counts as the
/// second.
static std::uint64_t later_instance() {
  constexpr int random_bits = 22;
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(
    std::chrono::system_clock::now().time_since_epoch());
  return static_cast<std::uint64_t>(ms.count()) << random_bits
         | transport::tls::make_instance() >> (64 - random_bits);
}

class mesh::tls_handler final : public transport::fabric_handler {
public:
  explicit tls_handler(mesh& owner) : owner_(owner) {}
  void up(const transport::peer_info& peer) override { owner_.up(peer); }
  void down(const core::peer_id& peer, std::error_code why) override {
    owner_.down(peer, why);
  }
  void message(const core::peer_id& peer,
               std::span<const std::byte> bytes) override {
    owner_.message(peer, bytes);
  }
  void
  connect_failed(const std::string& address, std::error_code why) override {
    owner_.handler_.connect_failed(address, why);
  }
  void reached(const std::string& address, const core::peer_id& peer) override {
    owner_.handler_.reached(address, peer);
  }

private:
  mesh& owner_;
};

/// Distributes messages: those about links go to the links, the rest to the
/// node.
class mesh::inbox final : public message_handler {
public:
  explicit inbox(mesh& owner) : owner_(owner), node_(owner.handler_) {}
  void take(const peer& from, link_credit&& m) override {
    owner_.links_->credit_received(from, m);
  }
  void take(const peer& from, paired_address&& m) override {
    owner_.paths_->take(from, m);
  }
  void take(const peer& from, link_probe&& m) override {
    owner_.prober_->asked(from, m, steady_clock::now());
  }
  void take(const peer& from, client_request&& m) override {
    owner_.ask(from, std::move(m));
  }
  void take(const peer& from, core::cluster::message&& m) override {
    node_.take(from, std::move(m));
  }
  void take(const peer& from, core::job_message&& m) override {
    node_.take(from, std::move(m));
  }
  void take(const peer& from, core::serve_message&& m) override {
    node_.take(from, std::move(m));
  }
  void take(const peer& from, blob_request&& m) override {
    node_.take(from, std::move(m));
  }
  void take(const peer& from, blob_chunk&& m) override {
    node_.take(from, std::move(m));
  }
  void take(const peer& from, role_message&& m) override {
    node_.take(from, std::move(m));
  }
  void take(const peer& from, client_reply&& m) override {
    node_.take(from, std::move(m));
  }

private:
  mesh& owner_;
  mesh_handler& node_;
};

/// What links send over TLS, and say.
class mesh::link_messages final : public credit_sender,
                                  public data_path_handler,
                                  public probe_sender {
public:
  explicit link_messages(mesh& owner) : owner_(owner) {}
  std::error_code
  send_credit(const core::peer_id& to, const link_credit& credit) override {
    return owner_.send(to, envelope(credit));
  }
  std::error_code send_address(const core::peer_id& to,
                               const paired_address& address) override {
    return owner_.send(to, envelope(address));
  }
  std::error_code
  send_probe(const core::peer_id& to, const link_probe& probe) override {
    return owner_.send(to, envelope(probe));
  }
  void say(const std::string& line) override { owner_.handler_.say(line); }
  void complain(const std::string& line) override { owner_.complain(line); }

private:
  mesh& owner_;
};

mesh::mesh(mesh_config config, mesh_handler& handler)
  : config_(std::move(config)), handler_(handler), instance_(later_instance()),
    link_messages_(std::make_unique<link_messages>(*this)),
    inbox_(std::make_unique<inbox>(*this)), gate_(*inbox_),
    tls_handler_(std::make_unique<tls_handler>(*this)) {
  link_service::config links;
  links.self = self();
  const auto memory = make_tensor_memory(
    config_.fabrics, [this](const std::string& line) { handler_.say(line); });
  links.memory = memory;
  links_ = make_link_service(std::move(links), *link_messages_);
  data_paths::config paths;
  paths.self = self();
  paths.instance = instance_;
  paths.host = config_.host;
  paths.may = config_.fabrics;
  paths.hello_timeout = config_.hello_timeout;
  paths.links = links_.get();
  paths.memory = memory;
  paths_ = std::make_unique<data_paths>(std::move(paths), *link_messages_);
  prober_ = std::make_unique<link_prober>(self(), *links_, *link_messages_);
}

mesh::~mesh() {
  close();
}

core::peer_id mesh::self() const {
  return transport::tls::id_of_private(config_.identity);
}

void mesh::open() {
  transport::tls::config c;
  c.listen = config_.listen;
  c.identity = config_.identity;
  c.cluster_key = config_.cluster_key;
  c.instance = instance_;
  c.planner = core::planner_version;
  c.alive_window = alive_window;
  c.refused = [this](transport::tls::refusal why, const std::string& address) {
    handler_.refused(why, address);
  };
  c.log = [this](std::string_view line) {
    handler_.say("[network] " + std::string(line));
  };
  try {
    tls_ = std::make_unique<transport::tls::fabric>(c, *tls_handler_);
  } catch (const std::system_error& e) {
    if (config_.listen_else.empty() || e.code() != std::errc::address_in_use)
      throw;
    c.listen = config_.listen_else;
    tls_ = std::make_unique<transport::tls::fabric>(c, *tls_handler_);
    handler_.say("[node] " + config_.listen
                 + " is taken, by another node of this machine perhaps: "
                   "listening at "
                 + tls_->local_address());
  }
  links_->add_fabric(fabric_kind::tls, *tls_);
  tls_ready_ = tls_.get();
  paths_->open();
}

void mesh::close() {
  links_->close();
  if (tls_)
    tls_->close();
  paths_->close();
}

std::error_code mesh::send(const core::peer_id& to, const envelope& message) {
  return send(to, codec::encode(message));
}

std::error_code
mesh::send(const core::peer_id& to, std::span<const std::byte> encoded) {
  transport::fabric* tls = tls_ready_;
  return tls ? tls->send(to, encoded)
             : make_error_code(transport::errc::peer_lost);
}

void mesh::send_when_up(const core::peer_id& to, const envelope& message) {
  std::vector<std::byte> encoded = codec::encode(message);
  if (send(to, encoded) != transport::errc::peer_lost)
    return;
  bool up = false;
  {
    std::lock_guard lock(mutex_);
    auto& late = late_[to];
    late.push_back(std::move(encoded));
    if (late.size() > late_messages_max)
      late.pop_front();
    up = members_.contains(to);
  }
  if (up) // it came up meanwhile
    send_late(to);
}

void mesh::send_late(const core::peer_id& to) {
  std::deque<std::vector<std::byte>> late;
  {
    std::lock_guard lock(mutex_);
    if (const auto at = late_.find(to); at != late_.end()) {
      late = std::move(at->second);
      late_.erase(at);
    }
  }
  for (const auto& encoded : late)
    (void)send(to, encoded);
}

void mesh::connect(const std::string& address) {
  if (transport::fabric* tls = tls_ready_)
    tls->connect(address);
}

/// The other fabrics follow TLS: down().
void mesh::drop(const core::peer_id& peer) {
  if (transport::fabric* tls = tls_ready_)
    tls->drop(peer);
}

std::string mesh::address() const {
  return tls_->local_address();
}

std::vector<core::peer_id> mesh::peers() const {
  std::lock_guard lock(mutex_);
  std::vector<core::peer_id> out;
  for (const auto& [peer, state] : members_)
    out.push_back(peer);
  return out;
}

bool mesh::is_up(std::uint64_t id_prefix) const {
  core::peer_id low{};
  std::memcpy(low.data(), &id_prefix, sizeof id_prefix);
  std::lock_guard lock(mutex_);
  auto at = members_.lower_bound(low);
  return at != members_.end()
         && std::memcmp(at->first.data(), low.data(), sizeof id_prefix) == 0;
}

void mesh::up(const transport::peer_info& peer) {
  bool client = peer.role != transport::peer_role::member;
  {
    std::lock_guard lock(mutex_);
    blamed_.erase(peer.id);
    if (client)
      clients_[peer.id] = peer.role;
    else
      members_[peer.id] = steady_clock::now();
  }
  if (client)
    return;
  paths_->peer_up(peer.id);
  links_->peer_up(fabric_kind::tls, peer.id);
  send_late(peer.id);
  handler_.up(peer.id, peer.instance);
}

void mesh::down(const core::peer_id& peer, std::error_code) {
  bool client = false;
  {
    std::lock_guard lock(mutex_);
    client = clients_.erase(peer) > 0;
    members_.erase(peer);
    blamed_.erase(peer);
  }
  if (client)
    return handler_.client_gone(peer);
  gate_.gone(peer);
  paths_->peer_down(peer);
  prober_->gone(peer);
  links_->peer_down(fabric_kind::tls, peer);
  handler_.down(peer);
}

void mesh::complain(const std::string& line) {
  std::optional<std::string> text;
  {
    std::lock_guard lock(mutex_);
    text = complaints_.pass(
      line, std::chrono::steady_clock::now().time_since_epoch());
  }
  if (text)
    handler_.say(*text);
}

void mesh::message(const core::peer_id& from,
                   std::span<const std::byte> bytes) {
  envelope e;
  std::error_code error = codec::decode(bytes, e);
  bool client = false;
  bool first = false;
  {
    std::lock_guard lock(mutex_);
    client = clients_.contains(from);
    first = error && blamed_.insert(from).second;
  }
  if (first)
    complain("[node] peer " + core::short_name(from)
             + " sends messages that are ignored here: " + error.message());
  if (error)
    return;
  if (client && senders_of(e) != senders::clients)
    return; // a client may only ask
  gate_.take(from, std::move(e), bytes.size());
}

void mesh::ask(const core::peer_id& from, client_request&& request) {
  std::optional<transport::peer_role> client;
  {
    std::lock_guard lock(mutex_);
    if (const auto at = clients_.find(from); at != clients_.end())
      client = at->second;
  }
  auto* use = std::get_if<use_invite>(&request.body);
  if (use)
    use->who = from;
  const bool invitee = client == transport::peer_role::invitee;
  // An invitee may send one kind of request, which no other client may send.
  if (client ? (use != nullptr) == invitee
             : is_handed_on(request) && request.peer.empty())
    handler_.take(from, std::move(request));
}

void mesh::set_members(std::set<core::peer_id> members) {
  {
    std::lock_guard lock(mutex_);
    std::erase_if(late_,
                  [&](const auto& of) { return !members.contains(of.first); });
  }
  gate_.members(std::move(members));
}

void mesh::set_keys(transport::tls::keyring keys, bool others_go) {
  transport::tls::fabric* tls = tls_ready_;
  if (!tls)
    return;
  const auto known = keys.known;
  tls->set_keys(std::move(keys));
  if (!others_go)
    return;
  std::vector<core::peer_id> others;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [peer, state] : members_)
      others.push_back(peer);
    old_clients_.clear();
    for (const auto& [peer, role] : clients_)
      old_clients_.push_back(peer);
    old_clients_go_ = steady_clock::now() + client_grace;
  }
  for (const core::peer_id& peer : others)
    if (!std::ranges::binary_search(known, peer))
      tls->drop(peer);
}

void mesh::drop_old_clients(steady_clock::time_point now) {
  std::vector<core::peer_id> old;
  {
    std::lock_guard lock(mutex_);
    if (now >= old_clients_go_)
      old.swap(old_clients_);
  }
  for (const core::peer_id& client : old)
    tls_->drop(client);
}

void mesh::tick(steady_clock::time_point now) {
  links_->tick();
  paths_->tick(now);
  drop_old_clients(now);
  if (now < next_probe_)
    return;
  next_probe_ = now + probe_interval;
  probe(now);
}

void mesh::look_for_life(const std::shared_ptr<life_sign>& tls,
                         const std::shared_ptr<life_sign>& others) {
  if (links_->silent_for() < links_silent_max)
    others->give();
  transport::tls::fabric* fabric = tls_ready_;
  if (!fabric)
    tls->give();
  else if (auto answer = runtime::ask(tls))
    fabric->run_soon([answer = std::move(answer)] {});
}

/// Measures the fabric of a pair that has been up for a while, for the values
/// that no traffic has shown.
void mesh::probe(steady_clock::time_point now) {
  std::vector<link_prober::pair> unknown;
  const auto stats = links_->stats();
  {
    std::lock_guard lock(mutex_);
    for (const auto& [peer, since] : members_)
      if (now - since >= probe_after)
        unknown.push_back({peer, true, true});
  }
  for (auto& u : unknown) {
    const std::string used = name_of(paths_->choice(u.peer).used);
    for (const auto& s : stats)
      if (s.peer == u.peer && s.fabric == used) {
        u.latency = s.latency_ns == 0;
        u.bandwidth = s.bytes_per_s == 0;
      }
  }
  prober_->tick(now, unknown);
}

std::vector<mesh::pair_status> mesh::pairs() const {
  std::vector<pair_status> out;
  for (const core::peer_id& peer : peers())
    out.push_back({peer, paths_->choice(peer)});
  return out;
}

} // namespace shoal::runtime
