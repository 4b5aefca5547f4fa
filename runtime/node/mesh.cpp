// runtime/node/mesh.cpp -- this node's fabrics, and whom they reach.
#include "runtime/node/mesh.hpp"

#include "transport/ucx/address.hpp"
#include "transport/ucx/fabric.hpp"

#include <cstring>

namespace shoal::runtime {

using std::chrono::steady_clock;

/// Tries to reach a neighbour by UCX before TLS is good enough; each waits
/// longer than the last.
static constexpr int ucx_tries_max = 5;
static constexpr std::chrono::seconds ucx_retry{2};

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
  void connect_failed(const std::string& address, std::error_code) override {
    owner_.hooks_.connect_failed(address);
  }

private:
  mesh& owner_;
};

class mesh::ucx_handler final : public transport::fabric_handler {
public:
  explicit ucx_handler(mesh& owner) : owner_(owner) {}
  void up(const transport::peer_info& peer) override {
    owner_.ucx_changed(peer.id, true);
  }
  void down(const core::peer_id& peer, std::error_code) override {
    owner_.ucx_changed(peer, false);
  }
  void message(const core::peer_id&, std::span<const std::byte>) override {
    // Control messages go by TLS alone.
  }
  void
  connect_failed(const std::string& address, std::error_code why) override {
    owner_.ucx_failed(address, why);
  }

private:
  mesh& owner_;
};

mesh::mesh(mesh_config config, mesh_hooks hooks)
  : config_(std::move(config)), hooks_(std::move(hooks)),
    instance_(transport::tls::make_instance()),
    gate_([this](const core::peer_id& from, envelope&& e) {
      pass(from, std::move(e));
    }),
    tls_handler_(std::make_unique<tls_handler>(*this)),
    ucx_handler_(std::make_unique<ucx_handler>(*this)) {
  link_service::config links;
  links.self = self();
  links.send_credit = [this](const core::peer_id& to,
                             const link_credit& credit) {
    return send(to, envelope(credit));
  };
  links_ = make_link_service(std::move(links));
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
  c.log = [this](std::string_view line) {
    hooks_.say("[tls] " + std::string(line));
  };
  tls_ = std::make_unique<transport::tls::fabric>(std::move(c), *tls_handler_);
  links_->add_fabric(fabric_kind::tls, *tls_);
  tls_ready_ = tls_.get();
  if (config_.ucx)
    open_ucx();
}

void mesh::open_ucx() {
  transport::ucx::config c;
  c.self = self();
  c.instance = instance_;
  c.log = [this](std::string_view line) {
    hooks_.say("[ucx] " + std::string(line));
  };
  try {
    ucx_ =
      std::make_unique<transport::ucx::fabric>(std::move(c), *ucx_handler_);
    ucx_self_ = ucx_->local_address();
  } catch (const std::exception& e) {
    hooks_.say(std::string("[ucx] no shared memory between peers (") + e.what()
               + "): using TLS");
    ucx_.reset();
    return;
  }
  links_->add_fabric(fabric_kind::ucx, *ucx_);
  ucx_ready_ = ucx_.get();
}

void mesh::close() {
  links_->close();
  if (tls_)
    tls_->close();
  if (ucx_)
    ucx_->close();
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

void mesh::connect(const std::string& address) {
  if (transport::fabric* tls = tls_ready_)
    tls->connect(address);
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
  bool client = peer.role == transport::peer_role::client;
  {
    std::lock_guard lock(mutex_);
    blamed_.erase(peer.id);
    if (client)
      clients_.insert(peer.id);
    else
      members_[peer.id] = {};
  }
  if (client)
    return;
  links_->peer_up(fabric_kind::tls, peer.id);
  hooks_.up(peer.id, peer.instance);
}

void mesh::down(const core::peer_id& peer, std::error_code) {
  bool client = false;
  {
    std::lock_guard lock(mutex_);
    client = clients_.erase(peer) > 0;
    members_.erase(peer);
  }
  if (client)
    return hooks_.client_gone(peer);
  gate_.gone(peer);
  if (transport::fabric* ucx = ucx_ready_)
    ucx->drop(peer);
  links_->peer_down(fabric_kind::tls, peer);
  hooks_.down(peer);
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
    hooks_.say("[node] peer " + core::short_name(from)
               + " sends messages that are ignored here: " + error.message());
  if (error)
    return;
  if (auto* request = std::get_if<client_request>(&e)) {
    if (client)
      hooks_.asked(from, std::move(*request));
  } else if (!client) { // which may only ask
    gate_.take(from, std::move(e), bytes.size());
  }
}

void mesh::set_members(std::set<core::peer_id> members) {
  gate_.members(std::move(members));
}

void mesh::pass(const core::peer_id& from, envelope&& e) {
  if (auto* credit = std::get_if<link_credit>(&e))
    links_->credit_received(from, *credit);
  else if (auto* address = std::get_if<ucx_address>(&e))
    take(from, *address);
  else
    hooks_.received(from, std::move(e));
}

void mesh::take(const core::peer_id& from, const ucx_address& address) {
  transport::fabric* ucx = ucx_ready_;
  if (!ucx)
    return;
  std::string text(reinterpret_cast<const char*>(address.address.data()),
                   address.address.size());
  const auto parsed = transport::ucx::parse_address(text);
  const bool theirs = parsed && parsed->peer == from
                      && parsed->role == transport::peer_role::member;
  {
    std::lock_guard lock(mutex_);
    auto at = members_.find(from);
    if (at == members_.end())
      return;
    at->second.far = address.host != config_.host;
    if (at->second.far || at->second.ucx_up)
      return;
    // UCX believes the name in an address; TLS has proved the sender's.
    at->second.far = !theirs;
    at->second.ucx_address = theirs ? text : "";
  }
  if (theirs)
    return ucx->connect(text);
  hooks_.say("[node] peer " + core::short_name(from)
             + " sent a UCX address that is not its own; its tensors go by "
               "TLS");
}

void mesh::ucx_changed(const core::peer_id& peer, bool is_up) {
  {
    std::lock_guard lock(mutex_);
    auto at = members_.find(peer);
    if (at != members_.end()) {
      at->second.ucx_up = is_up;
      at->second.next_try = steady_clock::now() + ucx_retry;
    }
  }
  if (is_up)
    links_->peer_up(fabric_kind::ucx, peer);
  else
    links_->peer_down(fabric_kind::ucx, peer);
}

void mesh::ucx_failed(const std::string& address, std::error_code why) {
  std::lock_guard lock(mutex_);
  for (auto& [peer, state] : members_)
    if (state.ucx_address == address && why == transport::errc::unreachable)
      state.far = true;
}

void mesh::tick(steady_clock::time_point now) {
  links_->tick();
  if (!ucx_ready_)
    return;
  std::vector<core::peer_id> to;
  {
    std::lock_guard lock(mutex_);
    for (auto& [peer, state] : members_)
      if (!state.far && !state.ucx_up && state.tries < ucx_tries_max
          && now >= state.next_try) {
        ++state.tries;
        state.next_try = now + state.tries * ucx_retry;
        to.push_back(peer);
      }
  }
  ucx_address own{config_.host, {}};
  auto data = reinterpret_cast<const std::byte*>(ucx_self_.data());
  own.address.assign(data, data + ucx_self_.size());
  for (const core::peer_id& peer : to)
    (void)send(peer, envelope(own)); // tried again if it is lost
}

} // namespace shoal::runtime
