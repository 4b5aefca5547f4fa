// tests/runtime/store/exchange_world.hpp -- peers that exchange blobs, by hand.
#pragma once

#include "runtime/store/exchange.hpp"
#include "runtime/work/device_queue.hpp"
#include "tests/support/folder.hpp"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <utility>

namespace shoal::tests {

using namespace shoal::runtime;
using core::blob_digest;
using core::peer_id;

/// Runs work when the test says so; the exchange uses no backend.
class manual_queue final : public device_queue {
public:
  void submit_pass(segments run, std::function<void()> done, label) override {
    queue_.push_back({std::move(run), std::move(done)});
  }
  void close() override {}
  bool step() {
    if (queue_.empty() || hangs)
      return false;
    auto [run, done] = std::move(queue_.front());
    queue_.pop_front();
    // Disk work does not look at its backend, so there is none.
    while (run(*reinterpret_cast<kernels::backend*>(this))) {
    }
    if (done)
      done();
    return true;
  }
  void clear() { queue_.clear(); }
  bool hangs = false; ///< at what comes next, for ever

private:
  std::deque<std::pair<segments, std::function<void()>>> queue_;
};

inline core::peer_id id_of(std::size_t i) {
  peer_id id{};
  id[0] = static_cast<std::uint8_t>(i + 1);
  return id;
}

/// Peers whose messages travel through one queue that the test drives.
struct world {
  struct to_wire final : blob_sender {
    to_wire(world& w, std::size_t i) : all(w), number(i) {}
    std::error_code
    send_request(const peer_id& to, const blob_request& r) override {
      return all.request(number, to, r);
    }
    std::error_code send_chunk(const peer_id& to, blob_chunk chunk) override {
      return all.chunk(number, to, std::move(chunk));
    }
    void sent_wrong(const peer_id& holder, const blob_digest&,
                    std::size_t times, bool given_up) override {
      all.wrong[holder] = times;
      if (given_up)
        all.given_up.insert(holder);
    }
    world& all;
    std::size_t number;
  };
  /// A transfer ends when both ends are there.
  struct by_link final : blob_links {
    by_link(world& w, std::size_t i) : all(w), number(i) {}
    void expect(const peer_id& from, std::uint64_t plan, std::uint32_t n,
                piece into, callback done) override {
      all.transfers[{from[0] - 1u, number, plan, n}].expect(into, done);
      all.meet({from[0] - 1u, number, plan, n});
    }
    void send(const peer_id& to, std::uint64_t plan, std::uint32_t n,
              std::span<const std::byte> bytes,
              std::shared_ptr<const void> keep, callback done) override {
      transfer& t = all.transfers[{number, to[0] - 1u, plan, n}];
      if (t.sent) // as links do
        return done(std::make_error_code(std::errc::invalid_argument));
      t.send(bytes, keep, done);
      all.meet({number, to[0] - 1u, plan, n});
    }
    void cancel(std::uint64_t plan) override {
      for (auto& [tag, t] : all.transfers)
        if (std::get<2>(tag) == plan)
          t.end(std::get<1>(tag) == number);
    }
    world& all;
    std::size_t number;
  };
  struct transfer {
    void expect(blob_links::piece p, blob_links::callback done) {
      into = std::move(p);
      received = std::move(done);
    }
    void send(std::span<const std::byte> b, std::shared_ptr<const void> k,
              blob_links::callback done) {
      bytes = b;
      keep = std::move(k);
      sent = std::move(done);
    }
    void end(bool receiver) {
      if (auto done = std::exchange(receiver ? received : sent, {}))
        done(std::make_error_code(std::errc::operation_canceled));
    }
    blob_links::piece into;
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> keep;
    blob_links::callback received, sent;
  };
  /// Sender, receiver, plan, number.
  using tag =
    std::tuple<std::size_t, std::size_t, std::uint64_t, std::uint32_t>;

  void meet(const tag& which) {
    wire.push_back([this, which] {
      const auto at = transfers.find(which);
      if (at == transfers.end() || !at->second.received || !at->second.sent
          || nodes[std::get<0>(which)]->dead || nodes[std::get<0>(which)]->cut)
        return;
      const transfer t = std::move(at->second);
      transfers.erase(at);
      std::copy(t.bytes.begin(), t.bytes.end(), t.into->begin());
      if (nodes[std::get<0>(which)]->lies)
        t.into->front() ^= std::byte{1};
      link_bytes += t.bytes.size();
      ++pieces_from[std::get<0>(which)];
      t.sent({});
      t.received({});
    });
  }
  /// From now on bytes go over links.
  void link() {
    for (auto& n : nodes)
      n->exchange->use_links(n->links);
  }

