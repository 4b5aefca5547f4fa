// tests/actors/file_keeper_sim_test.cpp -- the keepers of a served model's files,
// in simulated time.
//
// A few peers with real file_keepers and small simulated disks. Views change the room
// on disks, so that files move; each peer learns of a view after a while of its own,
// and messages take their time. The oracle: no file is ever on no disk, no disk has
// more than fits, and in the end each file is where the last view wants it.
#include "actors/checkpoint/checkpoint_manifest.hpp"
#include "actors/serving/file_keeper.hpp"
#include "runtime/core/errc.hpp"
#include "runtime/core/random.hpp"
#include "runtime/core/view.hpp"
#include "runtime/files/sha256.hpp"
#include "runtime/store/held_blobs.hpp"
#include "tests/actors/small_device.hpp"
#include "tests/actors/still_context.hpp"

#include <boost/test/unit_test.hpp>

#include <array>

BOOST_AUTO_TEST_SUITE(file_keepers_in_simulated_time)

using namespace shoal;
using namespace shoal::actors;
using core::blob_digest;
using core::peer_id;

namespace {

constexpr core::job_id job = 7;
constexpr core::nanoseconds ms = 1'000'000, second = 1000 * ms;
constexpr std::size_t peers = 6, files = 24;

peer_id name_of(std::size_t n) {
  return {std::uint8_t(n + 1), std::uint8_t(37 * n)};
}

/// What runs when.
class events {
public:
  explicit events(std::uint64_t seed) : dice(seed) {}
  void after(core::nanoseconds pause, std::function<void()> run) {
    queue_.emplace(std::pair(now + pause, next_++), std::move(run));
  }
  void soon(core::nanoseconds most, std::function<void()> run) {
    after(core::nanoseconds(dice.below(std::uint64_t(most))), std::move(run));
  }
  void run_until(core::nanoseconds end) {
    while (!queue_.empty() && queue_.begin()->first.first <= end) {
      auto event = queue_.extract(queue_.begin());
      now = event.key().first;
      event.mapped()();
    }
    now = end;
  }
  core::nanoseconds now = 0;
  core::cluster::random dice;

private:
  std::map<std::pair<core::nanoseconds, std::uint64_t>, std::function<void()>>
    queue_;
  std::uint64_t next_ = 0;
};

/// A disk of a few bytes.
class disk final : public runtime::store {
public:
  disk(events& time, std::uint64_t bytes_max, bool keeps_pledges)
    : time_(time), bytes_max_(bytes_max), keeps_pledges_(keeps_pledges) {}

  std::error_code put(const blob_digest& d, std::vector<std::byte> bytes) {
    if (held_.passes(d))
      return held_.hold(d, std::move(bytes))
               ? std::error_code{}
               : make_error_code(std::errc::not_enough_memory);
    if (!blobs_.contains(d) && used_ + bytes.size() > bytes_max_)
      return make_error_code(std::errc::no_space_on_device);
    if (blobs_.try_emplace(d, runtime::blob_of(bytes)).second)
      used_ += bytes.size();
    return {};
  }
  bool contains(const blob_digest& d) const override {
    return blobs_.contains(d) || in_memory(d);
  }
  bool on_disk(const blob_digest& d) const { return blobs_.contains(d); }
  std::uint64_t size(const blob_digest& d) const override {
    return contains(d) ? blobs_.at(d)->bytes().size() : 0;
  }
  std::chrono::seconds age(const blob_digest&) const override { return {}; }
  std::unique_ptr<runtime::blob_writer> write() override { std::abort(); }
  void stay_in_memory(const blob_digest& d) override { held_.let_pass(d); }
  void belongs_on_disk(const blob_digest& d) override {
    held_.belongs_on_disk(d);
  }
  void let_go(const blob_digest& d) override { held_.let_go(d); }
  bool in_memory(const blob_digest& d) const override {
    return held_.at(d) != nullptr;
  }
  void settle() override {
    for (const auto& [d, held] : held_.to_settle())
      if (!put(d, {held->bytes().begin(), held->bytes().end()}))
        held_.settled(d);
  }
  std::shared_ptr<const runtime::blob>
  read(const blob_digest& d, std::error_code& error) override {
    error = {};
    if (const auto held = held_.at(d))
      return held;
    const auto found = blobs_.find(d);
    if (found != blobs_.end())
      return found->second;
    error = runtime::errc::not_found;
    return nullptr;
  }
  std::error_code verify(const blob_digest&) override { return {}; }
  bool set_aside(const blob_digest&) const override { return false; }
  std::error_code remove(const blob_digest& d) override {
    held_.forget(d);
    const auto found = blobs_.find(d);
    if (found == blobs_.end())
      return runtime::errc::not_found;
    used_ -= found->second->bytes().size();
    blobs_.erase(found);
    return {};
  }
  bool pledge(const blob_digest& d, core::job_id job) override {
    if (!on_disk(d))
      return false;
    return held_.pledge(d, job, time());
  }
  std::error_code remove_unless_pledged(
    const blob_digest& d,
    const std::function<bool(core::job_id)>& ended) override {
    return keeps_pledges_ && held_.pledged(d, ended, time())
             ? make_error_code(std::errc::device_or_resource_busy)
             : remove(d);
  }
  std::vector<blob_digest> list() const override { return {}; }
  space room() const override { return {bytes_max_ - used_, bytes_max_, 0}; }
  std::uint64_t used_bytes() const override { return used_; }

private:
  runtime::held_blobs::time time() const {
    return runtime::held_blobs::time(std::chrono::nanoseconds(time_.now));
  }
  events& time_;
  const std::uint64_t bytes_max_;
  const bool keeps_pledges_;
  std::uint64_t used_ = 0;
  std::map<blob_digest, std::shared_ptr<const runtime::blob>> blobs_;
  runtime::held_blobs held_;
};

/// Work takes a while, one piece after the other.
class queue final : public runtime::device_queue {
public:
  explicit queue(events& time) : time_(time) {}
  void
  submit_pass(segments run, std::function<void()> done, label what) override {
    until_ = std::max(until_, time_.now)
             + core::nanoseconds(time_.dice.below(20 * ms));
    time_.after(until_ - time_.now,
                [this, run = std::move(run), done = std::move(done), what] {
                  inner_.submit_pass(run, done, what);
                });
  }
  void close() override {}

private:
  events& time_;
  core::nanoseconds until_ = 0;
  test::inline_device inner_;
};

struct shoal_of_disks;

struct peer final : test::still_context, weights_owner {
  peer(shoal_of_disks& all, std::size_t n, std::uint64_t room);
  const peer_id& self() const override { return me; }
  runtime::device_queue& disk() override { return work; }
  runtime::store& blobs() override { return store; }
  std::filesystem::path data_dir() const override { return {}; }
  void fetch_blob(const blob_digest& digest, std::vector<peer_id> holders,
                  std::function<void(std::error_code)> done) override;
  void has_blob(const blob_digest& digest, core::job_id job,
                const peer_id& whom, std::function<void(bool)> done) override;

