// tests/actors/job_checkpoints_test.cpp -- checkpoints of whole runs: their
// writers, and disks that are full, torn or damaged.
#include "actors/checkpoint/checkpoint_files.hpp"
#include "actors/checkpoint/checkpoint_manifest.hpp"
#include "runtime/core/job_entry.hpp"
#include "runtime/model/units.hpp"
#include "tests/actors/job_fixture.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <regex>

BOOST_AUTO_TEST_SUITE(job_checkpoints)

namespace bdata = boost::unit_test::data;
namespace fs = std::filesystem;
using namespace shoal::test;

/// What "[checkpoint] step N: wrote A of B units, C KiB" says: C, in bytes.
double bytes_written(const shoal::test::small_shoal& s, std::size_t node,
                     std::uint64_t step) {
  const std::string begin =
    "[checkpoint] step " + std::to_string(step) + ": wrote ";
  for (const std::string& line : s.said(node))
    if (line.starts_with(begin)) {
      const std::string size = line.substr(line.find("units, ") + 7);
      const std::size_t unit = size.find(' ');
      BOOST_REQUIRE(unit != std::string::npos);
      const auto power = std::string(" KMG").find(size[unit + 1]);
      BOOST_REQUIRE(power != std::string::npos);
      BOOST_TEST(size.substr(unit + 2) == "iB");
      return std::ldexp(std::stod(size), 10 * int(power));
    }
  return 0;
}

BOOST_AUTO_TEST_CASE(each_peer_writes_its_part_of_a_checkpoint) {
  run_config run = small_run(2, 2);
  run.model.num_hidden_layers = 24;
  run.steps = 4;
  shoal::test::small_shoal s(4, run, some_text());
  s.submit();
  BOOST_REQUIRE(s.finish());
  double total = 0;
  for (std::size_t n = 0; n < 4; ++n)
    total += bytes_written(s, n, 4);
  for (std::size_t n = 0; n < 4; ++n) {
    const double own = bytes_written(s, n, 4);
    BOOST_TEST_MESSAGE("peer " << n << ": " << own << " of " << total);
    BOOST_TEST(own > total * 0.2);
    BOOST_TEST(own < total * 0.3);
  }
}

/// One unit after the other: at the end of a run, memory holds its state and a
/// copy of one unit, not two copies of the state.
BOOST_AUTO_TEST_CASE(the_last_checkpoint_copies_one_unit_at_a_time) {
  for (const bool tied : {false, true}) {
    run_config run = small_run(1, 1, tied);
    run.model.num_hidden_layers = 24;
    run.steps = 3;
    run.checkpoint_interval = 10; // so that the last one is the only one
    shoal::test::small_shoal s(1, run, some_text());
    s.submit();
    BOOST_REQUIRE(s.finish());
    BOOST_TEST(s.record(0).checkpoints == 1u);
    const shoal::model::unit_layout layout(run.model);
    std::size_t largest = 0;
    for (shoal::model::unit_index u = 0; u < layout.unit_count(); ++u)
      largest = std::max(largest, layout.unit_size(u));
    const std::size_t bytes = 3 * sizeof(float) * largest;
    BOOST_TEST(s.most_copied(0) >= bytes);
    BOOST_TEST(s.most_copied(0) < bytes + 4096);
  }
}

/// The other peer is dead, and there is no quorum to hand anything over to.
/// With the state that it follows, the leaver has the whole model.
BOOST_AUTO_TEST_CASE(who_leaves_without_a_quorum_saves_the_state) {
  run_config run = small_run(1, 2);
  run.checkpoint_interval = 100;
  shoal::test::small_shoal s(2, run, some_text(), true);
  s.submit();
  while (s.record(0).losses.size() < 3)
    s.step();
  s.silence(1);
  for (int i = 0; i < 300; ++i)
    s.step();
  const std::size_t reached = s.record(0).losses.size();
  BOOST_REQUIRE(reached < std::size_t(steps));
  BOOST_TEST(s.record(0).checkpoints == 0u);
  bool ends = false;
  s.leave_alone(0, ends);
  for (int i = 0; i < 1000 && !ends; ++i)
    s.step();
  BOOST_REQUIRE(ends);
  BOOST_TEST(s.record(0).checkpoints == 1u);
  const std::string texts = s.record(0).texts;
  BOOST_TEST_CONTEXT(texts)
  BOOST_TEST(
    texts.find("step " + std::to_string(reached) + " is saved on this node")
    != std::string::npos);
  s.kill(0);
  s.kill(1);
  s.restart(0);
  s.restart(1);
  BOOST_REQUIRE(s.finish());
  BOOST_TEST(s.record(0).repeated == 0u);
  require_same(s.record(0), false, false);
}