  struct node {
    node(world& w, std::size_t i) : sender(w, i), links(w, i) {}
    to_wire sender;
    by_link links;
    bool cut = false; ///< its links carry nothing
    test::folder place;
    std::unique_ptr<store> blobs = store::open(place.path);
    manual_queue disk;
    std::unique_ptr<blob_exchange> exchange;
    bool dead = false;
    bool lies = false;   ///< spoils a byte of each chunk
    bool boasts = false; ///< claims another size
    bool mute = false;   ///< never answers
    std::size_t served = 0;
    std::uint64_t served_bytes = 0;
  };

  explicit world(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      nodes.push_back(std::make_unique<node>(*this, i));
      start(i);
    }
  }
  void start(std::size_t i) {
    node& n = *nodes[i];
    n.exchange = make_blob_exchange(*n.blobs, n.disk, n.sender);
  }
  std::error_code
  request(std::size_t i, const peer_id& to, const blob_request& r) {
    return post(i, to,
                [i, r](node& n) { n.exchange->request_received(id_of(i), r); });
  }
  std::error_code chunk(std::size_t i, const peer_id& to, blob_chunk chunk) {
    auto& me = *nodes[i];
    ++me.served;
    me.served_bytes += chunk.bytes.size();
    if (me.mute)
      return {};
    if (me.lies && !chunk.bytes.empty())
      chunk.bytes[chunk.bytes.size() / 2] ^= std::byte{1};
    if (me.boasts)
      chunk.total_bytes += 10;
    return post(i, to, [i, chunk = std::move(chunk)](node& n) {
      n.exchange->chunk_received(id_of(i), chunk);
    });
  }
  /// Its process dies, and another one opens what it has left.
  void restart(std::size_t i) {
    auto& n = *nodes[i];
    n.exchange->close();
    wire.clear();
    n.disk.clear();
    n.blobs = nullptr;
    n.blobs = store::open(n.place.path);
    start(i);
  }
  ~world() {
    for (auto& n : nodes)
      n->exchange->close();
  }

  std::error_code
  post(std::size_t from, const peer_id& to, std::function<void(node&)> what) {
    auto& target = *nodes[to[0] - 1u];
    if (nodes[from]->dead || target.dead)
      return transport::errc::peer_lost;
    wire.push_back([&target, what = std::move(what)] {
      if (!target.dead)
        what(target);
    });
    return {};
  }

  bool step() {
    bool any = false;
    if (!wire.empty()) {
      const auto next = std::move(wire.front());
      wire.pop_front();
      next();
      any = true;
    }
    for (auto& n : nodes)
      any |= n->disk.step();
    return any;
  }
  void settle() {
    for (int quiet = 0; quiet < 40;) {
      if (step()) {
        quiet = 0;
        continue;
      }
      ++quiet;
      now += blob_exchange::request_timeout;
      for (auto& n : nodes)
        n->exchange->tick(now);
    }
  }
  void kill(std::size_t i) {
    nodes[i]->dead = true;
    for (auto& n : nodes)
      if (!n->dead)
        n->exchange->peer_down(id_of(i));
  }

  blob_digest put(std::size_t i, const std::vector<std::byte>& bytes) {
    auto w = nodes[i]->blobs->write();
    blob_digest digest{};
    if (w->append(bytes) || w->commit(digest, std::nullopt))
      std::abort();
    return digest;
  }

  void fetch(std::size_t at, const blob_digest& digest,
             std::vector<std::size_t> holders,
             std::optional<std::uint64_t> bytes = {}) {
    std::vector<peer_id> ids;
    for (const auto h : holders)
      ids.push_back(id_of(h));
    nodes[at]->exchange->fetch(digest, bytes, ids,
                               [this](std::error_code error) {
                                 ++ends;
                                 result = error;
                               });
  }

  std::map<tag, transfer> transfers; ///< before the nodes that use them end
  std::uint64_t link_bytes = 0;
  std::map<std::size_t, std::size_t> pieces_from;
  std::deque<std::function<void()>> wire;
  std::vector<std::unique_ptr<node>> nodes;
  core::nanoseconds now = 0;
  int ends = 0;
  std::error_code result;
  std::map<peer_id, std::size_t> wrong; ///< as told to any
  std::set<peer_id> given_up;
};

inline std::vector<std::byte> noise(std::size_t bytes, std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> out(bytes);
  for (auto& b : out)
    b = static_cast<std::byte>(random());
  return out;
}

inline bool holds(world& w, std::size_t i, const blob_digest& digest,
                  const std::vector<std::byte>& bytes) {
  std::error_code error;
  const auto b = w.nodes[i]->blobs->read(digest, error);
  return b
         && std::equal(bytes.begin(), bytes.end(), b->bytes().begin(),
                       b->bytes().end());
}

} // namespace shoal::tests
