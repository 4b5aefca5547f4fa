// apps/train/out_folder.cpp -- checks, locks and renames folders.
#include "apps/train/out_folder.hpp"

#include "apps/terminal/confirm.hpp" // shell_path
#include "apps/train/follow.hpp"     // checkpoints
#include "apps/train/run_changes.hpp"
#include "runtime/files/file_io.hpp"
#include "runtime/model/data/result_names.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <iterator>
#include <utility>

namespace shoal::apps {

namespace fs = std::filesystem;
namespace posix = runtime::posix;
using model::done;
using model::failure;
using model::status;
using purpose = out_request::purpose;

namespace {

/// Number of attempts at the lock, since the folder may be moved meanwhile.
constexpr int lock_tries_max = 8;
/// Number of foreign files that an error names.
constexpr std::size_t named_max = 3;
/// Number of folders that are tried for moving aside: DIR.old-1 and so on.
constexpr int aside_max = 10000;

/// The advice if a run cannot be continued.
constexpr char new_run[] = "start a new run: choose another --out, or use "
                           "--overwrite instead of --resume";

/// Whether a path is `folder` or below it. Both without links and dots.
bool is_within(const fs::path& path, const fs::path& folder) {
  const auto parts =
    std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return parts.first == folder.end();
}

fs::path without_links(const fs::path& path) {
  std::error_code error;
  const fs::path full = fs::absolute(path, error);
  fs::path real = fs::weakly_canonical(full, error);
  if (error)
    real = full.lexically_normal();
  return real.has_filename() ? real : real.parent_path(); // "out/"
}

/// Limit of the text that the lock's holder writes into it: "1234 on host", and
/// on a line of its own the command that watches it. A host's name has 64
/// bytes, a path 4096.
constexpr std::size_t holder_bytes_max = 8192;

/// Why a lock is not available: the holder, as written by that process.
failure in_use(const fs::path& folder, int lock) {
  std::string all(holder_bytes_max, '\0');
  const ssize_t size = ::pread(lock, all.data(), all.size(), 0);
  all.resize(size > 0 ? std::size_t(size) : 0);
  const std::size_t end = std::min(all.find('\n'), all.size());
  const std::string process = all.substr(0, end);
  std::string watch = all.substr(std::min(end + 1, all.size()));
  while (!watch.empty() && watch.back() == '\n')
    watch.pop_back();
  return {folder.string() + " is in use by "
          + (process.empty() ? "another process" : "process " + process) + ": "
          + (watch.empty() ? "" : "watch it with `" + watch + "`, ")
          + "wait for it, stop it, or choose another --out"};
}

/// "1234 on host"
std::string self() {
  char host[HOST_NAME_MAX + 1] = {};
  ::gethostname(host, HOST_NAME_MAX);
  return std::to_string(::getpid()) + " on " + host + "\n";
}

bool same_file(int fd, const fs::path& file) {
  struct stat a {};
  struct stat b {};
  return ::fstat(fd, &a) == 0 && ::stat(file.c_str(), &b) == 0
         && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

std::string names_text(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size() && i < named_max; ++i)
    out += (i == 0 ? "" : ", ") + names[i];
  return names.size() > named_max ? out + ", ..." : out;
}

/// Makes a folder and its parents. @param made  gets the new ones
std::error_code make(const fs::path& folder, std::vector<fs::path>& made) {
  if (folder.empty() || fs::is_directory(folder))
    return {};
  if (const auto error = make(folder.parent_path(), made))
    return error;
  if (::mkdir(folder.c_str(), 0777) == 0)
    made.push_back(folder);
  else if (errno != EEXIST)
    return posix::last_error();
  else if (!fs::is_directory(folder))
    return std::make_error_code(std::errc::not_a_directory);
  return {};
}

} // namespace

std::vector<std::string> written_names(const fs::path& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error))
    if (std::string name = it->path().filename().string();
        model::is_result_name(name))
      out.push_back(std::move(name));
  std::ranges::sort(out);
  return out;
}

