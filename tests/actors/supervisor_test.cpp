// tests/actors/supervisor_test.cpp -- where a run file's roles go, and what
// stays of an ended job on the disk.
#include "actors/checkpoint/checkpoint_files.hpp"
#include "actors/checkpoint/shard_list.hpp"
#include "actors/job/job_cleaner.hpp"
#include "actors/placed_roles.hpp"
#include "actors/serving/version_blobs.hpp"
#include "runtime/jobs/job_journal.hpp"
#include "runtime/jobs/unheld_roles.hpp"
#include "runtime/store/store.hpp"
#include "tests/runtime/node/lone_ports.hpp"
#include "tests/support/scratch.hpp"

#include <boost/test/unit_test.hpp>

#include <fstream>

namespace shoal::actors {

BOOST_AUTO_TEST_SUITE(supervisor)

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

core::peer_id peer(std::uint8_t n) {
  return {n};
}

core::view three_peers() {
  core::view v;
  for (std::uint8_t n = 1; n <= 3; ++n) {
    core::member m;
    m.id.peer = peer(n);
    m.name = std::string(1, char('a' + n - 1));
    v.members.push_back(m);
  }
  v.members[2].witness = true;
  return v;
}

/// Replica 0: a, b; replica 1: b, a.
core::assignment two_by_two() {
  core::assignment a{7, {1, core::island_place{}}};
  for (int r = 0; r < 2; ++r) {
    core::replica_place replica;
    for (int s = 0; s < 2; ++s)
      replica.stages.push_back(
        core::stage_on({peer(std::uint8_t(1 + (r + s) % 2)), 0}, 0, 1));
    a.islands[0].replicas.push_back(replica);
  }
  return a;
}

std::vector<std::string> addresses(const std::string& where, std::uint8_t self,
                                   const core::view& v = three_peers()) {
  std::vector<std::string> out;
  for (const auto& r :
       wanted_here(v, two_by_two(), {{"mine", where, "{}"}}, peer(self)))
    out.push_back(r.address);
  return out;
}

/// A node with nothing but its disk: what the cleaner sees.
class bare_node {
public:
  bare_node() {
    store_ = runtime::store::open(folder / "blobs");
    log_ = runtime::open_job_journal(folder / "jobs");
    runtime::node_parts p;
    p.data_dir = folder;
    p.blobs = store_.get();
    p.log = log_.get();
    wiring_ = std::make_unique<runtime::node_wiring>(p, ports_, ports_);
  }
  runtime::context& world() { return *wiring_; }
  runtime::store& blobs() { return *store_; }
  core::blob_digest put(const std::string& text) {
    auto writer = store_->write();
    core::blob_digest digest{};
    BOOST_REQUIRE(!writer->append(std::as_bytes(std::span(text))));
    BOOST_REQUIRE(!writer->commit(digest, std::nullopt));
    return digest;
  }
  /// A checkpoint of one file, in the log of `job`.
  core::blob_digest checkpoint(core::job_id job, std::uint64_t step) {
    const std::string text =
      "weights " + std::to_string(job) + " " + std::to_string(step);
    manifest m;
    m.step = step;
    m.files.push_back({"model.safetensors", put(text), text.size()});
    runtime::job_event e;
    e.kind = runtime::job_event_kind::checkpoint;
    e.step = step;
    e.digest = put(to_json(m));
    log_->add(job, e);
    return e.digest;
  }

private:
  test::scratch scratch_{"shoal-supervisor"};

public:
  const fs::path folder = scratch_.path();

private:
  tests::lone_ports ports_;
  std::unique_ptr<runtime::store> store_;
  std::unique_ptr<runtime::job_journal> log_;
  std::unique_ptr<runtime::node_wiring> wiring_;
};

core::job_entry entry(bare_node& node, core::job_id id) {
  core::job_entry j;
  j.id = id;
  j.changed = id;
  j.data = node.put("text of " + std::to_string(id));
  remember_blobs(node.world(), j);
  return j;
}

} // namespace

