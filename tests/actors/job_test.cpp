// tests/actors/job_test.cpp -- whole runs, message by message.
//
// The same run on every layout, with peers that die at any message: the losses
// must be those of one peer, to the last bit for pipelines.
#include "actors/small_shoal.hpp"
#include "runtime/core/training/detours.hpp"
#include "runtime/core/training/plan.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <regex>

namespace bdata = boost::unit_test::data;
namespace fs = std::filesystem;
using shoal::runtime::run_config;

namespace {

constexpr std::int64_t steps = 6;

run_config
small_run(std::int64_t replicas, std::int64_t stages, bool tied = false) {
  run_config run;
  run.model.vocab_size = 256;
  run.model.hidden_size = 16;
  run.model.intermediate_size = 24;
  run.model.num_hidden_layers = 4;
  run.model.num_attention_heads = 2;
  run.model.num_key_value_heads = 1;
  run.model.head_dim = 8;
  run.model.max_position_embeddings = 16;
  run.model.tie_word_embeddings = tied;
  run.model.bos_token_id.reset();
  run.model.eos_token_ids.clear();
  run.steps = steps;
  run.seq_len = 8;
  run.local_batch_size = 1;
  run.global_batch_size = 6;
  run.replicate_degree = replicas;
  run.pipeline_degree = stages;
  run.validation_freq = 3;
  run.validation_steps = 2;
  run.checkpoint_interval = 4;
  return run;
}

std::string some_text() {
  std::string text;
  for (int i = 0; i < 400; ++i)
    text += char('a' + (i * i) % 23);
  return text;
}

/// The run on one peer.
const shoal::test::run_record& alone(bool tied) {
  static std::map<bool, shoal::test::run_record> known;
  if (!known.contains(tied)) {
    shoal::test::small_shoal s(1, small_run(1, 1, tied), some_text());
    s.submit();
    BOOST_REQUIRE(s.finish());
    known[tied] = s.record(0);
  }
  return known[tied];
}

void require_same(const shoal::test::run_record& got, bool exact, bool tied) {
  const auto& want = alone(tied);
  BOOST_REQUIRE_EQUAL(got.losses.size(), want.losses.size());
  for (std::size_t i = 0; i < got.losses.size(); ++i) {
    if (exact) {
      BOOST_TEST(got.losses[i] == want.losses[i]);
      BOOST_TEST(got.norms[i] == want.norms[i]);
    } else {
      BOOST_TEST(std::abs(got.losses[i] / want.losses[i] - 1) < 1e-5);
      BOOST_TEST(std::abs(got.norms[i] / want.norms[i] - 1) < 1e-5);
    }
  }
}

} // namespace

BOOST_AUTO_TEST_SUITE(job)

BOOST_AUTO_TEST_CASE(one_peer_trains_evaluates_and_saves) {
  const auto& r = alone(false);
  BOOST_TEST(r.losses.size() == std::size_t(steps));
  BOOST_TEST(r.state == "done");
  BOOST_TEST(r.evaluations == 3u); // steps 0, 3, 6
  BOOST_TEST(r.checkpoints == 2u); // steps 4, 6
  BOOST_TEST(r.losses.back() < r.losses.front());
}

BOOST_DATA_TEST_CASE(stages_change_no_bit,
                     bdata::make({2, 3, 4}) * bdata::make({1, 2, 4})
                       * bdata::make({false, true}),
                     stages, peers, tied) {
  // With fewer peers than stages some stages share a peer.
  shoal::test::small_shoal s(std::size_t(peers), small_run(1, stages, tied),
                             some_text());
  s.submit();
  BOOST_REQUIRE(s.finish());
  require_same(s.record(0), true, tied);
}