  void say(const std::string&) override {}
  void load_waits(const std::string&) override {}
  void unusable(const std::string& why) override { BOOST_ERROR(why); }
  std::vector<peer_id> members() const override;
  void
  run_later(std::chrono::seconds pause, std::function<void()> run) override;

  shoal_of_disks& all;
  const peer_id me;
  file_keepers_in_simulated_time::disk store;
  queue work;
  std::unique_ptr<file_keeper> keeper;
};

struct shoal_of_disks {
  shoal_of_disks(std::uint64_t seed, bool keeps_pledges)
    : time(seed), pledges(keeps_pledges) {
    manifest listed;
    for (std::size_t i = 0; i < files; ++i) {
      std::vector<std::byte> bytes(200 + time.dice.below(800), std::byte(i));
      const blob_digest d = runtime::sha256(bytes);
      total += bytes.size();
      content.emplace(d, bytes);
      listed.files.push_back({"f" + std::to_string(i), d, bytes.size()});
      model.push_back({d, bytes.size(), {}});
    }
    listed.files.push_back(
      {"model.safetensors", model[0].digest, model[0].bytes});
    const std::string text = to_json(listed);
    const auto raw = std::as_bytes(std::span(text));
    list = runtime::sha256(raw);
    content.emplace(list, std::vector<std::byte>(raw.begin(), raw.end()));
    for (auto* rooms : {&rooms_now, &before})
      rooms->fill(total * 11 / 20);
    // No disk has room for all files; two have each.
    for (std::size_t n = 0; n < peers; ++n)
      all.push_back(
        std::make_unique<peer>(*this, n, total * 19 / 20 + text.size()));
    for (std::size_t i = 0; i <= files; ++i)
      for (std::size_t copy = 0; copy < 2; ++copy) {
        const blob_digest d = i < files ? model[i].digest : list;
        BOOST_REQUIRE(!all[(i + copy) % peers]->store.put(d, content.at(d)));
      }
  }

  /// Another view: other data fills half of the disks. Often these are the ones
  /// before the last, as when that data comes and goes.
  void change_view() {
    auto v = std::make_shared<core::view>();
    std::array<std::uint64_t, peers> rooms{};
    rooms.fill(1);
    for (std::size_t left = peers / 2; left > 0;)
      if (auto& room = rooms[time.dice.below(peers)]; room == 1) {
        room = total * (15 + time.dice.below(4)) / 20;
        --left;
      }
    if (time.dice.below(2) > 0)
      rooms = before;
    before = std::exchange(rooms_now, rooms);
    v->number = ++number;
    for (std::size_t n = 0; n < peers; ++n) {
      core::member m;
      m.id = {name_of(n), 1};
      m.device.mflops = 1000;
      m.device.memory_bytes = std::uint64_t{1} << 40;
      m.device.disk_bytes = rooms[n];
      v->members.push_back(m);
    }
    core::job_entry j;
    j.id = job;
    j.kind = core::job_kind::serve;
    j.origin = list;
    j.origin_bytes = total;
    j.submitter = name_of(time.dice.below(peers));
    v->jobs.push_back(j);
    last = v;
    for (const auto& p : all)
      time.soon(4 * second, [this, p = p.get(), v] {
        if (number_of[p->me] > v->number)
          return;
        number_of[p->me] = v->number;
        p->keeper->set(v, {job, {}});
      });
  }

