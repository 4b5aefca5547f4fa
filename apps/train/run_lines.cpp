// apps/train/run_lines.cpp -- writes these lines.
#include "apps/train/run_lines.hpp"

#include "apps/terminal/confirm.hpp" // shell_word
#include "runtime/core/text/amounts.hpp"
#include "runtime/model/data/bigram.hpp"
#include "runtime/model/units.hpp"

#include <cstdio>

namespace shoal::apps {

namespace fs = std::filesystem;

void introduce(progress& out, const runtime::run_config& run, bool as_json,
               const fs::path& keys) {
  if (run.lr == 0)
    out.say("notice", "optimizer.lr is 0: no step will change the weights");
  if (as_json)
    return out.say_config();
  char line[200];
  std::snprintf(
    line, sizeof line,
    "run: %s of %s parameters, %lld steps of %lld sequences of %lld "
    "tokens",
    run.model.model_type.c_str(),
    core::large_text(double(model::unit_layout(run.model).parameter_count()))
      .c_str(),
    (long long)run.steps, (long long)run.sequences_per_step(),
    (long long)run.seq_len);
  out.say("notice",
          keys.empty() ? line : line + ("; all keys in " + keys.string()));
}

void describe(progress& out, const model::corpus& text,
              const model::corpus_report& report, bool bigram) {
  for (const std::string& notice : report.notices)
    out.say("notice", notice);
  out.say("corpus", "text: " + core::count_text(report.read.files, "file")
                      + ", " + core::count_text(text.train_size(), "token")
                      + " to train on, "
                      + std::to_string(text.validation_size()) + " held out");
  char line[200];
  if (!bigram || !text.narrow())
    return;
  std::snprintf(line, sizeof line, "held-out loss of a byte-bigram model: %.4f",
                model::bigram_validation_loss(text));
  out.say("bigram", line);
}

std::string
kept_text(const fs::path& kept, const fs::path& out, bool finished) {
  const std::string into = shell_word((out / "checkpoint").string());
  return "the last checkpoint is not in " + out.string() + "; it is kept in "
         + kept.string() + ". When there is room, `mkdir -p " + into + " && mv "
         + shell_word(kept.string()) + " " + into + "/` puts it there"
         + (finished ? std::string()
                     : ", and `shoal train " + shell_word(out.string())
                         + " --resume` goes on from it");
}

} // namespace shoal::apps