/// A schedule on a number of stages and peers.
struct scheduled_run {
  const char* schedule;
  std::int64_t runs; ///< of blocks on each peer
  std::int64_t stages;
  std::size_t peers;
};
std::ostream& operator<<(std::ostream& out, const scheduled_run& r) {
  return out << r.schedule << " with " << r.runs << " runs, " << r.stages
             << " stages on " << r.peers << " peers";
}
const scheduled_run scheduled_runs[] = {
  {"1f1b", 1, 2, 2},        {"1f1b", 1, 4, 2},        {"interleaved", 2, 2, 2},
  {"zero_bubble", 1, 2, 2}, {"zero_bubble", 1, 4, 4}, {"zero_bubble", 1, 4, 2},
  {"zero_bubble", 2, 2, 2}, {"auto", -1, 3, 3},
};

run_config
with_schedule(run_config run, const char* schedule, std::int64_t runs) {
  run.schedule = schedule;
  run.virtual_degree = runs;
  return run;
}

BOOST_DATA_TEST_CASE(schedules_change_no_bit,
                     bdata::make(scheduled_runs) * bdata::make({false, true}),
                     r, tied) {
  shoal::test::small_shoal s(
    r.peers, with_schedule(small_run(1, r.stages, tied), r.schedule, r.runs),
    some_text());
  s.submit();
  // The plan does run what is asked for.
  const auto& place = s.plan().jobs.at(0);
  if (r.runs > 0) {
    BOOST_TEST(std::string(shoal::core::to_text(place.schedule)) == r.schedule);
    BOOST_TEST(place.replicas.at(0).stages.size()
               == std::size_t(r.stages * r.runs));
  }
  BOOST_REQUIRE(s.finish());
  require_same(s.record(0), true, tied);
}

BOOST_DATA_TEST_CASE(replicas_agree_to_rounding,
                     bdata::make({2, 3}) * bdata::make({1, 2})
                       * bdata::make({false, true}),
                     replicas, stages, tied) {
  const auto peers = std::size_t(replicas * stages);
  shoal::test::small_shoal s(peers, small_run(replicas, stages, tied),
                             some_text());
  s.submit();
  BOOST_REQUIRE(s.finish());
  BOOST_TEST(s.plan().jobs.empty());
  for (std::size_t n = 0; n < peers; ++n)
    require_same(s.record(n), false, tied);
}

BOOST_AUTO_TEST_CASE(unequal_stages_and_a_replica_on_one_peer) {
  run_config run = small_run(2, 2);
  run.layers_per_stage = {3, 1};
  shoal::test::small_shoal s(3, run, some_text());
  s.submit();
  BOOST_REQUIRE(s.finish());
  require_same(s.record(0), false, false);
}

const scheduled_run schedules[] = {
  {"1f1b", 1, 2, 4}, {"interleaved", 2, 2, 4}, {"zero_bubble", 1, 2, 4}};

/// A 2 x 2 run in which a peer dies after so many messages and comes back
/// some time later.
BOOST_DATA_TEST_CASE(a_death_at_any_message_loses_no_step,
                     bdata::make(schedules)
                       * (bdata::xrange(20, 1105, 7) ^ bdata::xrange(155)),
                     r, when, turn) {
  shoal::test::small_shoal s(
    r.peers, with_schedule(small_run(2, r.stages), r.schedule, r.runs),
    some_text());
  s.submit();
  const auto victim = std::size_t(turn) % 4;
  for (int i = 0; i < when && !s.ended(); ++i)
    s.step();
  // The run takes some 1,110 messages: nobody dies after its end.
  BOOST_REQUIRE(!s.ended());
  s.kill(victim);
  for (int i = 0; i < 150 && !s.ended(); ++i)
    s.step();
  if (!s.ended())
    s.restart(victim);
  BOOST_REQUIRE(s.finish());
  const std::size_t witness = (victim + 1) % 4;
  require_same(s.record(witness), false, false);
}