out_folder::out_folder(out_request request)
  : request_(std::move(request)), real_(without_links(request_.folder)) {
  if (!request_.folder.has_filename()) // "out/"
    request_.folder = request_.folder.parent_path();
}

out_folder::~out_folder() {
  if (!kept_)
    take_back();
}

model::result<std::unique_ptr<out_folder>>
out_folder::open(out_request request) {
  std::unique_ptr<out_folder> out(new out_folder(std::move(request)));
  if (auto prepared = out->prepare(); !prepared)
    return prepared.why();
  return out;
}

/// Decides before anything is made, and again when no other process can
/// interfere.
status out_folder::prepare() {
  if (path().empty())
    return failure{"--out is empty: name a folder"};
  std::error_code error;
  if (fs::exists(path(), error) && !fs::is_directory(path(), error))
    return failure{path().string() + " is not a folder: choose another --out"};
  if (fs::exists(path() / model::results_lock, error)) {
    if (auto locked = lock(); !locked)
      return locked;
    return decide();
  }
  if (auto fine = decide(); !fine)
    return fine;
  if (error = make(path(), made_); error)
    return failure{"cannot make folder " + path().string() + ": "
                   + error.message()};
  made_lock_ = true;
  if (auto locked = lock(); !locked)
    return locked;
  return decide();
}

status out_folder::lock() {
  const fs::path file = path() / model::results_lock;
  for (int tries = 0; tries < lock_tries_max; ++tries) {
    std::error_code error;
    posix::descriptor fd = posix::open_regular(file, O_RDWR | O_CREAT, error);
    if (error)
      return failure{"cannot write " + file.string() + ": " + error.message()};
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK)
        return failure{"cannot lock " + file.string() + ": "
                       + std::strerror(errno)};
      made_lock_ = false; // it belongs to the other process
      return in_use(path(), fd.get());
    }
    if (!same_file(fd.get(), file))
      continue; // that one was moved aside, or taken back
    lock_ = std::move(fd);
    here_ = posix::descriptor(
      ::open(path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    return say_holder({});
  }
  return failure{path().string()
                 + " is moved again and again by other commands: choose "
                   "another --out"};
}

/// Tells others that find the folder locked which process holds it.
status out_folder::say_holder(const std::string& watch) const {
  const std::string text = self() + (watch.empty() ? "" : watch + "\n");
  if (::ftruncate(lock_.get(), 0) != 0
      || ::pwrite(lock_.get(), text.data(), text.size(), 0)
           != ssize_t(text.size()))
    return failure{"cannot write " + (path() / model::results_lock).string()
                   + ": " + std::strerror(errno)};
  return done{};
}

status out_folder::free_to_write(const fs::path& folder) {
  const fs::path file = folder / model::results_lock;
  std::error_code error;
  const posix::descriptor fd = posix::open_regular(file, O_RDONLY, error);
  // open() reports other problems.
  const bool taken =
    !error && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  return taken ? status(in_use(folder, fd.get())) : status(done{});
}

status out_folder::decide() {
  found_.reset();
  damage_.clear();
  notices_.clear();
  moves_ = false;
  std::error_code error;
  if (fs::exists(path() / record_name, error)) {
    auto read = read_record(path());
    if (read)
      found_ = std::move(*read);
    else
      damage_ = read.message();
  }
  if (request_.what == purpose::resume)
    return decide_resume();
  if (auto apart = apart_from_model(); !apart)
    return apart;
  if (auto last = decide_again(); has_job() && (last || !request_.overwrite))
    return last;
  if (auto apart = apart_from_runs(); !apart)
    return apart;
  const auto names = written_names(path());
  if (names.empty())
    return may_lie_here();
  if (!request_.overwrite)
    return refuse(names);
  moves_ = true;
  return may_move();
}

/// Removes from a list of changes those that another tokenizer implies.
/// @returns whether there were any
static bool follows_from_tokenizer(std::vector<run_change>& all) {
  return std::erase_if(all,
                       [](const run_change& c) {
                         return c.key == "model.vocab_size"
                                || c.key == "model.bos_token_id"
                                || c.key == "model.eos_token_id";
                       })
         > 0;
}

