// apps/train/out_folder.hpp -- the folder of --out, which belongs to one run.
//
// run.json in it says to which run (run_record.hpp). run.lock is locked while a
// command writes there, so that a second one is refused.
//
//     this command   may write to a folder that
//     a new run      does not exist, or has none of the names that a run writes
//     init           is as for a new run; it becomes a model and no run's
//     --resume       belongs to the same run, except for permitted changes
//                    (run_changes.hpp)
//     attach JOB     is as for a new run, or belongs to this job, if no other
//                    job has gone on from it there
//     --overwrite    any: its content is moved aside as a whole, to DIR.old-N
//
// A new run or model never lies in the folder of model.path, nor around it.
//
// Other files may lie in such a folder; they stay unchanged.
//
//     open() -> check_text() -> claim() -> keep()        init: open() ->
//     claim()
//
// Once kept, a folder may be moved by a user, or by another command's
// --overwrite of a folder around it: place() follows it.
//
// Before claim() nothing is moved and only the lock is made. Until keep() is
// called the destructor undoes everything: a command that fails before its job
// is submitted leaves the folder as it was.
//
// Threads: one.
// Errors:  a failure names the folder, the obstacle, and the possible
//          solutions.
// Limits:  the lock needs a file system with flock(2); on NFS it also works
//          between machines.
#pragma once

#include "apps/train/run_record.hpp"
#include "runtime/files/posix.hpp"
#include "runtime/model/data/corpus.hpp" // results_lock

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shoal::apps {

struct out_request {
  enum class purpose { new_run, new_model, resume, attach };
  std::filesystem::path folder;
  purpose what = purpose::new_run;
  runtime::run_config run; ///< that writes to the folder
  std::string job;         ///< for attach: its id
  std::int64_t step = 0;   ///< for resume: that of its newest checkpoint
  bool overwrite = false;  ///< not with resume
};

class out_folder {
public:
  /// Decides, and locks the folder.
  static model::result<std::unique_ptr<out_folder>> open(out_request request);
  ~out_folder();
  out_folder(const out_folder&) = delete;
  out_folder& operator=(const out_folder&) = delete;

  const std::filesystem::path& path() const { return request_.folder; }
  /// Jobs to which it belonged when it was opened, oldest first.
  const std::vector<std::string>& jobs() const;
  /// Whether its metrics.jsonl may hold events of the job to attach to.
  bool has_job() const;

  /// Fails if a command is writing to `folder`, and says how to watch it.
  static model::status free_to_write(const std::filesystem::path& folder);

  /// Notices for the user, each returned once: changed values, and the place of
  /// the old folder.
  std::vector<std::string> take_notices();

  /// Fails if the text of a resumed run has changed.
  /// @param text  SHA-256 of its tokens
  model::status check_text(const std::string& text) const;

  /// Sets the run, once its vocabulary is known. Before claim().
  void update(const runtime::run_config& run) { request_.run = run; }

  /// Moves the old folder aside if requested, and makes this one the run's,
  /// unless it only gets a model.
  /// @param text  as above; empty: unknown
  /// @param name  of the job; empty: the one that is recorded
  model::status claim(const std::string& text, const std::string& name = {});

  /// From now on the folder stays, and also belongs to this job.
  /// @param watch  command that watches the job meanwhile, for others that want
  /// to write here; empty: none
  /// @param open  the job goes on without this command: see close()
  model::status keep(const std::string& job, const std::string& watch = {},
                     bool open = false);
  /// The job has ended, and the folder has its end.
  model::status close(const std::string& job);

  /// The folder, wherever it lies now; asked before anything is written there.
  /// One that was removed is made again. Both are told as notices. Fails if what
  /// has its place now is another's.
  model::result<std::filesystem::path> place();

private:
  explicit out_folder(out_request request);
  model::status decide();
  model::status decide_resume();
  model::status decide_again() const;
  bool begins() const; ///< a run or a model, in a folder without another
  model::status refuse(const std::vector<std::string>& names) const;
  model::status may_move() const;
  model::status may_lie_here() const;
  model::status apart_from_model() const;
  model::status apart_from_runs() const;
  model::status prepare();
  model::status lock();
  model::status say_holder(const std::string& watch) const;
  model::status move_aside();
  model::status write() const;
  model::status make_again();
  void take_back() noexcept;
  std::string ways_out() const;

  out_request request_;
  std::filesystem::path real_;      ///< without links, which stay when it moves
  std::optional<run_record> found_; ///< the former owner
  std::string damage_;              ///< why the record cannot be read
  bool moves_ = false;              ///< the content has to be moved aside
  run_record record_;               ///< the owner, once claimed
  std::vector<std::string> notices_;

  // Undone by take_back().
  runtime::posix::descriptor lock_;
  runtime::posix::descriptor here_; ///< the folder, wherever it is moved
  bool made_lock_ = false;
  std::vector<std::filesystem::path> made_; ///< folders, deepest last
  std::filesystem::path aside_;             ///< the old folder's new place
  bool claimed_ = false;
  bool kept_ = false;
};

/// Names in `folder` that a run would overwrite; sorted, without run.lock.
std::vector<std::string> written_names(const std::filesystem::path& folder);

} // namespace shoal::apps