BOOST_AUTO_TEST_CASE(roles_go_where_the_run_file_says) {
  using list = std::vector<std::string>;
  const std::string job = "mine@0000000000000007";
  BOOST_TEST(addresses("every_stage", 1) == (list{job + ":0.0", job + ":1.1"}));
  BOOST_TEST(addresses("every_stage", 2) == (list{job + ":0.1", job + ":1.0"}));
  BOOST_TEST(addresses("every_stage", 3).empty());
  BOOST_TEST(addresses("every_peer", 1) == list{job});
  BOOST_TEST(addresses("every_peer", 3).empty()); // a witness
  BOOST_TEST(addresses("b", 2) == list{job + "=0"});
  BOOST_TEST(addresses("b", 1).empty());
  core::view leaving = three_peers();
  leaving.members[0].state = core::member_state::leaving;
  BOOST_TEST(addresses("every_peer", 1, leaving).empty());
}

BOOST_AUTO_TEST_CASE(roles_that_no_peer_starts_are_reported_by_every_peer) {
  core::view v = three_peers();
  const auto unheld = [&v](const std::string& where) {
    std::string out;
    for (const core::unheld_wish& w :
         runtime::unheld_roles(v, two_by_two(), {{"mine", where, "{}"}}))
      out += core::to_text(w);
    return out;
  };
  BOOST_TEST(unheld("nobody")
             == "roles = 'mine' on nobody: not started, as no active peer is "
                "called 'nobody'");
  BOOST_TEST(unheld("c").find("no active peer") != std::string::npos);
  const std::string how = ": start nodes with `shoal node --plugin FILE`";
  BOOST_TEST(unheld("every_peer")
             == "roles = 'mine' on every_peer: not started, as no peer there "
                "has it"
                  + how);
  v.members[0].roles = {"mine", "other"};
  BOOST_TEST(unheld("every_stage")
             == "roles = 'mine' on every_stage: started on others, as b lacks "
                "it"
                  + how);
  BOOST_TEST(unheld("a").empty());
  v.members[1].roles = {"mine"};
  BOOST_TEST(unheld("every_peer").empty());
  core::assignment waits;
  BOOST_TEST(
    runtime::unheld_roles(v, waits, {{"mine", "nobody", "{}"}}).empty());
}

BOOST_AUTO_TEST_CASE(an_ended_job_keeps_its_last_checkpoint_only) {
  bare_node node;
  job_cleaner cleaner(node.world());
  core::view v;
  core::job_entry ended = entry(node, 1);
  core::job_entry running = entry(node, 2);
  ended.state = core::job_state::done;
  v.jobs = {ended, running};
  const auto old = node.checkpoint(1, 5);
  const auto last = node.checkpoint(1, 10);
  const auto of_running = node.checkpoint(2, 5);
  cleaner.clean_up(v); // all is too young
  BOOST_TEST(node.blobs().contains(old));
  cleaner.clean_up(v, 0s);
  BOOST_TEST(!node.blobs().contains(ended.data));
  BOOST_TEST(!node.blobs().contains(old));
  BOOST_TEST(complete(last, node.blobs()));
  BOOST_TEST(node.blobs().contains(running.data));
  BOOST_TEST(complete(of_running, node.blobs()));
}

/// Files that were too young once stayed for ever: what names them had gone.
BOOST_AUTO_TEST_CASE(a_manifest_goes_after_its_files) {
  bare_node node;
  job_cleaner cleaner(node.world());
  core::view v;
  core::job_entry ended = entry(node, 1);
  ended.state = core::job_state::cancelled;
  v.jobs = {ended};
  const auto first = node.checkpoint(1, 5);
  node.checkpoint(1, 10);
  const auto older = [&](const core::blob_digest& d) {
    const std::string name = core::to_hex(d);
    fs::last_write_time(node.folder / "blobs" / name.substr(0, 2)
                          / name.substr(2),
                        fs::file_time_type::clock::now() - 100s);
  };
  older(first);
  const std::size_t all = node.blobs().list().size();
  cleaner.clean_up(v); // its file is too young
  BOOST_TEST(node.blobs().list().size() == all);
  std::error_code error;
  const auto read = read_manifest(first, node.blobs());
  BOOST_TEST_REQUIRE(bool(read));
  older(read->files[0].digest);
  older(ended.data);
  cleaner.clean_up(v);
  BOOST_TEST(!node.blobs().contains(first));
  BOOST_TEST(!node.blobs().contains(read->files[0].digest));
}

