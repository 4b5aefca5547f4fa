// tests/runtime/store/exchange_test.cpp -- a blob arrives whole while one
// honest holder lives, and never otherwise.
#include "runtime/core/errc.hpp"
#include "runtime/core/text/hex.hpp"
#include "runtime/files/sha256.hpp"
#include "runtime/store/exchange.hpp"
#include "runtime/work/device_queue.hpp"
#include "tests/support/folder.hpp"

#include <boost/test/unit_test.hpp>

#include <deque>
#include <fstream>
#include <map>
#include <random>
#include <set>

using namespace shoal;
using namespace shoal::runtime;
using core::blob_digest;
using core::peer_id;

namespace {

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

peer_id id_of(std::size_t i) {
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
  struct node {
    node(world& w, std::size_t i) : sender(w, i) {}
    to_wire sender;
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
    BOOST_REQUIRE(!w->append(bytes));
    BOOST_REQUIRE(!w->commit(digest, std::nullopt));
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

  std::deque<std::function<void()>> wire;
  std::vector<std::unique_ptr<node>> nodes;
  core::nanoseconds now = 0;
  int ends = 0;
  std::error_code result;
  std::map<peer_id, std::size_t> wrong; ///< as told to any
  std::set<peer_id> given_up;
};

std::vector<std::byte> noise(std::size_t bytes, std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> out(bytes);
  for (auto& b : out)
    b = static_cast<std::byte>(random());
  return out;
}

bool holds(world& w, std::size_t i, const blob_digest& digest,
           const std::vector<std::byte>& bytes) {
  std::error_code error;
  const auto b = w.nodes[i]->blobs->read(digest, error);
  return b
         && std::equal(bytes.begin(), bytes.end(), b->bytes().begin(),
                       b->bytes().end());
}

} // namespace

BOOST_AUTO_TEST_SUITE(exchange)

BOOST_AUTO_TEST_CASE(blobs_of_any_size_arrive) {
  constexpr std::size_t chunk = blob_exchange::chunk_bytes;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, chunk - 1,
                                  chunk, chunk + 1, 20 * chunk, 21 * chunk + 7})
    for (const bool known : {false, true})
      BOOST_TEST_CONTEXT("bytes " << bytes << " known " << known) {
        world w(2);
        const auto blob = noise(bytes);
        const auto digest = w.put(1, blob);
        w.fetch(0, digest, {1},
                known ? std::optional<std::uint64_t>(bytes) : std::nullopt);
        w.settle();
        BOOST_TEST(w.ends == 1);
        BOOST_TEST(!w.result);
        BOOST_TEST(holds(w, 0, digest, blob));
        w.fetch(0, digest, {});
        BOOST_TEST(w.ends == 2); // it is there already
      }
}

/// All messages of a link wait behind the chunks that are under way.
BOOST_AUTO_TEST_CASE(few_chunks_are_in_flight_on_a_slow_link) {
  for (const bool slow : {false, true}) {
    world w(2);
    const auto blob = noise(40 * blob_exchange::chunk_bytes);
    const auto digest = w.put(1, blob);
    w.fetch(0, digest, {1});
    std::size_t most = 0;
    while (w.ends == 0) {
      if (slow) // each message takes so long
        w.now += blob_exchange::answer_slow;
      for (auto& n : w.nodes)
        n->exchange->tick(w.now);
      BOOST_REQUIRE(w.step());
      w.nodes[0]->exchange->list_queues([&](blob_exchange::queues q) {
        most = std::max(most, q.fetched_chunks);
      });
    }
    BOOST_TEST(!w.result);
    BOOST_TEST(holds(w, 0, digest, blob));
    BOOST_TEST(most == (slow ? 1u : blob_exchange::window));
  }
}

BOOST_AUTO_TEST_CASE(a_blob_without_holders_is_not_found) {
  world w(3);
  const auto digest = sha256(noise(10));
  w.fetch(0, digest, {1, 2});
  w.settle();
  BOOST_TEST(w.ends == 1);
  BOOST_TEST((w.result == errc::not_found));
  w.fetch(0, digest, {});
  w.settle();
  BOOST_TEST(w.ends == 2);
  BOOST_TEST((w.result == errc::not_found));
}

BOOST_AUTO_TEST_CASE(another_holder_goes_on_where_one_died) {
  world w(3);
  const auto blob = noise(40 * blob_exchange::chunk_bytes);
  const auto digest = w.put(1, blob);
  w.put(2, blob);
  w.fetch(0, digest, {1, 2});
  while (w.nodes[1]->served < 20)
    w.step();
  w.kill(1);
  w.settle();
  BOOST_TEST(!w.result);
  BOOST_TEST(holds(w, 0, digest, blob));
  BOOST_TEST(w.nodes[2]->served < 40u);
}

