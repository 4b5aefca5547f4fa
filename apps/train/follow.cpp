// apps/train/follow.cpp -- events to lines, checkpoints to files.
#include "apps/train/follow.hpp"

#include "actors/job/job_cleaner.hpp"
#include "apps/train/run_lines.hpp"
#include "apps/transfer/model_export.hpp"
#include "runtime/files/file_io.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <functional>
#include <string_view>
#include <thread>
#include <utility>

namespace shoal::apps {

namespace fs = std::filesystem;
using runtime::job_event;
using runtime::job_event_kind;

/// How to have the steps that the log of the asked node lacks.
static constexpr const char* by_another =
  "attach again by --name or --peer of a peer that took part (and, if its node "
  "was started with one, --cluster-key FILE)";

std::int64_t step_of(const fs::path& folder) {
  const std::string name = folder.filename().string();
  constexpr std::string_view prefix = "step-";
  std::int64_t step = -1;
  if (!name.starts_with(prefix))
    return -1;
  const char* end = name.data() + name.size();
  const auto [at, error] =
    std::from_chars(name.data() + prefix.size(), end, step);
  return error == std::errc() && at == end ? step : -1;
}

std::vector<std::pair<std::int64_t, fs::path>>
checkpoints(const fs::path& out) {
  std::vector<std::pair<std::int64_t, fs::path>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(out / "checkpoint", error))
    if (const auto step = step_of(entry.path()); step >= 0)
      found.emplace_back(step, entry.path());
  std::ranges::sort(found);
  return found;
}

/// Checksums of the model in a folder; empty: not known, or some of it is missing.
static model::checksums whole_model(const fs::path& folder) {
  const auto sums = checksums_of_model(folder);
  const auto is_there = [&](const auto& sum) {
    std::error_code none;
    return fs::exists(folder / sum.first, none);
  };
  return sums && std::ranges::all_of(*sums, is_there) ? *sums
                                                      : model::checksums();
}

/// Whether export_model() has put this checkpoint's model into `out`; `sums` are of
/// that model.
static bool is_model_of(const fs::path& checkpoint, const fs::path& out,
                        const model::checksums& sums) {
  for (const char* name :
       {"model.safetensors", "model.safetensors.index.json"}) {
    std::error_code none;
    if (fs::equivalent(checkpoint / name, out / name, none))
      return true;
  }
  const auto its = checksums_of_model(checkpoint);
  return its && !sums.empty() && sums == *its;
}

std::int64_t model_step(const fs::path& out) {
  const auto sums = whole_model(out);
  std::int64_t step = -1;
  for (const auto& [of, place] : checkpoints(out))
    if (is_model_of(place, out, sums))
      step = of;
  return step;
}

/// The whole path of `out`, without links.
static std::string whole_path(const fs::path& out) {
  std::error_code error;
  fs::path whole = fs::weakly_canonical(fs::absolute(out, error), error);
  return (whole.has_filename() ? whole : whole.parent_path()).string();
}

/// Says whose checkpoint a kept folder has.
static std::string note_of(const fs::path& out, const std::string& job) {
  return whole_path(out) + "\n" + job + "\n";
}

fs::path kept_for(const fs::path& out, const std::vector<std::string>& jobs) {
  std::vector<std::string> mine;
  mine.reserve(jobs.size());
  for (const std::string& job : jobs)
    mine.push_back(note_of(out, job));
  fs::path found;
  std::int64_t newest = -1;
  std::error_code error;
  for (const auto& folder :
       fs::directory_iterator(fs::temp_directory_path(error), error)) {
    const auto note = folder.path() / runtime::kept_note;
    struct stat is {};
    if (!runtime::is_kept(folder) || ::lstat(folder.path().c_str(), &is) != 0
        || is.st_uid != ::geteuid()) // others write to that directory, too
      continue;
    if (const auto text = model::read_file(note, 1 << 16);
        !text || std::ranges::find(mine, *text) == mine.end())
      continue;
    for (const auto& entry : fs::directory_iterator(folder.path(), error))
      if (const auto step = step_of(entry.path()); step > newest) {
        newest = step;
        found = entry.path();
      }
  }
  return found;
}