/// Without copies it has only its part, of which nothing can be made.
BOOST_AUTO_TEST_CASE(who_leaves_without_a_quorum_says_what_is_lost) {
  run_config run = small_run(1, 2);
  run.checkpoint_interval = 100;
  run.copies = 0;
  shoal::test::small_shoal s(2, run, some_text());
  s.submit();
  while (s.record(0).losses.size() < 3)
    s.step();
  s.silence(1);
  for (int i = 0; i < 300; ++i)
    s.step();
  bool ends = false;
  s.leave_alone(0, ends);
  for (int i = 0; i < 1000 && !ends; ++i)
    s.step();
  BOOST_REQUIRE(ends);
  BOOST_TEST(s.record(0).checkpoints == 0u);
  const std::string texts = s.record(0).texts;
  BOOST_TEST_CONTEXT(texts)
  BOOST_TEST(texts.find("ends with this node: it does not hold all")
             != std::string::npos);
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

/// All die after the checkpoint of step 6; when they return, one store or both
/// have been damaged. Then the other's copy is used, or the checkpoint of step
/// 5, and the log names the damaged file and the checkpoint that is used.
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
  BOOST_TEST(said("restoring from the checkpoint of step 5") == (stores == 2));
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

std::size_t count(const std::string& texts, const std::string& what) {
  std::size_t out = 0;
  for (auto at = texts.find(what); at != std::string::npos;
       at = texts.find(what, at + 1))
    ++out;
  return out;
}

/// Nodes whose stores have all files of a step's checkpoint.
std::size_t stores_with(const shoal::test::small_shoal& s, std::size_t nodes,
                        std::uint64_t step) {
  std::size_t out = 0;
  for (std::size_t n = 0; n < nodes; ++n) {
    const files_of files = s.checkpoint(n, step);
    out += !files.empty() && std::ranges::all_of(files, [](const auto& f) {
      return fs::exists(f.second);
    });
  }
  return out;
}

/// Three stores share each checkpoint, two have each part. All die, and one does
/// not return: what the others have is the whole.
BOOST_DATA_TEST_CASE(a_shared_checkpoint_survives_any_disk, bdata::xrange(3),
                     dead) {
  run_config run = small_run(1, 3);
  run.checkpoint_interval = 2;
  run.steps = 9;
  run.model.num_hidden_layers = 8;
  shoal::test::small_shoal s(3, run, some_text(), true);
  s.entry().want_part_keepers = 3;
  s.submit();
  std::uint64_t step = 0;
  const auto shared = [&] {
    for (step = 7; step > 3; --step) {
      std::map<std::string, std::size_t> stores;
      for (std::size_t n = 0; n < 3; ++n)
        for (const auto& [name, file] : s.checkpoint(n, step))
          stores[name] += fs::exists(file) ? 1 : 0;
      if (!stores.empty() && std::ranges::all_of(stores, [](const auto& f) {
            return f.second >= 2;
          }))
        return true;
    }
    return false;
  };
  while (s.record(0).losses.size() < 7 || !shared())
    s.step();
  BOOST_TEST(stores_with(s, 3, step) < 3u);
  for (std::size_t n = 0; n < 3; ++n)
    s.kill(n);
  const auto gone = std::size_t(dead);
  for (std::size_t n = 0; n < 3; ++n)
    if (n != gone)
      s.restart(n);
  BOOST_REQUIRE(s.finish());
  const auto r = s.record(gone == 0 ? 1 : 0);
  BOOST_TEST_MESSAGE(r.texts);
  BOOST_TEST(r.state == "done");
  BOOST_TEST(count(r.texts, "restoring from the checkpoint of step ") == 1u);
  run_config whole = small_run(1, 1);
  whole.checkpoint_interval = 2;
  whole.steps = 9;
  whole.model.num_hidden_layers = 8;
  shoal::test::small_shoal one(1, whole, some_text());
  one.submit();
  BOOST_REQUIRE(one.finish());
  BOOST_TEST(r.losses == one.record(0).losses,
             boost::test_tools::per_element());
}

/// A disk that is full for a while, or stays so, costs checkpoints, one warning
/// and no step: others publish, write and keep what it refuses.
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
  for (int i = 0; i < 100000 && s.record(0).losses.size() < 4; ++i)
    s.step();
  BOOST_TEST(s.record(0).losses.size() >= 4u);
  if (!to_the_end)
    s.fill_disk(victim, false);
  BOOST_REQUIRE(s.finish());
  require_same(s.record(0), false, false);
  BOOST_TEST(s.record(0).state == "done");
  BOOST_TEST(stores_with(s, 4, steps) >= 2u);
  const std::string texts = s.record(0).texts;
  BOOST_TEST(count(texts, "No space left on device") == 1u, texts);
}

