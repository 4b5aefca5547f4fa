// tests/sim/shoal/links.hpp -- observes a node's links.
//
// Passes everything on to the product's link service. Each transfer must end
// exactly once, and a receiver that is told of success must hold what its
// sender had. The data source's transfers show which samples are used.
#pragma once

#include "runtime/links/links.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace shoal::sim {

class shoal_world;

class watched_links final : public runtime::link_hub {
public:
  watched_links(shoal_world& world, int node, runtime::link_hub& inner)
    : world_(world), node_(node), inner_(inner) {}

  void expect(const transport::peer_id& from, transport::bulk_tag tag,
              runtime::shared_bytes into, callback done) override;
  void send(const transport::peer_id& to, transport::bulk_tag tag,
            runtime::shared_bytes from, callback done) override;
  void cancel(std::uint64_t plan) override;
  std::vector<link_stat> stats() const override { return inner_.stats(); }
  runtime::shared_memory_resource memory() const override {
    return inner_.memory();
  }
  /// The same memory, so that all is counted.
  runtime::shared_memory_resource memory_for_copies() const override {
    return inner_.memory();
  }
  void list_pending(std::uint64_t plan,
                    std::function<void(std::vector<pending>)> then) override;
  /// The next transfer that is sent begins, and does not end before its
  /// sub-plan ends.
  void lose_next(bool loses) { loses_ = loses; }

  /// The process has died.
  void close() { closed_ = canceled_->all = true; }
  /// Transfers that have not ended.
  std::size_t open() const noexcept { return open_->size(); }
  /// One of them, as text.
  std::string an_open_one() const;
  static constexpr std::size_t open_max = 4096;

private:
  callback once(callback done, const char* which, transport::bulk_tag tag);

  shoal_world& world_;
  int node_;
  runtime::link_hub& inner_;
  bool closed_ = false;
  bool loses_ = false;
  struct lost_transfer {
    pending what;
    callback done;
  };
  std::vector<lost_transfer> lost_;
  std::map<std::uint32_t, std::vector<std::byte>> parts_; ///< of a mutant
  using tags = std::multiset<std::pair<transport::bulk_tag, const char*>>;
  std::shared_ptr<tags> open_ = std::make_shared<tags>();
  /// The plans of which the node has canceled the transfers.
  struct canceled {
    std::set<std::uint64_t> plans;
    bool all = false; ///< the process has died
  };
  std::shared_ptr<canceled> canceled_ = std::make_shared<canceled>();
};

} // namespace shoal::sim