namespace {

/// Between two attempts to write what a full disk has refused.
constexpr std::chrono::milliseconds retry_after{2000};
/// Between two looks whether the user gives it up.
constexpr std::chrono::milliseconds look_again{100};

/// Asks by a client of its own: the other one waits for events.
class node_blobs final : public blob_source {
public:
  /// @param say  as client_config::say; may be empty
  node_blobs(runtime::client_config at,
             std::function<void(const std::string&)> say)
    : at_(std::move(at)) {
    at_.say = std::move(say);
  }

  std::error_code get(const std::string& where, const core::blob_digest& digest,
                      const piece& sink, std::string& why) override {
    if (!client_ || asked_ != where) // a folder of this machine, or an address
      if (const auto error = connect(where, why))
        return error;
    const auto error = client_->get_blob(digest, sink);
    if (error) {
      why = client_->text();
      client_ = nullptr; // the next one begins anew
    }
    return error;
  }

private:
  std::error_code connect(const std::string& where, std::string& why) {
    runtime::client_config c = at_;
    if (fs::path(where).is_absolute())
      c.data_dir = where;
    else
      c.addresses.insert(c.addresses.begin(), where);
    asked_ = where;
    client_ = std::make_unique<runtime::client>(c);
    const auto error = client_->connect();
    if (error) {
      why = client_->text();
      client_ = nullptr;
    }
    return error;
  }

  runtime::client_config at_;
  std::unique_ptr<runtime::client> client_;
  std::string asked_;
};

} // namespace

follower::follower(runtime::client& client, progress& out, follow_host& host,
                   follow_config config)
  : client_(client), out_(out), host_(host), config_(std::move(config)) {
  if (config_.folder.empty())
    return;
  source_ =
    std::make_unique<node_blobs>(config_.at, [this](const std::string& line) {
      if (ended_)
        out_.aside("fetching the last checkpoint: " + line);
    });
  fetcher_ = std::make_unique<checkpoint_fetcher>(config_.folder / "checkpoint",
                                                  *source_);
}

std::error_code follower::run(core::job_id job) {
  job_ = job;
  const auto error = client_.follow(job, *this, {config_.old, config_.origin});
  fetch_pending();
  settle();
  out_.settle();
  return error;
}

void follower::moved() {
  late_before_ms_ = newest_ms_;
  host_.moved();
}

bool follower::lost() {
  return host_.lost();
}

void follower::up_to_date() {
  old_ = false;
  fetch_pending();
}

bool follower::stops() {
  collect();
  return host_.stops();
}

bool follower::on(const job_event& e) {
  collect();
  has_run_ = has_run_ || e.kind == job_event_kind::view
             || e.kind == job_event_kind::step;
  host_.seen(e);
  job_event shown = e;
  bool later = false; // shown when it is here
  if (e.kind == job_event_kind::checkpoint) {
    pending_ = e;
    told_step_ = e.step;
    if (!old_) {
      later = fetcher_ != nullptr && e.digest != wanted_digest_;
      fetch_pending();
    }
  } else if (e.kind == job_event_kind::done) {
    state_ = e.text;
    cause_ = e.cause;
    last_step_ = std::max(last_step_, e.step);
    ended_ = true;
    look_elsewhere(e);
    fetch_pending();
    settle();
    if (!config_.folder.empty())
      bring_home(e);
    shown.loss = last_loss_.value_or(e.loss);
    if (!has_run_ && e.step > 0 && !config_.folder.empty())
      out_.say("notice",
               std::string("the node that was asked joined after the run: its "
                           "log has no steps. To have them, ")
                 + by_another);
    if (const std::string gaps =
          gaps_.text(std::max(e.step, told_step_.value_or(0)));
        !gaps.empty() && !config_.folder.empty())
      out_.say("notice", "the log of the node that was asked lacks " + gaps
                           + ": to have them, " + by_another);
  } else if (e.kind == job_event_kind::notice && e.digest != core::blob_digest{}
             && !old_) {
    if (!host_.give(e.digest) && !newest_.empty())
      offer_.begin(config_.at, job_, newest_, newest_step_);
  } else if (e.kind == job_event_kind::step) {
    last_loss_ = e.loss;
    last_step_ = e.step;
    if (!std::exchange(has_steps_, true) && config_.origin
        && !client_.forgot_oldest())
      gaps_.begin_after(*config_.origin);
    gaps_.add(e.step);
  }
  newest_ms_ = std::max(newest_ms_, e.unix_ms);
  if (!later)
    out_.show(shown, e.unix_ms < late_before_ms_);
  return true;
}

