// apps/train/example_run.hpp -- the run file that `shoal train --example`
// prints.
//
// It is complete for a first run and shows the keys that users change first;
// all others have defaults. On two cores it takes about a minute and ends well
// below the loss of a bigram model of the same text (tests/apps/train_test.py
// checks that).
#pragma once

#include <string_view>

namespace shoal::apps {

inline constexpr std::string_view example_run =
  R"(# A run for `shoal train run.toml --data FOLDER`: a small model that learns
# the bytes of your text. Keys that are left out have defaults; `shoal train
# --help` lists all, and `shoal plan run.toml` says what would run where, how
# fast, and how much memory it takes.

[model]                     # or: path = "DIR" of Hugging Face, to go on from
hidden_size = 128           # width; heads and the MLP's size follow from it
num_hidden_layers = 4
max_position_embeddings = 256

[training]
steps = 800                 # optimizer steps
seq_len = 128               # bytes (tokens) that are read together
local_batch_size = 4        # sequences that a peer computes at once
global_batch_size = 16      # sequences in a step, over all peers
seed = 0

[optimizer]
lr = 3e-3                   # less for larger models: 3e-4 for hidden_size 1024

[validation]                # the loss on files that are not trained on
freq = 100                  # steps

[checkpoint]
interval = 200              # at most this many steps are repeated if all die

[fault_tolerance]           # peers that may die without a lost step: by default
# copies = 1                # 1, where there is another peer

[metrics]
log_freq = 20               # steps between lines
)";

} // namespace shoal::apps