/// Its room was missing to the next model for two minutes.
BOOST_AUTO_TEST_CASE(a_served_model_that_was_uploaded_goes_at_once) {
  bare_node node;
  job_cleaner cleaner(node.world());
  core::view v;
  core::job_entry served;
  served.id = 1;
  served.kind = core::job_kind::serve;
  served.state = core::job_state::cancelled;
  const std::string text = "weights";
  manifest m;
  m.files.push_back({"model.safetensors", node.put(text), text.size()});
  served.origin = node.put(to_json(m));
  remember_blobs(node.world(), served);
  v.jobs = {served};
  // A client uploads the same file for another job.
  node.blobs().claim(5, m.files[0].digest);
  cleaner.clean_up(v);
  BOOST_TEST(node.blobs().contains(m.files[0].digest));
  BOOST_TEST(node.blobs().contains(served.origin)); // it lists that file
  node.blobs().submitted(5, 2);
  cleaner.clean_up(v); // of a view before that job
  BOOST_TEST(node.blobs().contains(m.files[0].digest));
  core::job_entry next = served;
  next.id = 2;
  v.jobs.push_back(next);
  cleaner.clean_up(v);
  BOOST_TEST(!node.blobs().contains(m.files[0].digest));
  BOOST_TEST(!node.blobs().contains(served.origin));
}

/// A load that was cancelled left its files for good.
BOOST_AUTO_TEST_CASE(what_clients_leave_behind_goes_unless_it_is_needed) {
  bare_node node;
  job_cleaner cleaner(node.world());
  core::view v;
  v.jobs = {entry(node, 1)};
  const auto lonely = node.put("of nobody"), claimed = node.put("of a client"),
             pledged = node.put("of a peer"), kept = node.put("of no load");
  node.blobs().claim(5, claimed);
  BOOST_TEST(node.blobs().pledge(pledged, 1));
  cleaner.left_behind({lonely, claimed, pledged, v.jobs[0].data});
  BOOST_TEST(node.blobs().contains(lonely)); // it waits for a view
  cleaner.clean_up(v);
  BOOST_TEST(!node.blobs().contains(lonely));
  for (const auto& d : {claimed, pledged, kept, v.jobs[0].data})
    BOOST_TEST(node.blobs().contains(d));
  node.blobs().drop_claims(5);
  v.jobs[0].state = core::job_state::done; // its data is its own concern
  cleaner.clean_up(v);
  BOOST_TEST(!node.blobs().contains(claimed));
  BOOST_TEST(!node.blobs().contains(pledged));
  for (const auto& d : {kept, v.jobs[0].data})
    BOOST_TEST(node.blobs().contains(d));
}

BOOST_AUTO_TEST_CASE(what_was_begun_of_a_served_file_goes_with_it) {
  bare_node node;
  job_cleaner cleaner(node.world());
  core::job_entry served;
  served.id = 1;
  served.kind = core::job_kind::serve;
  served.state = core::job_state::cancelled;
  manifest m;
  m.files.push_back({"model.safetensors", core::blob_digest{9}, 7});
  served.origin = node.put(to_json(m));
  remember_blobs(node.world(), served);
  const std::string begun = "wei";
  static_cast<void>(node.blobs()
                      .write_of(core::blob_digest{9})
                      ->append(std::as_bytes(std::span(begun))));
  BOOST_TEST(node.blobs().begun(core::blob_digest{9}) == 3u);
  core::view v;
  v.jobs = {served};
  cleaner.clean_up(v);
  BOOST_TEST(node.blobs().begun(core::blob_digest{9}) == 0u);
  BOOST_TEST(node.blobs().used_bytes() == 0u);
}