/// The submitter keeps the text and computes nothing; all disks are full, and
/// the other keeper dies: the peer that reads the text from then on holds it in
/// memory.
BOOST_AUTO_TEST_CASE(a_text_that_no_disk_takes_is_held_in_memory) {
  shoal::test::small_shoal s(4, small_run(2, 1), some_text());
  s.make_witness(0);
  s.submit();
  while (s.record(0).losses.empty())
    s.step();
  for (std::size_t i = 0; i < 4; ++i)
    s.fill_disk(i, true);
  std::size_t victim = 1; // the only one that keeps the text and computes
  while (s.blobs(victim).empty())
    ++victim;
  s.kill(victim);
  const std::size_t before = s.record(0).losses.size();
  for (int i = 0; i < 100000 && s.record(0).losses.size() < before + 2; ++i)
    s.step();
  BOOST_TEST(s.record(0).losses.size() >= before + 2);
  std::size_t told = 0;
  for (std::size_t i = 0; i < 4; ++i)
    if (i != victim)
      told += count(s.record(i).texts, "held in memory");
  BOOST_TEST(told == 1u);
  for (std::size_t i = 0; i < 4; ++i)
    s.fill_disk(i, false);
  BOOST_REQUIRE(s.finish());
  require_same(s.record(0), false, false);
}

/// Nobody knows of it before the last checkpoint, which has no later one.
BOOST_DATA_TEST_CASE(
  a_last_checkpoint_that_a_full_disk_refuses_is_written_by_others,
  bdata::xrange(4), n) {
  run_config run = small_run(2, 2);
  run.checkpoint_interval = 100000;
  const auto victim = std::size_t(n);
  shoal::test::small_shoal s(4, run, some_text());
  s.submit();
  while (s.record(0).losses.size() < steps - 1)
    s.step();
  s.fill_disk(victim, true);
  BOOST_REQUIRE(s.finish());
  require_same(s.record(0), false, false);
  BOOST_TEST(s.record(0).state == "done");
  BOOST_TEST(s.record(0).checkpoints == 1u);
  BOOST_TEST(stores_with(s, 4, steps) >= 2u);
}

/// A peer whose disk stays full: checkpoints come, and the run ends; with
/// replicas, or with followers alone.
BOOST_DATA_TEST_CASE(a_disk_that_stays_full_costs_few_checkpoints,
                     (bdata::make({2, 1}) ^ bdata::make({2, 3}))
                       * bdata::xrange(4),
                     replicas, stages, n) {
  const auto victim = std::size_t(n);
  run_config run = small_run(replicas, stages);
  run.checkpoint_interval = 1;
  run.copy_every = 1;
  run.steps = 12;
  run.validation_enable = false;
  shoal::test::small_shoal s(4, run, some_text());
  s.submit();
  while (s.record(0).losses.empty())
    s.step();
  s.fill_disk(victim, true);
  BOOST_REQUIRE(s.finish());
  const auto r = s.record(victim == 0 ? 1 : 0);
  BOOST_TEST(r.losses.size() == 12u);
  BOOST_TEST(r.state == "done");
  BOOST_TEST(r.checkpoints >= 4u);
  BOOST_TEST(count(r.texts, "No space left on device") <= 1u, r.texts);
  BOOST_TEST(stores_with(s, 4, 12) >= 2u);
}

BOOST_DATA_TEST_CASE(a_disk_that_has_room_again_is_used_again, bdata::xrange(4),
                     n) {
  const auto victim = std::size_t(n);
  run_config run = small_run(2, 2);
  run.checkpoint_interval = 1;
  run.steps = 40;
  run.validation_enable = false;
  shoal::test::small_shoal s(4, run, some_text());
  s.submit();
  while (s.record(0).losses.empty())
    s.step();
  s.fill_disk(victim, true);
  while (s.record(0).losses.size() < 10)
    s.step();
  s.fill_disk(victim, false);
  BOOST_REQUIRE(s.finish());
  std::uint64_t before = 0, after = 0;
  for (std::uint64_t step = 5; step <= 10; ++step)
    before += bytes_written(s, victim, step);
  for (std::uint64_t step = 11; step <= 40; ++step)
    after += bytes_written(s, victim, step);
  BOOST_TEST(before == 0u);
  BOOST_TEST(after > 0u);
}

void flip_a_bit(const fs::path& file) {
  std::string text = contents(file);
  text.back() = char(text.back() ^ 4);
  overwrite(file, text);
}

