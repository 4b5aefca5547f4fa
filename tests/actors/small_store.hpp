// tests/actors/small_store.hpp -- a store whose disk may be full.
#pragma once

#include "runtime/store/store.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace shoal::test {

/// On a real store; it also holds blobs that may stay in memory (store.hpp).
class small_store : public runtime::store {
public:
  explicit small_store(const std::filesystem::path& folder)
    : inner_(runtime::store::open(folder)) {}
  bool contains(const core::blob_digest& d) const override {
    return inner_->contains(d);
  }
  std::uint64_t size(const core::blob_digest& d) const override {
    return inner_->size(d);
  }
  std::chrono::seconds age(const core::blob_digest& d) const override {
    return inner_->age(d);
  }
  std::unique_ptr<runtime::blob_writer> write() override {
    if (full)
      return std::make_unique<no_room>();
    return inner_->write();
  }
  void may_stay_in_memory(const core::blob_digest& d) override {
    needed_.insert(d);
  }
  std::unique_ptr<runtime::blob_writer>
  write_of(const core::blob_digest& d) override {
    return needed_.contains(d) ? inner_->write() : write();
  }
  bool in_memory(const core::blob_digest& d) const override {
    return full && needed_.contains(d) && contains(d);
  }
  std::shared_ptr<const runtime::blob>
  read(const core::blob_digest& d, std::error_code& error) override {
    return inner_->read(d, error);
  }
  std::error_code verify(const core::blob_digest& d) override {
    return inner_->verify(d);
  }
  bool set_aside(const core::blob_digest& d) const override {
    return inner_->set_aside(d);
  }
  std::error_code remove(const core::blob_digest& d) override {
    return inner_->remove(d);
  }
  std::vector<core::blob_digest> list() const override {
    return inner_->list();
  }
  bool full = false;

private:
  struct no_room : runtime::blob_writer {
    std::error_code append(std::span<const std::byte>) override {
      return std::make_error_code(std::errc::no_space_on_device);
    }
    std::error_code commit(core::blob_digest&,
                           const std::optional<core::blob_digest>&) override {
      return std::make_error_code(std::errc::no_space_on_device);
    }
    std::uint64_t written() const override { return 0; }
  };
  std::unique_ptr<runtime::store> inner_;
  std::set<core::blob_digest> needed_; ///< in memory, if the disk is full
};

} // namespace shoal::test
