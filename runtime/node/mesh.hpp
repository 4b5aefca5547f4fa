// runtime/node/mesh.hpp -- this node's fabrics, and the peers that they reach.
//
// TLS carries all control messages, and tensors where nothing better works.
// Peers also send each other, over TLS, their addresses for other fabrics
// (data_paths.hpp); where those fail the links go on over TLS.
//
// Threads: every member from any thread; the handler is called on progress
//          threads and must not wait. open() once; the first call may come
//          before it returns. close() once, not from the handler.
// Ownership: the handler outlives the mesh.
// Errors:  open() throws what tls::fabric throws.
#pragma once

#include "runtime/links/data_paths.hpp"
#include "runtime/links/link_prober.hpp"
#include "runtime/links/link_service.hpp"
#include "runtime/node/gate.hpp"
#include "runtime/node/node_wiring.hpp"
#include "runtime/wire/codec.hpp"
#include "runtime/work/life_sign.hpp"
#include "transport/line_budget.hpp"
#include "transport/tls/fabric.hpp"

#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <vector>

namespace shoal::runtime {

struct mesh_config {
  std::string listen;
  std::string listen_else; ///< used if that port is taken; empty: then open()
                           ///< throws
  transport::tls::private_key identity{};
  transport::tls::shared_key cluster_key{};
  std::string host; ///< boot id: decides whether shared memory reaches a peer
  fabric_choice fabrics;
  std::chrono::milliseconds hello_timeout = data_paths::patience;
};

/// Events of a mesh. Called on progress threads; must not wait.
class mesh_handler {
public:
  virtual ~mesh_handler() = default;
  virtual void up(const core::peer_id& peer, std::uint64_t instance) = 0;
  virtual void down(const core::peer_id& peer) = 0;
  virtual void
  connect_failed(const std::string& address, std::error_code why) = 0;
  /// `peer` answers at an address that was dialled.
  virtual void
  reached(const std::string& address, const core::peer_id& peer) = 0;
  /// An address refuses this node, for good or until something changes.
  virtual void
  refused(transport::tls::refusal why, const std::string& address) = 0;

  // Messages of a peer. The mesh itself handles credits, addresses and probes.
  virtual void take(const core::peer_id& from, core::cluster::message&& m) = 0;
  virtual void take(const core::peer_id& from, core::job_message&& m) = 0;
  virtual void take(const core::peer_id& from, core::serve_message&& m) = 0;
  virtual void take(const core::peer_id& from, blob_request&& m) = 0;
  virtual void take(const core::peer_id& from, blob_chunk&& m) = 0;
  virtual void take(const core::peer_id& from, role_message&& m) = 0;
  virtual void take(const core::peer_id& from, client_reply&& m) = 0;
  /// From a client, or from a peer that hands on a request of its client.
  virtual void take(const core::peer_id& from, client_request&& m) = 0;
  virtual void client_gone(const core::peer_id& client) = 0;

  virtual void say(const std::string& line) = 0;
};

class mesh final : public node_network {
public:
  mesh(mesh_config config, mesh_handler& handler);
  ~mesh() override;

  void open();
  void close();

  std::error_code send(const core::peer_id& to, const envelope& message);
  std::error_code
  send(const core::peer_id& to, std::span<const std::byte> encoded) override;
  /// Like send(), but a member that is not connected yet gets the message as
  /// soon as it is: a view may contain a peer before every other one has met
  /// it.
  void send_when_up(const core::peer_id& to, const envelope& message) override;
  /// Limit per peer; beyond it the oldest are dropped. All are dropped when a
  /// view comes without the peer.
  static constexpr std::size_t late_messages_max = 16;
  void connect(const std::string& address) override;
  /// Closes all connections with a peer; all that is posted or queued for it
  /// ends.
  void drop(const core::peer_id& peer) override;
  void tick(std::chrono::steady_clock::time_point now);
  /// Lets the fabrics' threads show that they run; call it once a second.
  void look_for_life(const std::shared_ptr<life_sign>& tls,
                     const std::shared_ptr<life_sign>& others);
  /// Sets the members of the newest view: credits, requests for blobs and
  /// messages to roles count only from them.
  void set_members(std::set<core::peer_id> members) override;
  void name_plan(std::uint64_t plan, core::job_id job) override {
    links_->name_plan(plan, job);
  }

  /// Sets the keys and identities that TLS admits. `others_go`: peers that are
  /// not among `keys.known` are dropped at once, clients soon.
  void set_keys(transport::tls::keyring keys, bool others_go);

  core::peer_id self() const;
  std::uint64_t instance() const noexcept { return instance_; }
  std::string address() const; ///< to which the TLS fabric is bound
  link_service& links() override { return *links_; }
  std::vector<core::peer_id> peers() const; ///< members that are up
  bool is_up(std::uint64_t id_prefix) const;

  struct pair_status {
    core::peer_id peer{};
    pair_choice choice;
  };
  std::vector<pair_status> pairs() const; ///< one for each of peers()

  /// Logs a fault of a peer, within the budget of such lines.
  void complain(const std::string& line) override;

private:
  class tls_handler;
  class inbox;
  class link_messages;
  void up(const transport::peer_info& peer);
  void down(const core::peer_id& peer, std::error_code why);
  void message(const core::peer_id& from, std::span<const std::byte> bytes);
  void ask(const core::peer_id& from, client_request&& request);
  void send_late(const core::peer_id& to);
  void probe(std::chrono::steady_clock::time_point now);
  void drop_old_clients(std::chrono::steady_clock::time_point now);

  mesh_config config_;
  mesh_handler& handler_;
  std::uint64_t instance_;
  std::unique_ptr<link_messages> link_messages_; ///< of links_, paths_, prober_
  std::unique_ptr<link_service> links_;
  std::unique_ptr<inbox> inbox_;
  gate gate_; ///< to the inbox
  std::unique_ptr<tls_handler> tls_handler_;
  std::unique_ptr<data_paths> paths_;
  std::unique_ptr<link_prober> prober_;
  std::unique_ptr<transport::tls::fabric> tls_;
  std::atomic<transport::tls::fabric*> tls_ready_{nullptr}; ///< set by open()
  std::chrono::steady_clock::time_point next_probe_{};      ///< tick() only
  mutable std::mutex mutex_; ///< guards what follows
  /// Members that are up, with the time since when.
  std::map<core::peer_id, std::chrono::steady_clock::time_point> members_;
  std::map<core::peer_id, transport::peer_role> clients_;
  std::vector<core::peer_id> old_clients_; ///< those that proved a replaced key
  std::chrono::steady_clock::time_point old_clients_go_{};
  std::set<core::peer_id> blamed_; ///< peers, now up, that sent invalid
                                   ///< messages
  transport::line_budget complaints_;
  /// Encoded messages for members that are not connected yet.
  std::map<core::peer_id, std::deque<std::vector<std::byte>>> late_;
};

} // namespace shoal::runtime