/// The newest checkpoint, or all of them, are damaged in all stores while the
/// run goes on; then a death makes one needed. A damaged one is given up, once,
/// and the run goes on from the one before, or from the origin.
BOOST_DATA_TEST_CASE(a_checkpoint_damaged_everywhere_is_given_up,
                     bdata::make({false, true}), all) {
  run_config run = small_run(1, 2);
  run.copies = 0; // else nothing would be lost
  run.checkpoint_interval = 2;
  run.steps = 9;
  run.keep_latest_k = 2;
  shoal::test::small_shoal s(2, run, some_text());
  s.submit();
  while (s.record(0).losses.size() < 7)
    s.step();
  std::vector<std::uint64_t> kept; // newest first
  for (std::uint64_t step = 7; step > 0; --step)
    if (stores_with(s, 2, step) == 2)
      kept.push_back(step);
  BOOST_REQUIRE(kept.size() >= 2u);
  for (const std::uint64_t step : kept)
    for (const std::size_t n : {0u, 1u})
      if (all || step == kept.front())
        for (const auto& [name, file] : s.checkpoint(n, step))
          if (name.starts_with("model-") || name.starts_with("optimizer-"))
            flip_a_bit(file);
  s.kill(0);
  s.restart(0);
  BOOST_REQUIRE(s.finish());
  const auto r = s.record(1);
  BOOST_TEST_MESSAGE(r.texts);
  BOOST_TEST(r.state == "done");
  const auto said = [&](const char* before, std::uint64_t step,
                        const char* after) {
    return count(r.texts, before + std::to_string(step) + after);
  };
  constexpr char of[] = "the checkpoint of step ";
  constexpr char given_up[] =
    " is given up: no peer that is here has it whole\n";
  BOOST_TEST(said(of, kept[0], given_up) == 1u);
  BOOST_TEST(said(of, kept[1], given_up) == (all ? 1u : 0u));
  // What cannot be had whole is not begun with.
  BOOST_TEST(said("restoring from the checkpoint of step ", kept[0], "\n")
             == 0u);
  BOOST_TEST(said("restoring from the checkpoint of step ", kept[1], "\n")
             == (all ? 0u : 1u));
  run_config whole = small_run(1, 1);
  whole.checkpoint_interval = 2;
  whole.steps = 9;
  shoal::test::small_shoal one(1, whole, some_text());
  one.submit();
  BOOST_REQUIRE(one.finish());
  BOOST_TEST(r.losses == one.record(0).losses,
             boost::test_tools::per_element());
}

/// Two jobs that run the same training have equal files, each of which a store
/// has once. The one that is ahead drops its old checkpoints earlier than the
/// other one.
BOOST_AUTO_TEST_CASE(a_job_drops_no_file_that_another_needs) {
  run_config run = small_run(1, 1);
  run.checkpoint_interval = 2;
  run.steps = 12;
  run.keep_latest_k = 2;
  shoal::test::small_shoal s(1, run, some_text());
  s.submit();
  while (s.record(0).losses.size() < 3)
    s.step();
  const shoal::core::job_id twin = s.submit_twin();
  const auto whole = [&](shoal::core::job_id job, std::uint64_t step) {
    const auto files = s.checkpoint(0, step, job);
    return !files.empty() && std::ranges::all_of(files, [](const auto& f) {
      return std::filesystem::exists(f.second);
    });
  };
  std::size_t looked = 0, published = 0;
  while (!s.ended()) {
    s.step();
    for (const shoal::core::job_id job : {shoal::core::job_id{1}, twin}) {
      const auto steps = s.checkpoints(0, job);
      if (job == twin && steps.size() != published) {
        published = steps.size();
        ++looked;
      }
      for (std::size_t i =
             steps.size() - std::min<std::size_t>(2, steps.size());
           i < steps.size(); ++i)
        BOOST_REQUIRE_MESSAGE(whole(job, steps[i]),
                              "job " << job << " lacks step " << steps[i]);
    }
  }
  BOOST_TEST(looked >= 3u);    // the twin had old ones to drop, too
  BOOST_TEST(!whole(twin, 2)); // what neither needs is gone
}

/// What a client has given says nowhere where the weights are, which is the
/// same on all peers: the job ends, and says why.
BOOST_DATA_TEST_CASE(a_model_without_weights_fails_its_job,
                     bdata::make({false, true}), listed) {
  shoal::test::small_shoal s(2, small_run(1, 2), some_text());
  shoal::actors::manifest all;
  if (listed) { // in an index that makes no sense
    const std::string index = "{}";
    all.files.push_back({shoal::actors::index_name(shoal::actors::model_files),
                         s.upload(0, index), index.size()});
  }
  s.entry().origin = s.upload(0, shoal::actors::to_json(all));
  s.entry().origin_bytes = all.total_bytes();
  s.submit();
  BOOST_REQUIRE(s.finish(20000));
  const auto r = s.record(0);
  BOOST_TEST(r.state == "failed");
  // As the view tells all peers.
  const std::string& cause = s.view().jobs.front().cause;
  BOOST_TEST(cause.find("says nowhere where its weights are")
               != std::string::npos,
             cause);
}

BOOST_AUTO_TEST_SUITE_END()