/// Kills a peer after so many messages, starts it again some time later and
/// runs to the end. @returns false if the run had ended before
bool die_and_return(shoal::test::small_shoal& s, std::size_t victim, int when) {
  for (int i = 0; i < when && !s.ended(); ++i)
    s.step();
  if (s.ended())
    return false;
  s.kill(victim);
  for (int i = 0; i < 150 && !s.ended(); ++i)
    s.step();
  if (!s.ended())
    s.restart(victim);
  BOOST_REQUIRE(s.finish());
  return true;
}

/// One pipeline, on as many peers as stages, with fewer or with one to spare:
/// who follows has what died with its owner.
BOOST_DATA_TEST_CASE(a_death_without_replicas_loses_no_step,
                     bdata::make({2, 3, 4}) * bdata::make({0, 1})
                       * bdata::make({false, true})
                       * bdata::xrange(31, 700, 53),
                     stages, spare, tied, when) {
  const auto peers = std::size_t(stages + spare);
  shoal::test::small_shoal s(peers, small_run(1, stages, tied), some_text());
  s.submit();
  BOOST_TEST(!s.plan().jobs.at(0).followers.empty());
  const auto victim = std::size_t(when) % peers;
  if (!die_and_return(s, victim, when))
    return; // with few peers a run takes fewer messages
  const auto& record = s.record((victim + 1) % peers);
  require_same(record, true, tied);
  BOOST_TEST(record.lost_states == 0u);
}

/// Copies of whole states every so many steps: few steps are run again, with
/// the same bits.
BOOST_DATA_TEST_CASE(a_death_goes_back_to_the_newest_copies,
                     bdata::make({2, 3}) * bdata::make({2, 3, 4})
                       * bdata::make({0, 1}) * bdata::make({false, true})
                       * bdata::xrange(150, 700, 67),
                     every, stages, spare, tied, when) {
  const auto peers = std::size_t(stages + spare);
  run_config run = small_run(1, stages, tied);
  run.copy_every = every;
  run.checkpoint_enable = false;
  shoal::test::small_shoal s(peers, run, some_text());
  s.submit();
  BOOST_TEST(s.plan().jobs.at(0).copy_every == std::uint32_t(every));
  const auto victim = std::size_t(when) % peers;
  if (!die_and_return(s, victim, when))
    return;
  const auto& record = s.record((victim + 1) % peers);
  require_same(record, true, tied);
  // Copies were still on their way when the next were due, at worst.
  BOOST_TEST(record.repeated <= 2 * std::size_t(every));
}

/// Two copies: two die at once.
BOOST_DATA_TEST_CASE(two_deaths_at_once_lose_no_step_of_two_copies,
                     bdata::xrange(100, 700, 37), when) {
  run_config run = small_run(1, 4);
  run.copies = 2;
  shoal::test::small_shoal s(4, run, some_text());
  s.submit();
  for (int i = 0; i < when; ++i)
    s.step();
  BOOST_REQUIRE(!s.ended());
  const auto first = std::size_t(when) % 4, second = (first + 1) % 4;
  s.kill(first);
  s.kill(second);
  BOOST_REQUIRE(s.finish());
  const auto& record = s.record((first + 2) % 4);
  require_same(record, true, false);
  BOOST_TEST(record.lost_states == 0u);
}

/// So much state that a step cannot move it, and steps enough to move it all.
run_config long_run(run_config run) {
  run.steps = 40;
  run.copy_every = 1;
  run.validation_freq = 16;
  run.checkpoint_interval = 12;
  return run;
}
constexpr std::uint64_t large_state = 500'000'000;
/// Nothing to wait for, where replicas sum their gradients.
const shoal::core::network_profile fast_network{"fast", 1'000,
                                                1'000'000'000'000};

/// One that joins, and where.
struct joined_run {
  std::int64_t replicas, stages;
  std::size_t peers; ///< with the one that comes later
};
std::ostream& operator<<(std::ostream& out, const joined_run& r) {
  return out << r.replicas << " x " << r.stages << " on " << r.peers;
}
const joined_run joined_runs[] = {{2, 1, 2}, {1, 2, 2}, {1, 3, 3}, {2, 2, 4}};

