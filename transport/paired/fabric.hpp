// transport/paired/fabric.hpp -- fabrics whose nodes are told of each other.
//
// Two nodes pass each other local_address() over a channel that has
// authenticated them, and then BOTH call connect(): a node that was not told
// about the other, or that does not know the secret in its address, is not
// listened to. shm::fabric and ucx::fabric are such; what they share is here:
// the address, the queue of commands, and the progress thread that runs an
// engine.
//
// Threads:   as transport/fabric.hpp. The engine is made, run and destroyed on
//            the progress thread, which has all signals blocked.
// Errors:    the constructor throws what the engine's does.
#pragma once

#include "transport/fabric.hpp"
#include "transport/paired/config.hpp"

namespace shoal::transport::paired {

class commands;

/// What a progress thread does until it takes a close command.
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
  /// Secret: it carries the token by which peers are believed.
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
  /// gets something.
  using factory =
    std::function<std::unique_ptr<engine>(commands& queue, int wake_fd)>;
  fabric(std::string_view name, const config& settings, const factory& make);

private:
  class impl;
  const std::string_view name_;
  std::unique_ptr<impl> impl_;
};

} // namespace shoal::transport::paired