BOOST_AUTO_TEST_CASE(another_holder_goes_on_where_a_disk_hangs) {
  world w(3);
  const auto blob = noise(40 * blob_exchange::chunk_bytes);
  const auto digest = w.put(1, blob);
  w.put(2, blob);
  w.fetch(0, digest, {1, 2});
  while (w.nodes[1]->served < 20)
    w.step();
  w.nodes[1]->disk.hangs = true; // it is up, and takes requests
  w.settle();
  BOOST_TEST(w.ends == 1);
  BOOST_TEST(!w.result);
  BOOST_TEST(holds(w, 0, digest, blob));
  BOOST_TEST(w.nodes[2]->served < 40u);
  BOOST_TEST(w.nodes[0]->exchange->moved_bytes() >= blob.size());
  BOOST_TEST(w.nodes[2]->exchange->moved_bytes() > 0u);
}

/// A fetch whose process dies when some 20 of 40 chunks are on the disk.
struct cut_fetch {
  explicit cut_fetch(bool known)
    : size(known ? std::optional<std::uint64_t>(blob.size()) : std::nullopt) {
    digest = w.put(1, blob);
    w.put(2, blob);
    w.fetch(0, digest, {1, 2}, size);
    while (w.nodes[1]->served < 20)
      w.step();
    w.restart(0);
    w.ends = 0;
    w.nodes[1]->served_bytes = 0;
    begun = w.nodes[0]->blobs->begun(digest);
    BOOST_TEST_REQUIRE(begun > 0u);
  }
  void go_on() {
    w.fetch(0, digest, {1, 2}, size);
    w.settle();
    BOOST_TEST(w.ends == 1);
    BOOST_TEST(!w.result, w.result.message());
    BOOST_TEST(holds(w, 0, digest, blob));
    BOOST_TEST(w.nodes[0]->blobs->begun(digest) == 0u);
  }
  std::uint64_t fetched() const { return w.nodes[1]->served_bytes; }
  std::filesystem::path part() const {
    return w.nodes[0]->place.path / "parts" / core::to_hex(digest);
  }

  world w{3};
  const std::vector<std::byte> blob = noise(40 * blob_exchange::chunk_bytes);
  std::optional<std::uint64_t> size;
  blob_digest digest{};
  std::uint64_t begun = 0;
};

BOOST_AUTO_TEST_CASE(the_next_process_goes_on_where_one_died) {
  for (const bool known : {false, true}) {
    cut_fetch f(known);
    f.go_on();
    BOOST_TEST(f.fetched() == f.blob.size() - f.begun);
  }
}

BOOST_AUTO_TEST_CASE(a_holder_that_dies_while_the_disk_reads_is_passed_over) {
  cut_fetch f(false);
  f.w.fetch(0, f.digest, {1, 2});
  f.w.kill(1);
  f.w.settle();
  BOOST_TEST(!f.w.result);
  BOOST_TEST(holds(f.w, 0, f.digest, f.blob));
  BOOST_TEST(f.w.nodes[2]->served_bytes == f.blob.size() - f.begun);
}

BOOST_AUTO_TEST_CASE(a_begun_blob_that_lies_is_fetched_from_the_start) {
  for (const bool known : {false, true})
    for (const bool long_one : {false, true})
      BOOST_TEST_CONTEXT("known " << known << " long " << long_one) {
        cut_fetch f(known);
        if (long_one)
          std::filesystem::resize_file(f.part(), f.blob.size() + 1);
        else
          std::ofstream(f.part(), std::ios::in) << "other bytes";
        f.go_on();
        BOOST_TEST(f.fetched() >= f.blob.size());
      }
}

BOOST_AUTO_TEST_CASE(a_silent_holder_is_given_up) {
  world w(3);
  const auto blob = noise(1000);
  const auto digest = w.put(1, blob);
  w.put(2, blob);
  w.nodes[1]->mute = true;
  w.fetch(0, digest, {1, 2});
  w.settle();
  BOOST_TEST(!w.result);
  w.nodes[2]->mute = true;
  BOOST_TEST(!w.nodes[0]->blobs->remove(digest));
  w.fetch(0, digest, {1, 2});
  w.settle();
  BOOST_TEST(w.ends == 2);
  BOOST_TEST((w.result == errc::timed_out));
}

BOOST_AUTO_TEST_CASE(liars_are_found_out) {
  const auto blob = noise(5 * blob_exchange::chunk_bytes);
  for (const bool boasts : {false, true})
    for (const bool known : {false, true}) {
      world w(4);
      const auto digest = w.put(1, blob);
      for (const std::size_t i : {2, 3})
        w.put(i, blob);
      for (const std::size_t i : {1, 2})
        (boasts ? w.nodes[i]->boasts : w.nodes[i]->lies) = true;
      const auto size =
        known ? std::optional<std::uint64_t>(blob.size()) : std::nullopt;
      w.fetch(0, digest, {1, 2}, size);
      w.settle();
      BOOST_TEST((w.result == errc::corrupt));
      BOOST_TEST(!w.nodes[0]->blobs->contains(digest));
      w.fetch(0, digest, {1, 2, 3}, size);
      w.settle();
      BOOST_TEST(!w.result);
      BOOST_TEST(holds(w, 0, digest, blob));
    }
}

