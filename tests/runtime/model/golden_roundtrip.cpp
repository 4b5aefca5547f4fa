// tests/runtime/model/golden_roundtrip.cpp -- a directory in, out, and logits.
//
//   golden_roundtrip IN OUT SHARD_BYTES ID...
//
// Saves what it loaded and prints the logits of the ids, one row a line, as a
// JSON list. tests/golden/check_roundtrip.py compares both with transformers.
#include "kernels/backend.hpp"
#include "kernels/common/thread_team.hpp"
#include "runtime/model/hf/hf_directory.hpp"
#include "runtime/model/stage_model.hpp"

#include <cstdio>
#include <cstdlib>

using namespace shoal;
using namespace shoal::model;

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: golden_roundtrip IN OUT SHARD_BYTES ID...\n");
    return 2;
  }
  auto loaded = load_directory(argv[1]);
  if (!loaded) {
    std::fprintf(stderr, "%s\n", loaded.message().c_str());
    return 1;
  }
  save_options options;
  options.shard_bytes_max = std::strtoull(argv[3], nullptr, 10);
  const auto saved =
    save_directory(argv[2], *loaded->layout, loaded->units, options);
  if (!saved) {
    std::fprintf(stderr, "%s\n", saved.message().c_str());
    return 1;
  }
  std::vector<token_id> ids;
  for (int i = 4; i < argc; ++i)
    ids.push_back(std::atoi(argv[i]));
  if (!valid_ids(loaded->config, ids)) {
    std::fprintf(stderr, "an id is not below vocab_size\n");
    return 2;
  }
  kernels::thread_team team(1);
  const auto device = kernels::make_cpu_backend(team);
  std::vector<unit_state*> units;
  for (unit_state& unit : loaded->units)
    units.push_back(&unit);
  stage_model stage(units, *device);
  const std::size_t vocabulary = loaded->config.vocab_size;
  std::vector<float> logits(ids.size() * vocabulary);
  forward_work work;
  work.tokens = ids.size();
  work.ids = ids;
  work.logits_out = logits;
  work.keep = false;
  stage.forward(work);
  for (std::size_t i = 0; i < logits.size(); ++i)
    std::printf("%s%.9g%s", i % vocabulary == 0 ? "[" : ", ",
                static_cast<double>(logits[i]),
                (i + 1) % vocabulary == 0 ? "]\n" : "");
  return 0;
}