  peer& of(const peer_id& id) {
    return **std::ranges::find(all, id, [](const auto& p) { return p->me; });
  }
  std::size_t lost() const {
    return std::size_t(std::ranges::count_if(model, [this](const auto& f) {
      return std::ranges::none_of(
        all, [&](const auto& p) { return p->store.on_disk(f.digest); });
    }));
  }
  std::size_t misplaced() {
    const core::assignment place{job, {}};
    const auto keepers =
      core::file_keepers(model, core::disks_of(*last, last->jobs[0], &place));
    std::size_t out = 0;
    for (std::size_t i = 0; i < model.size(); ++i) {
      out += keepers[i].size() < core::copies_kept;
      for (const peer_id& k : keepers[i])
        out += !of(k).store.on_disk(model[i].digest);
    }
    return out;
  }

  events time;
  const bool pledges;
  std::uint64_t total = 0;
  std::map<blob_digest, std::vector<std::byte>> content;
  std::vector<core::model_file> model;
  blob_digest list{};
  core::epoch number = 0;
  std::array<std::uint64_t, peers> rooms_now{}, before{};
  std::map<peer_id, core::epoch> number_of;
  std::shared_ptr<const core::view> last;
  std::vector<std::unique_ptr<peer>> all;
};

peer::peer(shoal_of_disks& shoal, std::size_t n, std::uint64_t room)
  : all(shoal), me(name_of(n)), store(shoal.time, room, shoal.pledges),
    work(shoal.time) {
  keeper = std::make_unique<file_keeper>(
    *this, job,
    std::make_shared<const model::unit_layout>(model::model_config{}), nullptr,
    true, *this,
    [&time = shoal.time](std::function<void()> run) {
      time.soon(2 * ms, std::move(run));
    },
    [] {});
}

void peer::fetch_blob(const blob_digest& digest, std::vector<peer_id> holders,
                      std::function<void(std::error_code)> done) {
  all.time.soon(200 * ms, [this, digest, holders, done] {
    for (const peer_id& h : holders)
      if (all.of(h).store.contains(digest))
        return all.time.soon(200 * ms, [this, digest, done] {
          done(store.put(digest, all.content.at(digest)));
        });
    done(runtime::errc::not_found);
  });
}

void peer::has_blob(const blob_digest& digest, core::job_id job,
                    const peer_id& whom, std::function<void(bool)> done) {
  all.time.soon(2 * second, [this, digest, job, whom, done] {
    const bool yes = all.of(whom).store.pledge(digest, job);
    all.time.soon(2 * second, [done, yes] { done(yes); });
  });
}

std::vector<peer_id> peer::members() const {
  std::vector<peer_id> out;
  for (const auto& p : all.all)
    if (p->me != me)
      out.push_back(p->me);
  return out;
}

void peer::run_later(std::chrono::seconds pause, std::function<void()> run) {
  all.time.after(pause.count() * second, std::move(run));
}

/// @returns files that were on no disk at some time, or are not where they belong
struct outcome {
  std::size_t lost = 0, misplaced = 0, removed = 0;
};
outcome run(std::uint64_t seed, bool pledges) {
  shoal_of_disks s(seed, pledges);
  outcome out;
  for (int change = 0; change < 30; ++change) {
    s.change_view();
    const core::nanoseconds next =
      s.time.now + core::nanoseconds(s.time.dice.below(6 * second));
    while (s.time.now < next && out.lost == 0) {
      s.time.run_until(s.time.now + 50 * ms);
      out.lost = s.lost();
    }
    if (out.lost > 0)
      return out;
  }
  s.time.run_until(s.time.now + 400 * second);
  out.lost = s.lost();
  out.misplaced = s.misplaced();
  for (const core::model_file& f : s.model)
    out.removed += !s.all[0]->store.on_disk(f.digest);
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(no_file_is_lost_and_each_comes_to_its_keepers) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const outcome is = run(seed, true);
    BOOST_TEST_CONTEXT("seed " << seed) {
      BOOST_TEST(is.lost == 0u);
      BOOST_TEST(is.misplaced == 0u);
    }
  }
}

BOOST_AUTO_TEST_CASE(peers_that_forget_their_pledges_lose_files) {
  std::size_t found = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed)
    found += run(seed, false).lost > 0;
  BOOST_TEST(found > 0u);
  BOOST_TEST_MESSAGE(found << " of 100 seeds lose files");
}

BOOST_AUTO_TEST_SUITE_END()