// Each blob comes from the honest holder; the one that lies is named, and after some
// of them it is not asked any more.
BOOST_AUTO_TEST_CASE(a_liar_is_named_and_then_not_asked_any_more) {
  world w(3);
  w.nodes[1]->lies = true;
  for (std::size_t blob = 1; blob <= blob_exchange::wrong_max + 2; ++blob) {
    const auto bytes = noise(2 * blob_exchange::chunk_bytes, blob);
    const auto digest = w.put(1, bytes);
    w.put(2, bytes);
    const std::size_t before = w.nodes[1]->served;
    w.fetch(0, digest, {1, 2});
    w.settle();
    BOOST_TEST(!w.result, w.result.message());
    BOOST_TEST(holds(w, 0, digest, bytes));
    const bool asked = blob <= blob_exchange::wrong_max;
    BOOST_TEST((w.nodes[1]->served > before) == asked);
    BOOST_TEST(w.wrong[id_of(1)] == std::min(blob, blob_exchange::wrong_max));
    BOOST_TEST(w.given_up.contains(id_of(1))
               == (blob >= blob_exchange::wrong_max));
  }
  BOOST_TEST(!w.wrong.contains(id_of(2)));
  const auto bytes = noise(9, 99);
  const auto digest = w.put(1, bytes);
  w.fetch(0, digest, {1});
  w.settle();
  BOOST_TEST((w.result == errc::not_found));
}

BOOST_AUTO_TEST_CASE(fetches_of_one_blob_are_one_and_many_wait_in_line) {
  world w(2);
  std::vector<blob_digest> digests;
  for (std::uint64_t i = 0; i < 10; ++i)
    digests.push_back(w.put(1, noise(1000, i)));
  for (int twice = 0; twice < 2; ++twice)
    for (const auto& d : digests)
      w.fetch(0, d, {1});
  w.settle();
  BOOST_TEST(w.ends == 20);
  BOOST_TEST(w.nodes[1]->served == 10u);
}

BOOST_AUTO_TEST_CASE(a_greedy_peer_gets_its_share_only) {
  world w(2);
  const auto digest = w.put(1, noise(1000));
  for (std::uint64_t i = 0; i < 1000; ++i)
    w.nodes[1]->exchange->request_received(id_of(0), {i, digest, 0, 100});
  while (w.nodes[1]->disk.step())
    continue;
  BOOST_TEST(w.nodes[1]->served == blob_exchange::served_per_peer_max);
  w.nodes[1]->exchange->request_received(id_of(0),
                                         {7, digest, UINT64_MAX, UINT32_MAX});
  w.nodes[1]->disk.step();
  BOOST_TEST(w.nodes[1]->served == blob_exchange::served_per_peer_max + 1);
}

BOOST_AUTO_TEST_CASE(close_ends_what_is_under_way) {
  world w(2);
  const auto digest = w.put(1, noise(100000));
  w.fetch(0, digest, {1});
  w.step();
  w.nodes[0]->exchange->close();
  BOOST_TEST(w.ends == 1);
  BOOST_TEST((w.result == std::errc::operation_canceled));
  w.settle();
  BOOST_TEST(w.ends == 1);
}

// One honest holder lives to the end; the others die, lie, boast or are mute.
BOOST_AUTO_TEST_CASE(one_honest_holder_is_enough) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed)
    BOOST_TEST_CONTEXT("seed " << seed) {
      std::mt19937_64 random(seed);
      world w(5);
      const auto blob = noise(random() % (12 * blob_exchange::chunk_bytes));
      const auto digest = w.put(1, blob);
      std::vector<std::size_t> holders{1};
      std::vector<std::size_t> mortal;
      for (std::size_t i = 2; i < 5; ++i) {
        holders.push_back(i);
        if (random() % 4 != 0)
          w.put(i, blob);
        w.nodes[i]->lies = random() % 3 == 0;
        w.nodes[i]->boasts = random() % 4 == 0;
        w.nodes[i]->mute = random() % 5 == 0;
        if (random() % 2 == 0)
          mortal.push_back(i);
      }
      std::shuffle(holders.begin(), holders.end(), random);
      w.fetch(0, digest, holders,
              random() % 2 ? std::optional<std::uint64_t>(blob.size())
                           : std::nullopt);
      for (const auto i : mortal) {
        for (auto n = random() % 40; n > 0; --n)
          w.step();
        w.kill(i);
      }
      w.settle();
      BOOST_TEST(w.ends == 1);
      BOOST_TEST(!w.result, w.result.message());
      BOOST_TEST(holds(w, 0, digest, blob));
    }
}

BOOST_AUTO_TEST_SUITE_END()
