// apps/train/run_lines.hpp -- what `train` tells of a run before it starts, and
// of a checkpoint that is not in its folder.
//
// Threads: pure functions, but for what they print.
#pragma once

#include "apps/common/progress.hpp"
#include "runtime/model/data/corpus.hpp"

#include <filesystem>
#include <string>

namespace shoal::apps {

/// Prints the run that will start: all of it as JSON, or a line with the main
/// values. @param keys  the file that has all of them; may be empty
void introduce(progress& out, const runtime::run_config& run, bool as_json,
               const std::filesystem::path& keys);

/// Prints what text was read. @param bigram  also a byte-bigram model's loss
void describe(progress& out, const model::corpus& text,
              const model::corpus_report& report, bool bigram);

/// Where the last checkpoint of a run is, since it is not in `out`, and the
/// commands that put it there. @param finished  there are no steps to go on with
std::string kept_text(const std::filesystem::path& kept,
                      const std::filesystem::path& out, bool finished);

} // namespace shoal::apps