/// Losses of the same run without a join, on as many peers or one.
void require_undisturbed(const joined_run& r, bool tied,
                         const shoal::test::run_record& got) {
  shoal::test::small_shoal one(1, long_run(small_run(1, 1, tied)), some_text());
  one.submit();
  BOOST_REQUIRE(one.finish());
  const auto want = one.record(0);
  BOOST_REQUIRE_EQUAL(got.losses.size(), want.losses.size());
  for (std::size_t i = 0; i < got.losses.size(); ++i)
    if (r.replicas == 1)
      BOOST_TEST(got.losses[i] == want.losses[i]);
    else
      BOOST_TEST(std::abs(got.losses[i] / want.losses[i] - 1) < 1e-5);
}

/// A shoal whose last peer is away when its job begins.
std::unique_ptr<shoal::test::small_shoal>
without_the_last(const joined_run& r, bool tied) {
  auto s = std::make_unique<shoal::test::small_shoal>(
    r.peers, long_run(small_run(r.replicas, r.stages, tied)), some_text());
  s->entry().block_state_bytes = large_state;
  s->kill(r.peers - 1);
  s->submit();
  return s;
}

/// What a joiner needs comes while steps run; when it takes part nothing
/// moves any more.
BOOST_DATA_TEST_CASE(a_joiner_is_brought_its_state_while_steps_run,
                     bdata::make(joined_runs) * bdata::make({false, true}), r,
                     tied) {
  const auto held = without_the_last(r, tied);
  auto& s = *held;
  const std::size_t joiner = r.peers - 1;
  while (s.record(0).losses.size() < 2)
    s.step();
  s.restart(joiner);
  const auto& plan = s.plan().jobs.at(0);
  const auto arriving = plan.arriving;
  BOOST_REQUIRE(!arriving.empty());
  const std::size_t before = s.record(0).losses.size();
  while (!s.ended() && !s.plan().jobs.at(0).arriving.empty())
    s.step();
  BOOST_REQUIRE(!s.ended());
  BOOST_TEST(s.record(0).losses.size() > before); // steps ran meanwhile
  std::size_t units = 0;
  for (const auto& f : arriving)
    units += f.last_unit - f.first_unit;
  BOOST_TEST(s.transfers(shoal::actors::link_kind::arrival) == units);
  const std::size_t moved = s.transfers(shoal::actors::link_kind::state);
  BOOST_REQUIRE(s.finish());
  BOOST_TEST(s.transfers(shoal::actors::link_kind::state) == moved);
  require_undisturbed(r, tied, s.record(0));
  BOOST_TEST(s.record(0).lost_states == 0u);
}

/// Any peer may die while state is on its way; the joiner too.
BOOST_DATA_TEST_CASE(a_death_while_state_arrives_loses_no_step,
                     bdata::make({joined_runs[2], joined_runs[3]})
                       * bdata::xrange(0, 3) * bdata::xrange(0, 700, 41),
                     r, turn, when) {
  const auto held = without_the_last(r, false);
  auto& s = *held;
  while (s.record(0).losses.size() < 2)
    s.step();
  s.restart(r.peers - 1);
  BOOST_REQUIRE(!s.plan().jobs.at(0).arriving.empty());
  const auto victim = std::size_t(turn) % r.peers;
  if (!die_and_return(s, victim, when))
    return;
  const auto record = s.record(victim == 0 ? 1 : 0); // there from the start
  require_undisturbed(r, false, record);
  BOOST_TEST(record.lost_states == 0u);
}

/// A layout that loses a peer which does not come back.
const joined_run detour_runs[] = {{2, 2, 4}, {3, 2, 6}, {2, 3, 6}, {1, 3, 3}};

