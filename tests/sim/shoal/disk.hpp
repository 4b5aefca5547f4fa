// tests/sim/shoal/disk.hpp -- the product's store on a disk that fails.
//
// A full disk refuses writes. A disk that lies has a flipped bit in a blob that
// this process has not read before: the store has to notice. A process may be
// killed between any two calls: then an unfinished write is torn.
#pragma once

#include "runtime/store/store.hpp"

#include <set>

namespace shoal::sim {

class shoal_world;

/// The process is killed here. Ends the piece of disk work.
struct killed_at_work {};

class sim_store final : public runtime::store {
public:
  sim_store(shoal_world& world, int node, const std::filesystem::path& folder)
    : world_(world), node_(node), folder_(folder),
      inner_(runtime::store::open(folder)) {}

  bool contains(const core::blob_digest& d) const override {
    return inner_->contains(d);
  }
  std::uint64_t size(const core::blob_digest& d) const override {
    return inner_->size(d);
  }
  /// In the world's time no blob gets old enough to be removed.
  std::chrono::seconds age(const core::blob_digest&) const override {
    return std::chrono::seconds{0};
  }
  std::unique_ptr<runtime::blob_writer> write() override;
  std::unique_ptr<runtime::blob_writer>
  write_of(const core::blob_digest& d) override;
  std::uint64_t begun(const core::blob_digest& d) const override {
    return inner_->begun(d);
  }
  std::unique_ptr<runtime::blob_writer>
  go_on(const core::blob_digest& d) override;
  std::shared_ptr<const runtime::blob>
  read(const core::blob_digest& d, std::error_code& error) override;
  std::error_code verify(const core::blob_digest& d) override;
  bool set_aside(const core::blob_digest& d) const override {
    return inner_->set_aside(d);
  }
  std::error_code remove(const core::blob_digest& d) override {
    step();
    return inner_->remove(d);
  }
  std::vector<core::blob_digest> list() const override {
    return inner_->list();
  }
  runtime::disk_meter::reading activity() const override {
    return inner_->activity();
  }

  /// The process dies after this number of calls; negative: it does not.
  void die_after(int calls) { calls_left_ = calls; }
  /// One more call, perhaps the last one.
  void step();
  bool full() const;
  /// The blob is intact, as this process knows.
  void seen(const core::blob_digest& d) { seen_.insert(d); }

private:
  std::filesystem::path file_of(const core::blob_digest& d) const;
  void rot_perhaps(const core::blob_digest& d);
  void flip_a_bit(const std::filesystem::path& file, std::uint64_t bytes);

  shoal_world& world_;
  int node_;
  std::filesystem::path folder_;
  std::unique_ptr<runtime::store> inner_;
  int calls_left_ = -1;
  std::set<core::blob_digest> seen_;
};

/// An island's checkpoints in its job's journal on the disk.
std::set<core::blob_digest>
logged_checkpoints(const std::filesystem::path& jobs,
                   const core::island_id& id);

/// Cuts off the end of the last line of a job's journal, like a kill.
void tear_journals(const std::filesystem::path& jobs, std::uint64_t random);

} // namespace shoal::sim