status out_folder::decide_resume() {
  if (!damage_.empty())
    return begin_anew("--resume: " + damage_);
  if (!found_)
    return failure{"--resume: " + no_record(path()).message};
  auto all = changes(found_->run, request_.run);
  const std::string& had = found_->run.data_tokenizer;
  const std::string& has = request_.run.data_tokenizer;
  if (had != has && follows_from_tokenizer(all)) {
    const std::string others = to_text(all, change_kind::refused);
    return failure{"--resume: the run in " + path().string()
                   + " was begun with data.tokenizer = " + had
                   + ", and is to go on with " + has + "; give --tokenizer "
                   + had + (others.empty() ? "" : "; also, " + others)
                   + ". Or leave out the run file: then all keys are those in "
                   + path().string() + ". Or " + new_run};
  }
  const std::string refused = to_text(all, change_kind::refused);
  if (!refused.empty())
    return failure{"--resume: this is not the run in " + path().string() + ": "
                   + refused + ". Restore the old values, or " + new_run};
  if (const auto told = to_text(all, change_kind::told); !told.empty())
    notices_.push_back("changed since the run began: " + told);
  const auto steps = std::ranges::find(all, "training.steps", &run_change::key);
  if (steps != all.end() && request_.run.lr_total_steps < 0)
    notices_.push_back("the learning rate decays until the new last step, "
                       + std::to_string(request_.run.steps)
                       + (rate_jumps(found_->run, request_.run, request_.step)
                            ? ", so it jumps now"
                            : "")
                       + "; to keep the old curve add "
                         "--lr_scheduler.total_steps "
                       + steps->before);
  return done{};
}

std::string out_folder::ways_out() const {
  std::error_code ignored;
  const bool other = fs::is_symlink(path(), ignored)
                     || path().filename() != real_.filename(); // "."
  return "choose another --out, or move the folder aside with --overwrite (to "
         + (other ? real_ : path()).string() + ".old-N)";
}

status out_folder::refuse(const std::vector<std::string>& names) const {
  const std::string folder = path().string();
  if (!damage_.empty())
    return failure{folder + " belongs to another run, and " + damage_ + ": "
                   + ways_out()};
  if (!found_)
    return failure{folder
                   + (request_.what == purpose::new_model
                        ? " holds files that would be overwritten ("
                        : " holds files that are not this run's and would be "
                          "overwritten (")
                   + names_text(names) + "): " + ways_out()};
  const std::string owner =
    found_->jobs.empty() ? "a run" : "the run of job " + found_->jobs.back();
  if (request_.what == purpose::new_model)
    return failure{folder + " belongs to " + owner + ": " + ways_out()};
  if (request_.what == purpose::new_run)
    return failure{
      folder + " belongs to " + owner + ": "
      + (checkpoints(path()).empty() ? "" : "continue it with --resume, ")
      + ways_out()};
  const std::string differs =
    to_text(changes(found_->run, request_.run), change_kind::refused);
  return failure{folder + " belongs to " + owner + ", not to job "
                 + request_.job
                 + (differs.empty() ? "" : ", which differs (" + differs + ")")
                 + ": " + ways_out()};
}

/// The output of a run must not touch the model from which it starts, nor lie
/// in that model's folder, where others would find it.
status out_folder::apart_from_model() const {
  const fs::path start = request_.run.model_path;
  if (!begins() || start.empty())
    return done{};
  const fs::path model = without_links(start);
  const std::string lies = model == real_            ? " is "
                           : is_within(real_, model) ? " lies in "
                           : is_within(model, real_) ? " holds "
                                                     : "";
  if (lies.empty())
    return done{};
  return failure{path().string() + lies
                 + (model == real_ ? "" : start.string() + ", which is ")
                 + "model.path, which this run starts from: choose another "
                   "--out"};
}

