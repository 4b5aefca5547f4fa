// tests/actors/direct_exchange.hpp -- blobs go from store to store at once.
#pragma once

#include "runtime/core/assert.hpp"
#include "runtime/core/errc.hpp"
#include "runtime/store/exchange.hpp"
#include "runtime/store/store.hpp"

#include <functional>
#include <utility>

namespace shoal::test {

/// Copies a blob from the first node that has it, at once.
class direct_exchange final : public runtime::blob_exchange {
public:
  using source = std::function<runtime::store*(const core::peer_id&)>;
  /// @param store_of null: that node is gone
  direct_exchange(runtime::store& own, source store_of)
    : own_(own), store_of_(std::move(store_of)) {}

  void fetch(const core::blob_digest& digest, std::optional<std::uint64_t>,
             std::vector<core::peer_id> holders, callback done) override {
    for (const core::peer_id& holder : holders) {
      runtime::store* from = store_of_(holder);
      std::error_code error;
      const auto blob = from ? from->read(digest, error) : nullptr;
      if (!blob)
        continue;
      auto writer = own_.write_of(digest);
      core::blob_digest made{};
      error = writer->append(blob->bytes());
      return done(error ? error : writer->commit(made, digest));
    }
    done(runtime::errc::not_found);
  }
  void has(const core::blob_digest& digest, core::job_id,
           const core::peer_id& peer, std::function<void(bool)> done) override {
    const runtime::store* at = store_of_(peer);
    done(at != nullptr && at->contains(digest));
  }
  // Nothing travels in pieces.
  void use_links(runtime::blob_links&) override {}
  void request_received(const core::peer_id&,
                        const runtime::blob_request&) override {
    SHOAL_ASSERT(false);
  }
  void chunk_received(const core::peer_id&, runtime::blob_chunk) override {
    SHOAL_ASSERT(false);
  }
  void peer_down(const core::peer_id&) override {}
  std::uint64_t moved_bytes() const override { return 0; }
  void tick(core::nanoseconds) override {}
  void close() override {}
  void list_queues(std::function<void(queues)> then) override { then({}); }

private:
  runtime::store& own_;
  source store_of_;
};

} // namespace shoal::test