std::string
follower::not_fetched(std::uint64_t step, const std::string& attach) {
  return "the checkpoint of step " + std::to_string(step)
         + " could not be fetched: the peers that hold it may be away (see "
           "`shoal status`), or have removed it (they keep that of the last "
         + std::to_string(actors::results_kept) + " runs that have ended)"
         + (attach.empty() ? std::string()
                           : "; when they are back, " + attach + " fetches it");
}

/// At the end of the job: its last checkpoint, and the model.
void follower::bring_home(const job_event& end) {
  if (unwritten_)
    try_again(job_event(unwritten_->asked));
  if (newest_step_ != end.step && host_.stops())
    return out_.say("notice", "the fetching of the last checkpoint was "
                              "interrupted");
  // A node that was cut off lacks what the others did meanwhile; they may be away now.
  const bool elsewhere = end.text == "done" || client_.lacked_steps()
                         || !gaps_.text(end.step).empty();
  if (end.text == "failed") // the cause is said by the command
    out_.say("notice", newest_.empty() && told_step_
                         ? not_fetched(*told_step_, config_.attach)
                       : newest_.empty()
                         ? "there is no checkpoint to go on from"
                         : "the newest checkpoint, of step "
                             + std::to_string(newest_step_) + ", is in "
                             + newest_.string());
  else if (newest_.empty() || newest_step_ != end.step)
    out_.say(
      "notice",
      told_step_ && *told_step_ == end.step && !unwritten_
        ? not_fetched(*told_step_, config_.attach)
      : newest_.empty() && !told_step_ && !unwritten_
        ? (elsewhere ? "no peer that was asked knows a checkpoint of it"
                     : "it was ended before it had a checkpoint")
      : newest_.empty() || unwritten_
        ? "the model of step " + std::to_string(end.step)
            + " could not be saved"
        : "the newest checkpoint is of step " + std::to_string(newest_step_)
            + (elsewhere ? " here: no peer that was asked has heard of a "
                           "later one"
                         : ": what came after it is lost"));
  else
    saved_ = save_model();
}

/// Until the last checkpoint is in the folder, or the user gives it up.
void follower::try_again(const job_event& last) {
  if (host_.gives_up())
    return;
  spare_one(last);
  host_.trying(spared_);
  out_.say("notice",
           "the checkpoint of step " + std::to_string(last.step)
             + " cannot be written: " + unwritten_->why
             + "; trying again until it can (Ctrl-C gives it up)"
             + (spared_.empty() ? "" : ". It is kept in " + spared_.string()));
  while (unwritten_ && pause()) {
    if (!find_folder())
      continue;
    unwritten_.reset();
    fetcher_->want(last, client_.where());
    fetcher_->settle([this] { return host_.gives_up(); });
    trying_ = true;
    collect();
    trying_ = false;
  }
  if (newest_step_ != last.step || spared_.empty())
    return;
  std::error_code ignored;
  fs::remove_all(kept_.path, ignored);
  spared_.clear();
}

/// Fetches the last checkpoint to another disk.
void follower::spare_one(const job_event& last) {
  if (config_.spare_in.empty())
    return;
  kept_ = runtime::make_kept_folder(
    config_.spare_in, note_of(config_.folder, core::job_text(job_)));
  if (kept_.path.empty())
    return;
  node_blobs source(config_.at, {});
  checkpoint_fetcher spare(kept_.path, source);
  spare.want(last, client_.where());
  spare.settle([this] { return host_.gives_up(); });
  if (const auto o = spare.take())
    spared_ = o->folder;
  std::error_code ignored;
  if (spared_.empty())
    fs::remove_all(kept_.path, ignored);
}

/// @returns whether to try again, after a while
bool follower::pause() {
  for (auto rest = retry_after; rest.count() > 0; rest -= look_again) {
    if (host_.gives_up())
      return false;
    std::this_thread::sleep_for(look_again);
  }
  return true;
}