/// Who holds the dead stage's units runs them for its replica too, at once;
/// when it is back and has its state again all is as before, without a wait.
BOOST_DATA_TEST_CASE(others_stand_in_for_a_dead_stage_while_its_state_moves,
                     bdata::make(detour_runs) * bdata::make({false, true})
                       * bdata::xrange(0, 6),
                     r, tied, victim) {
  if (std::size_t(victim) >= r.peers)
    return;
  shoal::test::small_shoal s(
    r.peers, long_run(small_run(r.replicas, r.stages, tied)), some_text());
  s.entry().block_state_bytes = large_state;
  s.set_network(fast_network);
  s.submit();
  const std::size_t witness = victim == 0 ? 1 : 0;
  while (s.record(witness).losses.size() < 3)
    s.step();
  const std::size_t moved = s.transfers(shoal::actors::link_kind::state);
  s.kill(std::size_t(victim));
  const auto place = [&] { return s.plan().jobs.at(0); };
  BOOST_TEST(shoal::core::makes_detour(place().replicas) == (r.replicas > 1));
  BOOST_TEST(shoal::core::replica_count(place().replicas)
             == std::uint32_t(r.replicas)); // none is dropped
  const std::size_t before = s.record(witness).losses.size();
  while (!s.ended() && s.record(witness).losses.size() < before + 4)
    s.step();
  s.restart(std::size_t(victim));
  while (!s.ended()
         && (!place().arriving.empty()
             || shoal::core::makes_detour(place().replicas)))
    s.step();
  BOOST_REQUIRE(!s.ended());
  BOOST_REQUIRE(s.finish());
  // Nobody has waited for state.
  BOOST_TEST(s.transfers(shoal::actors::link_kind::state) == moved);
  require_undisturbed(r, tied, s.record(witness));
  BOOST_TEST(s.record(witness).lost_states == 0u);
}

/// Another death, at any message of the detour, and the return of one.
BOOST_DATA_TEST_CASE(a_second_death_on_a_detour_loses_no_step,
                     bdata::make({detour_runs[0], detour_runs[1]})
                       * bdata::make({"1f1b", "zero_bubble"})
                       * bdata::xrange(0, 600, 47),
                     r, schedule, when) {
  run_config run = long_run(small_run(r.replicas, r.stages));
  run.copies = 2; // who stands in is followed
  run.schedule = schedule;
  shoal::test::small_shoal s(r.peers, run, some_text());
  s.entry().block_state_bytes = large_state;
  s.set_network(fast_network);
  s.submit();
  while (s.record(0).losses.size() < 2)
    s.step();
  s.kill(r.peers - 1);
  const std::size_t second = 1 + std::size_t(when) % (r.peers - 2);
  if (!die_and_return(s, second, when))
    return;
  require_undisturbed(r, false, s.record(0));
  BOOST_TEST(s.record(0).lost_states == 0u);
}

BOOST_AUTO_TEST_CASE(both_copies_lost_is_said_and_survived) {
  shoal::test::small_shoal s(4, small_run(2, 2), some_text());
  s.submit();
  while (s.record(0).checkpoints == 0)
    s.step();
  // All but one die at once: no stage is complete any more.
  const auto& stages = s.plan().jobs.at(0).replicas;
  const auto keep = stages[0].stages[0].where.peer;
  std::size_t kept = 0;
  for (std::size_t n = 0; n < 4; ++n)
    if (s.view().members.size() > 1) {
      shoal::core::peer_id id{};
      id[0] = std::uint8_t(n + 1);
      if (id == keep)
        kept = n;
      else
        s.kill(n);
    }
  BOOST_REQUIRE(s.finish());
  BOOST_TEST((s.view().jobs[0].state == shoal::core::job_state::done));
  BOOST_TEST(s.view().jobs[0].done_step == std::uint64_t(steps));
  static_cast<void>(kept);
}

