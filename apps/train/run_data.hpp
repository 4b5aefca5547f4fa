// apps/train/run_data.hpp -- what a run gives to its shoal: its text as tokens, and
// what its weights begin with.
//
// Both are given when the run is submitted. Until the first step perhaps only the
// node that took the job has them; when that one is gone, they are given again.
//
// Threads: one at a time. Errors: texts that say what could not be read or stored.
#pragma once

#include "apps/submit/run_file.hpp"
#include "apps/train/resumed_run.hpp"
#include "runtime/control/client.hpp"

#include <optional>
#include <string>
#include <vector>

namespace shoal::apps {

class run_data {
public:
  /// @param resumed  none: the run is new. Both must outlive this object.
  run_data(runtime::run_config& run, const std::optional<resumed_run>& resumed)
    : run_(run), resumed_(resumed) {}

  /// The text as tokens. Of a new run the tokenizer is first trained, if requested;
  /// otherwise it is the checkpoint's.
  model::result<model::corpus>
  read(model::corpus_report& report, const model::watch& told);

  /// Keeps the text's bytes, to give them. @returns their digest, in hex
  std::string keep(const model::corpus& text);

  /// Uploads the text and the origin, and names them in the job.
  /// @param where  follows the reason if the node does not store them
  model::status put(runtime::client& client, core::job_entry& entry,
                    const std::string& where);

  /// The same again, if the text has not changed since. @returns a line about it
  std::string put_again(runtime::client& client);

  /// Whether this is the text.
  bool is_text(const core::blob_digest& blob) const { return blob == digest_; }

  /// Whether the bytes are in memory.
  bool held() const { return !bytes_.empty(); }
  /// Others have the text now: its bytes are read again if they are needed.
  void release() { bytes_ = {}; }

  /// The tokenizer that this run has trained.
  const std::optional<tokenizer_files>& tokenizer() const { return tokenizer_; }

private:
  /// @returns why the text cannot be given again; "": it is in memory
  std::string read_again();
  model::status put_origin(runtime::client& client, core::job_entry& entry,
                           const std::string& where) const;

  runtime::run_config& run_; ///< gets the size of a vocabulary that is trained
  const std::optional<resumed_run>& resumed_;
  std::optional<tokenizer_files> tokenizer_;
  std::vector<std::byte> bytes_;
  core::blob_digest digest_{}; ///< of the text
};

} // namespace shoal::apps
