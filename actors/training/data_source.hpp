// actors/training/data_source.hpp -- sends every microbatch its tokens.
//
// One per job, on the member that the plan names. data_order decides which
// windows of the text belong to a step: a function of (seed, step). Ids go to
// the first stage of the replica that has the microbatch, the next ids to its
// last stage. A window is seq_len + 1 tokens long and starts seq_len after the
// former one, so every token is predicted once.
//
// Message        Effect
// begin_step     sends all microbatches of a step, as they are expected
// begin_eval     the same for held-out windows, to the first replica
//
// Errors: as in stage.hpp.
#pragma once

#include "actors/training/stage.hpp"

namespace shoal::model {
struct corpus;
}

namespace shoal::actors {

struct data_source_config {
  world_ptr world;
  sub_plan_ptr plan;
  std::shared_ptr<const model::corpus> text;
};

/// @pre the text has at least one window of each split (check_corpus)
caf::actor
spawn_data_source(caf::actor_system& system, data_source_config config);

/// Whether there is enough text; otherwise a failure with the reason.
model::status
check_corpus(const model::corpus& text, const runtime::run_config& run);

} // namespace shoal::actors
