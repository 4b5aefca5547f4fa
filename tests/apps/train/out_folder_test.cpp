// tests/apps/train/out_folder_test.cpp -- the owner of a folder: its record,
// permitted changes of a resumed run, locks, and the state after a failed
// command.
#include "actors/checkpoint/checkpoint_manifest.hpp"
#include "apps/terminal/exit_codes.hpp"
#include "apps/train/out_folder.hpp"
#include "apps/train/resumed_run.hpp"
#include "apps/train/run_changes.hpp"
#include "runtime/model/data/result_names.hpp"
#include "tests/support/folder.hpp"

#include <boost/test/unit_test.hpp>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

BOOST_AUTO_TEST_SUITE(out_folder_tests)

namespace fs = std::filesystem;
using namespace shoal;
using apps::change_kind;
using apps::out_folder;
using apps::out_request;
using purpose = out_request::purpose;

namespace {

const std::string job_a(16, 'a'), job_b(16, 'b');
const std::string text_a(64, '1'), text_b(64, '2');

struct world {
  void write(const std::string& name, const std::string& text = "x") const {
    fs::create_directories((top / name).parent_path());
    std::ofstream(top / name) << text;
  }
  std::string read(const std::string& name) const {
    std::ifstream in(top / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// Name -> content of all files below.
  std::map<std::string, std::string> all() const {
    std::map<std::string, std::string> out;
    for (const auto& f : fs::recursive_directory_iterator(top)) {
      const auto name = f.path().lexically_relative(top).string();
      out[name] = f.is_regular_file() ? read(name) : "folder";
    }
    return out;
  }

  auto open(out_request r) const {
    if (r.folder.empty())
      r.folder = top / "out";
    return out_folder::open(std::move(r));
  }
  /// What a new run of this job leaves.
  void trained(const std::string& job = job_a) const {
    auto folder = open({});
    BOOST_REQUIRE_MESSAGE(folder, (folder ? "" : folder.message()));
    BOOST_REQUIRE((*folder)->claim(text_a));
    BOOST_REQUIRE((*folder)->keep(job));
    write("out/model.safetensors", job);
  }

  shoal::test::folder home;
  fs::path top = home.path;
};

out_request request(purpose what, const std::string& job = {}) {
  out_request r;
  r.what = what;
  r.job = job;
  return r;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_record_is_read_as_it_was_written) {
  apps::run_record r;
  r.text = text_a;
  r.run.lr = 0.125;
  r.steps_max = 5000;
  for (int i = 0; i < 1005; ++i) // more than it keeps
    r.add("00000000000" + std::to_string(10000 + i));
  r.add("0000000000011004");
  r.name = "run-2";
  const std::string json = to_json(r);
  const auto again = apps::parse_record(json, "run.json");
  BOOST_REQUIRE_MESSAGE(again, (again ? "" : again.message()));
  BOOST_TEST(to_json(*again) == json);
  BOOST_TEST(again->jobs.size() == apps::record_jobs_max);
  BOOST_TEST(again->has("0000000000011004"));
  BOOST_TEST(again->name == "run-2");
  BOOST_TEST(!again->has("0000000000010004"));
}

// It comes with a folder, perhaps from another user.
BOOST_AUTO_TEST_CASE(a_value_that_no_record_holds_is_named) {
  const std::string good = to_json(apps::run_record{{}, "", 1000, {}});
  BOOST_REQUIRE(apps::parse_record(good, "r"));
  auto refused = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    BOOST_REQUIRE(holds(text, from));
    text.replace(text.find(from), from.size(), to);
    const auto read = apps::parse_record(text, "out/run.json");
    BOOST_TEST(!read, text);
    return read ? "" : read.message();
  };
  BOOST_TEST(holds(refused("shoal-run-1", "shoal-run-9"), "another version"));
  BOOST_TEST(holds(refused("\"jobs\":[]", "\"jobs\":[\"x\"]"), "'jobs'"));
  BOOST_TEST(holds(refused("\"jobs\":[]", "\"jobs\":{}"), "'jobs'"));
  BOOST_TEST(holds(refused("\"text\":\"\"", "\"text\":\"ab\""), "'text'"));
  BOOST_TEST(holds(refused("\"text\":\"\"", "\"text\":7"), "'text'"));
  BOOST_TEST(holds(refused(":1000,\"run\"", ":-1,\"run\""), "'steps_max'"));
  BOOST_TEST(holds(refused(":1000,\"run\"", ":9,\"run\""), "'steps_max'"));
  BOOST_TEST(holds(refused(",\"run\"", ",\"name\":7,\"run\""), "'name'"));
  BOOST_TEST(holds(
    refused(",\"run\"", ",\"name\":\"" + std::string(300, 'n') + "\",\"run\""),
    "'name'"));
  BOOST_TEST(
    holds(refused(",\"run\"", ",\"attached\":7,\"run\""), "'attached'"));
  BOOST_TEST(holds(refused("\"seq_len\"", "\"seq_lem\""), "seq_lem"));
  BOOST_TEST(holds(refused("\"run\":{", "\"ran\":{"), "'run'"));
  for (const char* text : {"", "[]", "{", "{\"format\":\"shoal-run-1\"}"})
    BOOST_TEST(!apps::parse_record(text, "r"), text);
}

// A new key must be added here: one that is not named in run_changes.cpp is
// refused or reported according to its section.
BOOST_AUTO_TEST_CASE(each_key_has_its_kind) {
  const std::set<std::string> told{"training.steps",
                                   "training.max_norm",
                                   "training.mixed_precision_param",
                                   "optimizer.lr",
                                   "optimizer.beta1",
                                   "optimizer.beta2",
                                   "optimizer.eps",
                                   "optimizer.weight_decay",
                                   "lr_scheduler.warmup_steps",
                                   "lr_scheduler.total_steps",
                                   "lr_scheduler.decay_ratio",
                                   "lr_scheduler.decay_type",
                                   "lr_scheduler.min_lr_factor"};
  const std::set<std::string> refused{
    "training.seq_len", "training.local_batch_size",
    "training.global_batch_size", "training.seed", "optimizer.name"};
  const std::set<std::string> text{"data.paths", "data.tokenizer",
                                   "data.end_of_text", "data.hidden",
                                   "data.validation_permille"};
  for (const runtime::run_key& k : runtime::keys()) {
    const std::string name = std::string(k.section) + "." + std::string(k.name);
    const auto kind = told.contains(name)      ? change_kind::told
                      : refused.contains(name) ? change_kind::refused
                      : text.contains(name)    ? change_kind::text
                                               : change_kind::free;
    BOOST_TEST((apps::kind_of(k.section, k.name) == kind), name);
  }
  BOOST_TEST((apps::kind_of("model", "hidden_size") == change_kind::refused));
  BOOST_TEST((apps::kind_of("model", "path") == change_kind::free));
  BOOST_TEST((apps::kind_of("newer", "key") == change_kind::told));
}

BOOST_AUTO_TEST_CASE(differences_are_reported_with_both_values) {
  runtime::run_config before, now;
  BOOST_TEST(apps::changes(before, now).empty());
  now.global_batch_size = 4 * now.local_batch_size; // as chosen before
  BOOST_TEST(apps::changes(before, now).empty());
  now.seed = 7;
  now.mixed_precision_param = "bfloat16";
  now.data_paths = {"a\x1b[2J"};
  now.checkpoint_interval = 3;
  const auto all = apps::changes(before, now);
  BOOST_TEST(all.size() == 4u);
  BOOST_TEST(apps::to_text(all, change_kind::refused)
             == "training.seed was 0 and is 7");
  BOOST_TEST(apps::to_text(all, change_kind::told)
             == "training.mixed_precision_param was \"float32\" and is "
                "\"bfloat16\"");
  BOOST_TEST(apps::to_text(all, change_kind::text)
             == "data.paths was [] and is [\"a\\u001b[2J\"]");
  now.model.hidden_size = 96;
  const auto shape = apps::changes(before, now);
  BOOST_TEST(holds(apps::to_text(shape, change_kind::refused),
                   "model.hidden_size was "));
}

BOOST_AUTO_TEST_CASE(a_new_run_makes_its_folder_and_a_second_is_refused) {
  world w;
  w.trained();
  const auto found = apps::read_record(w.top / "out");
  BOOST_REQUIRE(found);
  BOOST_TEST(found->has(job_a));
  BOOST_TEST(found->text == text_a);
  BOOST_TEST(fs::exists(w.top / "out/run.toml"));
  const auto early = w.open({}); // there is nothing to go on from
  BOOST_REQUIRE(!early);
  BOOST_TEST(!holds(early.message(), "--resume"));
  BOOST_TEST(holds(early.message(), "--overwrite"));
  fs::create_directories(w.top / "out/checkpoint/step-5");
  const auto before = w.all();
  const auto again = w.open({});
  BOOST_REQUIRE(!again);
  BOOST_TEST(holds(again.message(), "belongs to the run of job " + job_a));
  BOOST_TEST(holds(again.message(), "--resume"));
  BOOST_TEST(holds(again.message(), "--overwrite"));
  w.write("out/run.json", "{");
  BOOST_TEST(holds(w.open({}).message(), "run.json: is not valid JSON"));
  BOOST_TEST(holds(w.open(request(purpose::resume)).message(), "run.json"));
  w.write("out/run.json", before.at("out/run.json"));
  BOOST_TEST((w.all() == before));
}

BOOST_AUTO_TEST_CASE(one_command_at_a_time_has_a_folder) {
  world w;
  {
    const auto first = w.open({});
    BOOST_REQUIRE(first);
    const auto second = w.open({});
    BOOST_REQUIRE(!second);
    BOOST_TEST(
      holds(second.message(),
            "in use by process " + std::to_string(::getpid()) + " on "));
  }
  BOOST_TEST(w.all().empty()); // nothing was claimed
  w.trained();
  for (const purpose what : {purpose::resume, purpose::attach}) {
    const auto first = w.open(request(what, job_a));
    BOOST_REQUIRE(first);
    BOOST_TEST(holds(w.open(request(purpose::resume)).message(), "in use"));
  }
  BOOST_TEST(bool(w.open(request(purpose::resume))));
}

BOOST_AUTO_TEST_CASE(a_failed_command_leaves_the_folder_unchanged) {
  world w;
  for (const bool claims : {false, true}) {
    auto folder = w.open({});
    BOOST_REQUIRE(folder);
    if (claims)
      BOOST_TEST(bool((*folder)->claim(text_a)));
  }
  BOOST_TEST(w.all().empty());
  w.write("out/notes");
  const auto noted = w.all();
  BOOST_TEST(bool((*w.open({}))->claim(text_a)));
  BOOST_TEST((w.all() == noted));
  w.trained();
  const auto before = w.all();
  out_request other = request(purpose::new_run);
  other.overwrite = true;
  other.run.seed = 5;
  {
    auto folder = w.open(other);
    BOOST_REQUIRE(folder);
    BOOST_TEST(bool((*folder)->claim(text_b)));
    BOOST_TEST(fs::exists(w.top / "out.old-1/model.safetensors"));
    BOOST_TEST(!fs::exists(w.top / "out/model.safetensors"));
    BOOST_TEST(holds(w.open({}).message(), "in use"));
  }
  BOOST_TEST((w.all() == before));
  out_request longer = request(purpose::resume);
  longer.run.steps = 7000;
  {
    auto folder = w.open(longer);
    BOOST_REQUIRE(folder);
    BOOST_TEST((*folder)->jobs().size() == 1u);
    BOOST_TEST(bool((*folder)->claim(text_a)));
  }
  BOOST_TEST((w.all() == before));
}

BOOST_AUTO_TEST_CASE(overwriting_moves_the_old_folder_aside_whole) {
  world w;
  w.trained();
  w.write("out/notes");
  w.write("out.old-1"); // that name is taken
  out_request over = request(purpose::new_run);
  over.overwrite = true;
  over.folder = w.top / "out/";
  {
    auto folder = w.open(over);
    BOOST_REQUIRE(folder);
    BOOST_REQUIRE((*folder)->claim(text_b));
    BOOST_REQUIRE((*folder)->keep(job_b));
    const auto notices = (*folder)->take_notices();
    BOOST_REQUIRE(notices.size() == 1u);
    BOOST_TEST(holds(notices[0], (w.top / "out.old-2").string()));
  }
  BOOST_TEST(w.read("out.old-2/model.safetensors") == job_a);
  BOOST_TEST(w.read("out.old-2/notes") == "x");
  BOOST_TEST(apps::read_record(w.top / "out.old-2")->has(job_a));
  BOOST_TEST(apps::read_record(w.top / "out")->has(job_b));
  BOOST_TEST(!apps::read_record(w.top / "out")->has(job_a));
  // Nothing in the way: nothing is moved.
  over.folder = w.top / "new";
  BOOST_TEST(bool((*w.open(over))->claim(text_b)));
  BOOST_TEST(!fs::exists(w.top / "new.old-1"));
}

BOOST_AUTO_TEST_CASE(a_job_goes_on_in_its_folder_and_no_other_does) {
  world w;
  w.trained();
  const std::string before = w.read("out/run.json");
  {
    auto mine = w.open(request(purpose::attach, job_a));
    BOOST_REQUIRE(mine);
    BOOST_TEST((*mine)->has_job());
    BOOST_TEST(bool((*mine)->claim("")));
    BOOST_TEST(bool((*mine)->keep(job_a)));
  }
  BOOST_TEST(w.read("out/run.json") == before);
  out_request other = request(purpose::attach, job_b);
  other.run.seed = 9;
  BOOST_TEST(holds(w.open(other).message(),
                   "not to job " + job_b
                     + ", which differs (training.seed was 0 and is 9)"));
  BOOST_TEST(holds(w.open(request(purpose::attach, job_b)).message(),
                   "not to job " + job_b + ": "));
  other.folder = w.top / "fresh";
  {
    auto fresh = w.open(other);
    BOOST_REQUIRE(fresh);
    BOOST_TEST(!(*fresh)->has_job());
    BOOST_TEST(bool((*fresh)->claim("")));
    BOOST_TEST(bool((*fresh)->keep(job_b)));
  }
  BOOST_TEST(apps::read_record(w.top / "fresh")->run.seed == 9);
}

/// `--resume` without a node then asks whether to train beside it.
BOOST_AUTO_TEST_CASE(a_folder_knows_whether_its_job_may_go_on_elsewhere) {
  world w;
  w.trained();
  const auto is_open = [&] { return apps::read_record(w.top / "out")->open; };
  BOOST_TEST(!is_open());
  auto mine = w.open(request(purpose::attach, job_a));
  BOOST_REQUIRE(mine);
  BOOST_TEST(bool((*mine)->claim("")));
  BOOST_TEST(bool((*mine)->keep(job_a, "", true)));
  BOOST_TEST(is_open());
  BOOST_TEST(bool((*mine)->close(job_b))); // another's end
  BOOST_TEST(is_open());
  BOOST_TEST(bool((*mine)->close(job_a)));
  BOOST_TEST(!is_open());
}

BOOST_AUTO_TEST_CASE(a_run_that_may_go_on_elsewhere_is_not_doubled_unasked) {
  world w;
  w.trained();
  {
    auto mine = w.open(request(purpose::attach, job_a));
    BOOST_REQUIRE(mine);
    BOOST_TEST(bool((*mine)->claim("")));
    BOOST_TEST(bool((*mine)->keep(job_a, "", true)));
  }
  fs::create_directories(w.top / "out" / "checkpoint" / "step-7");
  apps::train_options o;
  o.at.data_dir = w.top / "no node here";
  o.out = w.top / "out";
  o.resume = true;
  const auto asked = [&] { return apps::resumed_run::may_go_alone(o); };
  BOOST_TEST(asked() == apps::exit_done); // a node is named: it is refused
  o.at.data_dir.clear();
  const char* const before = std::getenv("XDG_DATA_HOME");
  const std::string old = before ? before : "";
  ::setenv("XDG_DATA_HOME", (w.top / "none").c_str(), 1);
  if (::isatty(STDIN_FILENO) != 1)
    BOOST_TEST(asked() == apps::exit_usage);
  o.yes = true;
  BOOST_TEST(asked() == apps::exit_done);
  before ? ::setenv("XDG_DATA_HOME", old.c_str(), 1)
         : ::unsetenv("XDG_DATA_HOME");
}

// It replaced a finished model by an older one.
BOOST_AUTO_TEST_CASE(a_job_from_which_another_went_on_gets_no_folder_back) {
  world w;
  w.trained();
  {
    auto on = w.open(request(purpose::resume));
    BOOST_REQUIRE(on);
    BOOST_REQUIRE((*on)->claim(text_a));
    BOOST_REQUIRE((*on)->keep(job_b));
  }
  const auto before = w.all();
  out_request old = request(purpose::attach, job_a);
  const std::string why = w.open(old).message();
  for (const std::string& part :
       {"went on from job " + job_a + " with job " + job_b,
        std::string("another --out"), std::string("--overwrite")})
    BOOST_TEST(holds(why, part), why);
  BOOST_TEST(w.all() == before);
  BOOST_TEST(bool(w.open(request(purpose::attach, job_b))));
  old.overwrite = true;
  auto moved = w.open(old);
  BOOST_REQUIRE_MESSAGE(moved, (moved ? "" : moved.message()));
  BOOST_TEST(!(*moved)->has_job());
  BOOST_REQUIRE((*moved)->claim(""));
  BOOST_REQUIRE((*moved)->keep(job_a));
  BOOST_TEST(w.read("out.old-1/model.safetensors") == job_a);
  BOOST_TEST(!apps::read_record(w.top / "out")->has(job_b));
}

/// It was said to jump where it had yet to decay.
BOOST_AUTO_TEST_CASE(a_learning_rate_jumps_only_where_it_decays) {
  world w;
  out_request on = request(purpose::resume);
  on.folder = w.top / "out";
  on.run.decay_ratio = 0.25;
  {
    out_request first = on;
    first.what = purpose::new_run;
    const auto folder = w.open(first);
    BOOST_REQUIRE((*folder)->claim(text_a));
    BOOST_REQUIRE((*folder)->keep(job_a));
  }
  on.run.steps = 1200;
  for (const std::int64_t step : {500, 900}) {
    on.step = step;
    const auto notices = (*w.open(on))->take_notices();
    BOOST_REQUIRE(notices.size() == 2u);
    BOOST_TEST(holds(notices[1], "1200, so it jumps now; to") == (step == 900));
    BOOST_TEST(holds(notices[1], "1200; to keep") == (step == 500));
  }
}

BOOST_AUTO_TEST_CASE(a_run_goes_on_by_what_may_change) {
  world w;
  w.trained();
  out_request on = request(purpose::resume);
  on.run.steps = 400; // fewer than its metrics may name
  on.run.lr = 0.5;
  {
    auto folder = w.open(on);
    BOOST_REQUIRE(folder);
    const auto notices = (*folder)->take_notices();
    BOOST_REQUIRE(notices.size() == 2u);
    BOOST_TEST(holds(notices[0], "optimizer.lr was 0.0008 and is 0.5"));
    BOOST_TEST(holds(notices[1], "decays until the new last step, 400"));
    BOOST_TEST(bool((*folder)->check_text(text_a)));
    BOOST_TEST(
      holds((*folder)->check_text(text_b).message(), "its files have changed"));
    BOOST_TEST(bool((*folder)->claim(text_a, "run-2")));
    BOOST_TEST(bool((*folder)->keep(job_b)));
  }
  const auto found = apps::read_record(w.top / "out");
  BOOST_TEST(found->name == "run-2");
  BOOST_TEST(found->run.steps == 400);
  BOOST_TEST(found->steps_max == 1000);
  BOOST_TEST(found->has(job_a));
  BOOST_TEST(found->has(job_b));
  on.run.seq_len = 8;
  BOOST_TEST(holds(w.open(on).message(), "training.seq_len was 256 and is 8"));
  fs::remove(w.top / "out/run.json");
  BOOST_TEST(holds(w.open(on).message(), "run.json"));
}

BOOST_AUTO_TEST_CASE(what_comes_with_a_model_is_a_result) {
  for (const char* name : actors::carried_names)
    BOOST_TEST(model::is_result_name(name), name);
}

BOOST_AUTO_TEST_SUITE_END()