// Each chat with a model of a folder is a job, too.
BOOST_AUTO_TEST_CASE(jobs_that_served_push_no_results_away) {
  bare_node node;
  job_cleaner cleaner(node.world());
  core::view v;
  for (core::job_id id = 1; id <= 2 * results_kept; ++id) {
    v.jobs.push_back(entry(node, id));
    v.jobs.back().state = core::job_state::done;
    v.jobs.back().changed = id;
    if (id > 1)
      v.jobs.back().kind = core::job_kind::serve;
  }
  const auto result = node.checkpoint(1, 3);
  cleaner.clean_up(v, 0s);
  BOOST_TEST(complete(result, node.blobs()));
}

BOOST_AUTO_TEST_CASE(only_the_newest_results_stay) {
  bare_node node;
  job_cleaner cleaner(node.world());
  core::view v;
  std::vector<core::blob_digest> results;
  for (core::job_id id = 1; id <= results_kept + 2; ++id) {
    v.jobs.push_back(entry(node, id));
    v.jobs.back().state = core::job_state::cancelled;
    results.push_back(node.checkpoint(id, 3));
  }
  v.removed = {v.jobs.front().id}; // the list was full
  v.jobs.erase(v.jobs.begin());
  const auto somebodys = node.put("uploaded, not yet submitted");
  cleaner.clean_up(v, 0s);
  BOOST_TEST(!node.blobs().contains(results[0]));
  BOOST_TEST(!node.blobs().contains(results[1]));
  for (std::size_t i = 2; i < results.size(); ++i)
    BOOST_TEST(complete(results[i], node.blobs()));
  BOOST_TEST(node.blobs().contains(somebodys));
}

// A shoal that this node has joined does not know of the job yet.
BOOST_AUTO_TEST_CASE(the_result_of_a_job_that_no_view_lists_stays) {
  bare_node node;
  job_cleaner cleaner(node.world());
  entry(node, 1);
  entry(node, 2);
  const auto old = node.checkpoint(1, 5);
  const auto last = node.checkpoint(1, 10);
  const auto taken_off = node.checkpoint(2, 10);
  core::view v;
  v.removed = {2};
  cleaner.clean_up(v, 0s);
  BOOST_TEST(!node.blobs().contains(old));
  BOOST_TEST(complete(last, node.blobs()));
  BOOST_TEST(!node.blobs().contains(taken_off));
}

BOOST_AUTO_TEST_CASE(the_origin_of_a_running_job_stays) {
  bare_node node;
  job_cleaner cleaner(node.world());
  core::view v;
  core::job_entry ended = entry(node, 1);
  ended.state = core::job_state::done;
  const auto first = node.checkpoint(1, 5);
  node.checkpoint(1, 10);
  core::job_entry resumed = entry(node, 2);
  resumed.origin = first;
  resumed.data = ended.data;
  v.jobs = {ended, resumed};
  cleaner.clean_up(v, 0s);
  BOOST_TEST(complete(first, node.blobs()));
  BOOST_TEST(node.blobs().contains(ended.data));
}