/// Two stages, so that a death goes back to a checkpoint; it is in two stores,
/// and one of them has rotted.
BOOST_DATA_TEST_CASE(what_has_rotted_in_one_store_comes_from_another,
                     bdata::make({0, 1}), n) {
  const auto victim = std::size_t(n);
  run_config run = small_run(1, 2);
  run.copies = 0; // else nothing would be lost
  shoal::test::small_shoal s(2, run, some_text());
  s.submit();
  while (s.record(1 - victim).losses.size() < 5)
    s.step();
  s.kill(victim);
  s.rot(victim);
  s.restart(victim);
  BOOST_REQUIRE(s.finish());
  BOOST_TEST((s.view().jobs[0].state == shoal::core::job_state::done));
}

/// What "[checkpoint] step N: wrote A of B units, C bytes" says: C.
std::uint64_t bytes_written(const shoal::test::small_shoal& s, std::size_t node,
                            std::uint64_t step) {
  const std::string begin =
    "[checkpoint] step " + std::to_string(step) + ": wrote ";
  for (const std::string& line : s.said(node))
    if (line.starts_with(begin))
      return std::stoull(line.substr(line.find("units, ") + 7));
  return 0;
}

BOOST_AUTO_TEST_CASE(each_peer_writes_its_part_of_a_checkpoint) {
  run_config run = small_run(2, 2);
  run.model.num_hidden_layers = 24;
  run.steps = 4;
  shoal::test::small_shoal s(4, run, some_text());
  s.submit();
  BOOST_REQUIRE(s.finish());
  std::uint64_t total = 0;
  for (std::size_t n = 0; n < 4; ++n)
    total += bytes_written(s, n, 4);
  for (std::size_t n = 0; n < 4; ++n) {
    const std::uint64_t own = bytes_written(s, n, 4);
    BOOST_TEST_MESSAGE("peer " << n << ": " << own << " of " << total);
    BOOST_TEST(own > total * 20 / 100);
    BOOST_TEST(own < total * 30 / 100);
  }
}

using files_of = std::map<std::string, fs::path>;