/// Nor may it lie among the results of a run, which that run writes, removes
/// and reads again.
status out_folder::apart_from_runs() const {
  std::error_code error;
  fs::path inner = real_;
  for (fs::path folder = inner.parent_path(); folder != inner;
       inner = folder, folder = inner.parent_path())
    if (model::is_result_name(inner.filename().string())
        && fs::exists(folder / record_name, error))
      return failure{path().string() + " lies in " + inner.string()
                     + ", which belongs to the run in " + folder.string()
                     + ": choose another --out"};
  return done{};
}

/// Results among the files of the text would be read as text by the next run.
status out_folder::may_lie_here() const {
  if (begins() || request_.what == purpose::attach)
    for (const fs::path path : request_.run.data_paths)
      if (without_links(path) == real_)
        return failure{path.string()
                       + " is --data, which this run reads: choose another "
                         "--out, for example "
                       + (path / "outputs").string()};
  return done{};
}

/// The run's input, the working directory of this process, and other runs must stay
/// in place.
status out_folder::may_move() const {
  std::error_code error, none;
  for (fs::directory_iterator in(real_, error), end; !error && in != end;
       in.increment(error))
    if (fs::exists(in->path() / record_name, none))
      return failure{"--overwrite: " + request_.folder.string() + " holds "
                     + (request_.folder / in->path().filename()).string()
                     + ", which is a run, too: choose another --out"};
  for (const fs::path path : request_.run.data_paths)
    if (begins() && is_within(without_links(path), real_))
      return failure{"--overwrite: " + request_.folder.string() + " holds "
                     + path.string()
                     + ", which this run reads: choose another --out"};
  if (is_within(without_links("."), real_))
    return failure{"--overwrite: this command runs within " + real_.string()
                   + ": choose another --out"};
  return done{};
}

const std::vector<std::string>& out_folder::jobs() const {
  static const std::vector<std::string> none;
  return found_ ? found_->jobs : none;
}

bool out_folder::begins() const {
  return request_.what == purpose::new_run
         || request_.what == purpose::new_model;
}

bool out_folder::has_job() const {
  return request_.what == purpose::attach && found_ && !moves_
         && found_->has(request_.job);
}

/// A job that was resumed has an end of its own, older than what came after it.
status out_folder::decide_again() const {
  if (!has_job() || found_->jobs.back() == request_.job)
    return done{};
  const std::string& newest = found_->jobs.back();
  return failure{
    "the run in " + path().string() + " went on from job " + request_.job
    + " with job " + newest + ", whose results are there: those of job "
    + request_.job + " would replace them. `shoal train "
    + shell_path(path().string())
    + " --resume` goes on with that one, or says how to where it is "
      "under way; else "
    + ways_out()};
}

std::vector<std::string> out_folder::take_notices() {
  return std::exchange(notices_, {});
}

status out_folder::check_text(const std::string& text) const {
  if (request_.what != purpose::resume || found_->text.empty()
      || found_->text == text)
    return done{};
  const auto all = changes(found_->run, request_.run);
  std::string by = to_text(all, change_kind::text);
  const auto other = std::ranges::find(all, "model.path", &run_change::key);
  if (by.empty() && other != all.end()
      && request_.run.data_tokenizer == "model")
    by = "by another tokenizer: model.path was " + other->before + " and is "
         + other->now;
  if (by.empty())
    by = names_text(request_.run.data_paths) + ": its files have changed";
  return failure{"--resume: the text is not that of the run in "
                 + path().string() + " (" + by
                 + "): its tokens, or the names of its files, are others, and "
                   "so would be the samples of its steps. Give the old text, "
                   "or "
                 + new_run};
}

status out_folder::claim(const std::string& text, const std::string& name) {
  if (auto here = place(); !here)
    return here.why();
  if (moves_)
    if (auto moved = move_aside(); !moved)
      return moved;
  if (request_.what == purpose::new_model)
    return done{};
  record_ = {};
  const bool has_found = found_ && !moves_;
  if (has_found)
    record_ = *found_;
  if (!has_job()) {
    record_.run = request_.run;
    record_.steps_max = std::max(record_.steps_max, request_.run.steps);
    record_.text = text;
    const bool attach = request_.what == purpose::attach;
    const bool unknown = has_found && record_.folder.empty(); // an older record
    record_.attached = record_.attached || attach || unknown;
    record_.folder = attach ? std::string() : this_folder();
  }
  if (!name.empty())
    record_.name = name;
  claimed_ = true;
  return write();
}