BOOST_AUTO_TEST_CASE(the_versions_that_a_job_serves_stay) {
  bare_node node;
  job_cleaner cleaner(node.world());
  needed_checkpoints needed;
  core::view v;
  core::job_entry ended = entry(node, 1);
  ended.state = core::job_state::done;
  core::job_entry served = entry(node, 2);
  served.kind = core::job_kind::serve;
  std::vector<core::blob_digest> all;
  for (std::uint64_t step = 5; step <= 25; step += 5)
    all.push_back(node.checkpoint(1, step));
  served.origin = all[0];
  served.versions = {{20, all[3]}, {15, all[2]}};
  v.jobs = {ended, served};
  cleaner.clean_up(v, 0s);
  const auto stay = [&](std::initializer_list<bool> expected) {
    auto is = expected.begin();
    for (const core::blob_digest& d : all)
      BOOST_TEST(complete(d, node.blobs()) == *is++);
  };
  stay({true, false, true, true, true}); // the last one is the job's result
  remove_version(node.world(), needed, v, all[2]);
  stay({true, false, true, true, true}); // it may still have requests
  v.jobs[1].versions = {{25, all[4]}, {20, all[3]}};
  remove_version(node.world(), needed, v, all[2]);
  stay({true, false, false, true, true});
}

BOOST_AUTO_TEST_CASE(shards_that_came_to_nothing_go_with_their_job) {
  bare_node node;
  job_cleaner cleaner(node.world());
  core::view v;
  core::job_entry ended = entry(node, 1);
  ended.state = core::job_state::done;
  v.jobs = {ended, entry(node, 2)};
  const auto left = node.put("shard of a checkpoint that was given up");
  const auto shared = node.put("shard that two jobs have made");
  BOOST_REQUIRE(!note_shard(node.world(), {1, 0}, {5, left}));
  BOOST_REQUIRE(!note_shard(node.world(), {1, 0}, {5, shared}));
  BOOST_REQUIRE(!note_shard(node.world(), {2, 0}, {5, shared}));
  cleaner.clean_up(v, 0s);
  BOOST_TEST(!node.blobs().contains(left));
  BOOST_TEST(node.blobs().contains(shared));
}

BOOST_AUTO_TEST_CASE(a_list_of_shards_forgets_what_is_dropped) {
  bare_node node;
  const auto old = node.put("old"), kept = node.put("kept"),
             same = node.put("the same in both"), needed = node.put("needed");
  const fs::path list = shard_list_of(job_folder(node.world(), 7), 0);
  fs::create_directories(list.parent_path());
  for (const listed_shard& s :
       {listed_shard{4, old}, {4, same}, {4, needed}, {8, kept}, {8, same}})
    BOOST_REQUIRE(!note_shard(node.world(), {7, 0}, s));
  std::ofstream(list, std::ios::app) << "8 01234567"; // torn
  BOOST_REQUIRE(!note_shard(node.world(), {7, 0}, {9, kept}));
  BOOST_TEST(read_shards(list).size() == 6u);
  drop_shards(node.world(), {7, 0}, [](std::uint64_t step) { return step > 4; },
              {needed});
  BOOST_TEST(!node.blobs().contains(old));
  for (const auto& d : {kept, same, needed})
    BOOST_TEST(node.blobs().contains(d));
  const auto left = read_shards(list);
  BOOST_REQUIRE(left.size() == 3u);
  BOOST_TEST(left[0].step == 8u);
  BOOST_TEST(left[2].step == 9u);
}

BOOST_AUTO_TEST_CASE(working_folders_go_with_their_job) {
  bare_node node;
  job_cleaner cleaner(node.world());
  core::view v;
  core::job_entry running = entry(node, 0x12);
  v.jobs = {running};
  const fs::path jobs = node.folder / "jobs";
  const auto mine = jobs / "from-0000000000000012-abc";
  const auto others = jobs / "from-0000000000000013-abc";
  const auto written = jobs / "writing-18-5";
  const auto failed = jobs / "writing-19-5";
  cleaner.clean_up(v, 0s);
  for (const auto& folder : {mine, others, written, failed})
    fs::create_directory(folder);
  cleaner.clean_up(v, 0s);
  BOOST_TEST(fs::exists(mine));
  BOOST_TEST(!fs::exists(others));
  BOOST_TEST(fs::exists(written));
  BOOST_TEST(!fs::exists(failed));
  job_cleaner(node.world()).clean_up(v, 0s); // what an earlier process has left
  BOOST_TEST(!fs::exists(written));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::actors