std::string contents(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void overwrite(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
}

/// What a disk does to a checkpoint.
struct damage {
  const char* name;
  const char* file; ///< one that is hit
  void (*act)(const files_of& files);
};
std::ostream& operator<<(std::ostream& out, const damage& d) {
  return out << d.name;
}
constexpr char model_2[] = "model-00002-of-00006.safetensors";
constexpr char optimizer_3[] = "optimizer-00003-of-00006.safetensors";
const damage damages[] = {
  {"torn", model_2,
   [](const files_of& f) {
     std::string text = contents(f.at(model_2));
     std::fill(text.begin() + long(text.size() / 2), text.end(), '\0');
     overwrite(f.at(model_2), text);
   }},
  {"bit-flipped", optimizer_3,
   [](const files_of& f) {
     std::string text = contents(f.at(optimizer_3));
     text.back() = char(text.back() ^ 4);
     overwrite(f.at(optimizer_3), text);
   }},
  {"truncated", model_2,
   [](const files_of& f) {
     fs::resize_file(f.at(model_2), fs::file_size(f.at(model_2)) / 3);
   }},
  {"swapped", optimizer_3,
   [](const files_of& f) {
     const std::string text = contents(f.at(model_2));
     overwrite(f.at(model_2), contents(f.at(optimizer_3)));
     overwrite(f.at(optimizer_3), text);
   }},
  {"a bad manifest", "manifest ",
   [](const files_of& f) { overwrite(f.at("manifest"), "{}"); }},
};

/// All die after the checkpoint of step 6; one store or both have been damaged
/// when they are back. Then the other's copy is used, or the checkpoint of
/// step 4, and the log says which file was damaged and what is used.
BOOST_DATA_TEST_CASE(damaged_checkpoints_are_not_gone_on_from,
                     bdata::make(damages) * bdata::make({1, 2}), d, stores) {
  run_config run = small_run(1, 2);
  run.checkpoint_interval = 2;
  run.steps = 9;
  shoal::test::small_shoal s(2, run, some_text(), true);
  s.submit();
  while (s.record(0).losses.size() < 7)
    s.step();
  std::vector<files_of> files;
  for (std::size_t n : {0u, 1u})
    files.push_back(s.checkpoint(n, 6));
  s.kill(0);
  s.kill(1);
  for (int n = 0; n < stores; ++n)
    d.act(files[std::size_t(n)]);
  s.restart(0);
  s.restart(1);
  BOOST_REQUIRE(s.finish());
  BOOST_TEST((s.view().jobs[0].state == shoal::core::job_state::done));
  const auto r = s.record(0);
  BOOST_TEST_MESSAGE(r.texts);
  const auto said = [&](const std::string& what) {
    return r.texts.find(what) != std::string::npos;
  };
  BOOST_TEST(std::regex_search(
    r.texts, std::regex(std::string(d.file)
                        + "[0-9a-f]* of the checkpoint of step 6 is damaged "
                          "here: it was set aside")));
  BOOST_TEST(said("restoring from the checkpoint of step 6") == (stores == 1));
  BOOST_TEST(said("restoring from the checkpoint of step 4") == (stores == 2));
  // One process for all of it has the same losses.
  run_config whole = small_run(1, 1);
  whole.checkpoint_interval = 2;
  whole.steps = 9;
  shoal::test::small_shoal one(1, whole, some_text());
  one.submit();
  BOOST_REQUIRE(one.finish());
  BOOST_TEST(r.losses == one.record(0).losses,
             boost::test_tools::per_element());
}

/// A disk that is full for a while costs checkpoints, one warning and no step;
/// one that is full at the end makes the end wait.
BOOST_DATA_TEST_CASE(a_full_disk_of_any_peer_costs_no_model,
                     bdata::xrange(4) * bdata::make({false, true}), n,
                     to_the_end) {
  run_config run = small_run(2, 2);
  run.checkpoint_interval = 1;
  const auto victim = std::size_t(n);
  shoal::test::small_shoal s(4, run, some_text());
  s.submit();
  while (s.record(0).losses.empty())
    s.step();
  s.fill_disk(victim, true);
  const std::size_t until = to_the_end ? steps : 4;
  for (int i = 0; i < 100000 && s.record(0).losses.size() < until; ++i)
    s.step();
  BOOST_TEST(s.record(0).losses.size() >= until);
  for (int i = 0; to_the_end && i < 2000; ++i) {
    s.step();
    BOOST_REQUIRE(!s.ended());
  }
  s.fill_disk(victim, false);
  BOOST_REQUIRE(s.finish());
  require_same(s.record(0), false, false);
  const std::string texts = s.record(0).texts;
  const auto count = [&](const std::string& what) {
    std::size_t out = 0;
    for (auto at = texts.find(what); at != std::string::npos;
         at = texts.find(what, at + 1))
      ++out;
    return out;
  };
  BOOST_TEST(count("could not be written") <= 1u);
  BOOST_TEST(count("No space left on device") >= 1u);
  BOOST_TEST(count("checkpoints are written again") == 1u);
  BOOST_TEST(count("cannot be written") == (to_the_end ? 1u : 0u));
}

BOOST_AUTO_TEST_CASE(draining_ends_after_a_step_with_a_checkpoint) {
  run_config run = small_run(2, 2);
  run.steps = 1000;
  run.checkpoint_interval = 100000;
  shoal::test::small_shoal s(4, run, some_text());
  s.submit();
  while (s.record(0).losses.size() < 3)
    s.step();
  s.drain();
  BOOST_REQUIRE(s.finish());
  const auto r = s.record(0);
  BOOST_TEST(r.state == "cancelled");
  BOOST_TEST(r.losses.size() < 10u);
  BOOST_TEST(r.checkpoints == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