status
out_folder::keep(const std::string& job, const std::string& watch, bool open) {
  kept_ = true;
  if (auto here = place(); !here)
    return here.why();
  record_.add(job);
  if (record_.jobs.back() == job)
    record_.open = open;
  if (auto said = say_holder(watch); !said)
    return said;
  return write();
}

status out_folder::close(const std::string& job) {
  if (auto here = place(); !here)
    return here.why();
  if (!record_.open || record_.jobs.back() != job)
    return done{};
  record_.open = false;
  return write();
}

model::result<fs::path> out_folder::place() {
  std::error_code error;
  const fs::path now =
    fs::read_symlink("/proc/self/fd/" + std::to_string(here_.get()), error);
  if (!same_file(here_.get(), path())) {
    if (error || !same_file(here_.get(), now)) {
      if (auto made = make_again(); !made)
        return failure{path().string() + " was removed, and " + made.message()};
      return path();
    }
    notices_.push_back(path().string() + " was moved to " + now.string()
                       + ": this run goes on there");
    request_.folder = real_ = now;
  }
  if (!same_file(lock_.get(), path() / model::results_lock))
    if (auto locked = lock(); !locked) // the lock alone was removed
      return locked.why();
  return path();
}

/// In the place of a folder that was removed, if nobody has taken it.
status out_folder::make_again() {
  std::error_code error;
  if (!written_names(path()).empty())
    return failure{"another run or model is there now"};
  if (error = make(path(), made_); error)
    return failure{"it cannot be made again: " + error.message()};
  if (auto locked = lock(); !locked)
    return locked;
  notices_.push_back(path().string()
                     + " was removed: it is made again, without what this run "
                       "had written there");
  return claimed_ ? write() : done{};
}

status out_folder::write() const {
  const auto written =
    model::write_file(path() / "run.toml", runtime::to_toml(record_.run));
  return written ? model::write_file(path() / record_name, to_json(record_))
                 : written;
}

status out_folder::move_aside() {
  std::error_code error;
  for (int n = 1; n <= aside_max; ++n) {
    const fs::path to = real_.string() + ".old-" + std::to_string(n);
    if (::mkdir(to.c_str(), 0777) != 0 && errno == EEXIST)
      continue;
    fs::rename(real_, to, error); // replaces an empty folder
    if (error) {
      std::error_code ignored;
      fs::remove(to, ignored);
      return failure{"--overwrite: cannot move " + real_.string() + " to "
                     + to.string() + ": " + error.message()};
    }
    aside_ = to;
    break;
  }
  if (aside_.empty())
    return failure{"--overwrite: " + real_.string() + ".old-1 to "
                   + std::to_string(aside_max) + " exist: remove some"};
  notices_.push_back("moved what was in " + path().string() + " to "
                     + aside_.string());
  made_.clear();
  if (error = make(real_, made_); error)
    return failure{"cannot make folder " + real_.string() + ": "
                   + error.message()};
  made_lock_ = true;
  return lock(); // releases the old lock
}

/// Restores the former state.
void out_folder::take_back() noexcept {
  try {
    std::error_code ignored;
    const bool ours = found_ && aside_.empty(); // a run that is resumed
    if (claimed_ && ours) {
      record_ = *found_;
      static_cast<void>(write());
    } else if (claimed_) {
      fs::remove(path() / record_name, ignored);
      fs::remove(path() / "run.toml", ignored);
    }
    if (made_lock_)
      fs::remove(path() / model::results_lock, ignored);
    for (; !made_.empty(); made_.pop_back())
      fs::remove(made_.back(), ignored); // unless others use it by now
    if (!aside_.empty() && !fs::exists(real_, ignored))
      fs::rename(aside_, real_, ignored);
  } catch (const std::exception&) { // no memory: leave things as they are
  }
}

} // namespace shoal::apps
