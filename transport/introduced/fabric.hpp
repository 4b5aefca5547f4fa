// transport/introduced/fabric.hpp -- the base of fabrics whose nodes are
// introduced.
//
// Two nodes exchange local_address() over an authenticated channel, and then
// BOTH call connect(). A node is ignored if it was not introduced, or if it
// does not know the secret in the other's address. shm::fabric and ucx::fabric
// work like this and share: the address, the queue of commands, and the
// progress thread that runs an engine.
//
// Threads:   as transport/fabric.hpp. The engine is made, run and destroyed on
//            the progress thread, which has all signals blocked.
// Errors:    the constructor throws the exceptions of the engine's constructor.
#pragma once

#include "transport/fabric.hpp"
#include "transport/introduced/config.hpp"

namespace shoal::transport::introduced {

class commands;

/// The work of a progress thread, until it takes a close command.
class engine {
public:
  virtual ~engine() = default;
  virtual const std::string& address() const = 0;
  virtual void run() = 0;
};

class fabric : public transport::fabric {
public:
  ~fabric() override;

  std::string_view name() const noexcept override { return name_; }
  std::size_t message_bytes_max() const noexcept override;
  /// Secret: it contains the token that makes peers trusted.
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
  std::chrono::nanoseconds silent_for() override;
  void close() override;

protected:
  /// Makes the engine; `wake_fd` is an eventfd that is written when the queue
  /// gets a command.
  using factory =
    std::function<std::unique_ptr<engine>(commands& queue, int wake_fd)>;
  fabric(std::string_view name, const config& settings, const factory& make);

private:
  class impl;
  const std::string_view name_;
  std::unique_ptr<impl> impl_;
};

} // namespace shoal::transport::introduced
