// tests/actors/drawn_links.hpp -- transfers and device work that end when drawn.
//
// A transfer ends when a test carries it, after both ends have named it; work
// on a queue runs when the test runs it. So a test draws their order.
#pragma once

#include "kernels/backend.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/links/links.hpp"
#include "runtime/work/device_queue.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <tuple>
#include <vector>

namespace shoal::test {

using key = std::tuple<core::peer_id, core::peer_id, transport::bulk_tag>;
struct transfer {
  std::optional<runtime::shared_bytes> into, from;
  runtime::link_hub::callback received, sent;
};
using network = std::map<key, transfer>; ///< what has not ended

class hub final : public runtime::link_hub {
public:
  hub(network& all, core::peer_id self) : all_(all), self_(self) {}
  void expect(const core::peer_id& from, transport::bulk_tag tag,
              runtime::shared_bytes into, callback done) override {
    transfer& t = all_[{from, self_, tag}];
    BOOST_REQUIRE(!t.into);
    t.into = std::move(into);
    t.received = std::move(done);
    ++posted;
  }
  void send(const core::peer_id& to, transport::bulk_tag tag,
            runtime::shared_bytes from, callback done) override {
    transfer& t = all_[{self_, to, tag}];
    BOOST_REQUIRE(!t.from);
    t.from = std::move(from);
    t.sent = std::move(done);
  }
  void cancel(std::uint64_t) override {
    std::vector<callback> told;
    for (auto& [k, t] : all_) {
      if (std::get<1>(k) == self_ && t.into) {
        told.push_back(std::move(t.received));
        t.into.reset();
      }
      if (std::get<0>(k) == self_ && t.from) {
        told.push_back(std::move(t.sent));
        t.from.reset();
      }
    }
    for (const callback& c : told)
      c(transport::make_error_code(transport::errc::canceled));
  }
  std::vector<link_stat> stats() const override { return {}; }

  int posted = 0; ///< in all

private:
  network& all_;
  core::peer_id self_;
};

class drawn_queue final : public runtime::device_queue {
public:
  void submit_pass(segments run, std::function<void()> done, label) override {
    waiting.push_back({std::move(run), std::move(done)});
  }
  void close() override {}
  void run_one() {
    auto [run, done] = std::move(waiting.front());
    waiting.pop_front();
    while (run && run(*backend)) {
    }
    if (done)
      done();
  }
  std::deque<std::pair<segments, std::function<void()>>> waiting;
  std::unique_ptr<kernels::backend> backend = kernels::make_reference_backend();
};

inline core::peer_id peer(std::size_t n) {
  core::peer_id id{};
  id[0] = std::uint8_t(n + 1);
  return id;
}

/// Ends a transfer that both ends have named; either may hear of it first.
inline void carry(network& wire, const key& k, std::mt19937& random) {
  transfer t = std::move(wire.at(k));
  wire.erase(k);
  BOOST_REQUIRE(t.into->bytes.size() == t.from->bytes.size());
  std::ranges::copy(t.from->bytes, t.into->bytes.begin());
  t.into.reset();
  t.from.reset();
  if (random() % 2)
    std::swap(t.received, t.sent);
  t.received({});
  t.sent({});
}

} // namespace shoal::test
