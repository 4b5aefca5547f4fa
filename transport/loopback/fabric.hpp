// transport/loopback/fabric.hpp -- the fabric between nodes of one process.
//
// Fabrics that share a network reach each other by name. A network either has
// a thread that delivers at once, or it is simulated: no thread, and a clock of
// its own. Delay, loss, reordering, partition and death are then drawn from a
// seed, so that one seed always gives one history.
//
// Threads:   threaded: as transport/fabric.hpp, with one progress thread for
//            the whole network. Simulated: everything on the thread that calls
//            run_until() or step(), and no other.
// Ownership: a fabric keeps its network alive; handlers outlive their fabric.
// Errors:    the fabric's constructor throws std::invalid_argument when a live
//            fabric of the network has the same name or id.
#pragma once

#include "transport/fabric.hpp"
#include "transport/limits.hpp"

#include <chrono>
#include <functional>

namespace shoal::transport::loopback {

/// The faults of a simulated network. May be changed at any time.
struct faults {
  std::chrono::nanoseconds delay_min{0}; ///< one way
  std::chrono::nanoseconds delay_max{0}; ///< uniform in [delay_min, delay_max]
  double loss = 0;      ///< share of control messages that vanish
  bool reorder = false; ///< messages of one pair may overtake each other
  double corrupt = 0;   ///< share of bulk transfers whose checksum disagrees
  /// The time from a kill until its peers see down; negative: never, as when
  /// the power of a host fails.
  std::chrono::nanoseconds death_notice{0};
};

/// The network that joins fabrics. Copies are the same network.
class network {
public:
  /// Threaded: delivers at once, without faults.
  network();

  /// Simulated: delivers only within run_until() and step().
  explicit network(std::uint64_t seed, faults f = {});

  faults& settings();                   ///< @pre simulated
  std::chrono::nanoseconds now() const; ///< simulated time; 0 when threaded

  /// Runs all events up to and including `time` and sets now() to it.
  void run_until(std::chrono::nanoseconds time); ///< @pre simulated

  /// Runs the next event. @returns false when there is none.
  bool step(); ///< @pre simulated

  /// Runs `action` at now() + `after`, in order with the deliveries.
  void schedule(std::chrono::nanoseconds after, std::function<void()> action);

  /// Cuts or heals the path from one name to another, in one direction. While
  /// it is cut, control messages vanish, bulk waits, and connect() fails.
  void cut(const std::string& from, const std::string& to);
  void heal(const std::string& from, const std::string& to);
  void heal_all();

  /// The process behind `name` dies: its handler is never called again, its
  /// sent data stays in flight, and its peers see down after
  /// faults::death_notice. Its completions run, with canceled, when its fabric
  /// is destroyed.
  void kill(const std::string& name);

  struct state;

private:
  friend class fabric;
  std::shared_ptr<state> state_;
};

/// The identity of a node in the network.
struct config {
  std::string name; ///< the address that others pass to connect()
  peer_id id{};
  peer_role role = peer_role::member;
  std::uint64_t instance = 1; ///< another one after a restart
  std::uint64_t capabilities = 0;
  limits queue{};
};

class fabric final : public transport::fabric {
public:
  fabric(const network& net, config settings, fabric_handler& handler);
  ~fabric() override;

  std::string_view name() const noexcept override { return "loopback"; }
  std::size_t message_bytes_max() const noexcept override;
  std::string local_address() const override;
  void connect(const std::string& address) override;
  [[nodiscard]] std::error_code
  send(const peer_id& to, std::span<const std::byte> message) override;
  [[nodiscard]] std::error_code
  post_receive(const peer_id& from, bulk_tag tag, std::span<std::byte> into,
               completion done) override;
  [[nodiscard]] std::error_code
  send_bulk(const peer_id& to, bulk_tag tag, std::span<const std::byte> bytes,
            completion done) override;
  void cancel(std::uint64_t plan) override;
  void drop(const peer_id& peer) override;
  traffic traffic_with(const peer_id& peer) const override;
  void close() override;

private:
  struct node;
  friend struct network::state;
  std::shared_ptr<network::state> net_;
  std::shared_ptr<node> self_;
};

} // namespace shoal::transport::loopback
