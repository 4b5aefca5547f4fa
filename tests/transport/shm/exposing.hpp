// tests/transport/shm/exposing.hpp -- a fabric whose bulk lies in an arena.
//
// Tests of fabrics send from memory of any kind. This fabric first copies the
// data into its arena, so that peers read it there, and overwrites the copy as
// soon as its completion runs, as an owner may.
#pragma once

#include "transport/fabric.hpp"
#include "transport/shm/arena.hpp"

#include <cstring>
#include <memory>

namespace shoal::transport::conformance {

/// Bytes in an arena, as long as they have an owner.
class arena_bytes {
public:
  arena_bytes(std::shared_ptr<shm::arena> from, std::size_t size)
    : from_(std::move(from)), size_(size),
      data_(static_cast<std::byte*>(from_->allocate(size))) {}
  ~arena_bytes() { from_->deallocate(data_, size_); }
  arena_bytes(const arena_bytes&) = delete;
  arena_bytes& operator=(const arena_bytes&) = delete;
  std::span<std::byte> span() const { return {data_, size_}; }
  void scribble() { std::memset(data_, 0x5a, size_); }

private:
  std::shared_ptr<shm::arena> from_;
  std::size_t size_;
  std::byte* data_;
};

class exposing final : public fabric {
public:
  exposing(std::unique_ptr<fabric> inner, std::shared_ptr<shm::arena> memory)
    : inner_(std::move(inner)), memory_(std::move(memory)) {}

  std::error_code
  send_bulk(const peer_id& to, bulk_tag tag, std::span<const std::byte> bytes,
            completion done) override {
    if (bytes.size() < shm::arena::allocation_bytes_min)
      return inner_->send_bulk(to, tag, bytes, done);
    auto own = std::make_unique<copy>(memory_, bytes.size(), done);
    std::memcpy(own->bytes.span().data(), bytes.data(), bytes.size());
    const auto error =
      inner_->send_bulk(to, tag, own->bytes.span(), {copy::end, own.get()});
    if (!error)
      static_cast<void>(own.release()); // the completion has it
    return error;
  }

  void connect(const std::string& address) override {
    inner_->connect(address);
  }
  void close() override { inner_->close(); }
  std::string_view name() const noexcept override { return inner_->name(); }
  std::size_t message_bytes_max() const noexcept override {
    return inner_->message_bytes_max();
  }
  std::string local_address() const override { return inner_->local_address(); }
  std::error_code
  send(const peer_id& to, std::span<const std::byte> message) override {
    return inner_->send(to, message);
  }
  std::error_code
  post_receive(const peer_id& from, bulk_tag tag, std::span<std::byte> into,
               completion done) override {
    return inner_->post_receive(from, tag, into, done);
  }
  void cancel(std::uint64_t plan) override { inner_->cancel(plan); }
  void drop(const peer_id& peer) override { inner_->drop(peer); }
  traffic traffic_with(const peer_id& peer) const override {
    return inner_->traffic_with(peer);
  }

private:
  struct copy {
    copy(std::shared_ptr<shm::arena> from, std::size_t size, completion c)
      : bytes(std::move(from), size), done(c) {}
    static void end(void* self, std::error_code result) noexcept {
      std::unique_ptr<copy> own(static_cast<copy*>(self));
      own->bytes.scribble();
      own->done.run(own->done.context, result);
    }
    arena_bytes bytes;
    completion done;
  };

  std::unique_ptr<fabric> inner_;
  std::shared_ptr<shm::arena> memory_;
};

} // namespace shoal::transport::conformance