/// The node that is followed may have been away when the job made its last checkpoint.
void follower::look_elsewhere(const job_event& end) {
  const std::uint64_t known = told_step_.value_or(0);
  const bool was_away = old_ || client_.lacked_steps() || late_before_ms_ != 0;
  // A job that fails, or is ended at once, ends later than its last checkpoint.
  if (!config_.elsewhere || known >= end.step
      || (end.text != "done" && !was_away))
    return;
  const auto last = config_.elsewhere(end.step);
  if (!last || last->step > end.step || last->step <= known)
    return;
  pending_ = *last;
  told_step_ = last->step;
}

void follower::fetch_pending() {
  if (pending_.kind != job_event_kind::checkpoint)
    return;
  const job_event wanted = std::exchange(pending_, {});
  if (!fetcher_ || wanted.digest == wanted_digest_)
    return; // the last, told of again
  if (auto found = find_folder(); !found)
    return take_home({wanted, {}, found.message(), true});
  wanted_digest_ = wanted.digest;
  fetcher_->want(wanted, client_.where());
}

/// Follows a folder that was moved. Fails if nothing may be written there.
model::status follower::find_folder() {
  if (!config_.place)
    return model::done{};
  const auto now = config_.place();
  if (!now)
    return now.why();
  if (*now == config_.folder)
    return model::done{};
  config_.folder = *now;
  fetcher_->move_to(*now / "checkpoint");
  if (!newest_.empty())
    newest_ = *now / "checkpoint" / newest_.filename();
  return model::done{};
}

/// Waits for what is still being fetched.
void follower::settle() {
  slow_notice slow(out_, "fetching the newest checkpoint");
  if (fetcher_)
    fetcher_->settle([&] {
      slow();
      return host_.stops();
    });
  collect();
}

/// Shows what has been fetched meanwhile.
void follower::collect() {
  if (const auto line = offer_.take())
    out_.say("notice", *line);
  while (fetcher_) {
    const auto o = fetcher_->take();
    if (!o)
      return;
    take_home(*o);
    job_event shown = o->asked;
    shown.text = o->folder.string();
    if (!o->folder.empty())
      out_.show(shown);
    else if (!trying_)
      out_.keep(shown);
  }
}

void follower::take_home(const checkpoint_fetcher::outcome& o) {
  unwritten_.reset();
  if (o.folder.empty()) {
    if (o.asked.digest == wanted_digest_)
      wanted_digest_ = {}; // if it is told of again
    if (o.unwritten)
      unwritten_ = o;
    const std::string step = std::to_string(o.asked.step);
    std::error_code ignored;
    const fs::path there = config_.folder / "checkpoint" / ("step-" + step);
    if (!trying_)
      out_.say(
        "notice",
        "checkpoint of step " + step
          + (fs::exists(there, ignored)
               ? " was not fetched again, and stays in " + there.string() + ": "
               : " is not in " + config_.folder.string() + ": ")
          + o.why);
    return;
  }
  // Where it lies now: the folder may have been moved since it was asked for.
  newest_ = config_.folder / "checkpoint" / o.folder.filename();
  newest_step_ = o.asked.step;
  if (!find_folder())
    return;
  const auto all = checkpoints(config_.folder);
  std::error_code ignored;
  for (std::size_t i = 0; i + std::size_t(config_.keep) < all.size(); ++i)
    if (all[i].second != newest_) // a run that went back has fewer steps
      fs::remove_all(all[i].second, ignored);
}

/// The newest checkpoint becomes the model of this run.
bool follower::save_model() {
  if (auto found = find_folder(); !found) {
    out_.say("notice", "the model is not saved: " + found.message());
    return false;
  }
  if (const auto later = model_step(config_.folder);
      later > std::int64_t(newest_step_)) { // of another command
    out_.say("notice",
             config_.folder.string() + " keeps its model, which is of step "
               + std::to_string(later) + ": that of step "
               + std::to_string(newest_step_) + " is in " + newest_.string());
    return true;
  }
  const auto saved = export_model(newest_, config_.folder);
  out_.say("notice", saved ? "model saved in " + config_.folder.string()
                           : saved.message());
  if (saved && !saved->empty())
    out_.say("notice", kept_files_text(*saved, newest_, config_.folder));
  return bool(saved);
}

} // namespace shoal::apps
