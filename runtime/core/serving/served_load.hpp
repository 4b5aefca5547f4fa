// runtime/core/serving/served_load.hpp -- how busy a served model is, as one
// peer's gateway knows it.
//
// Streams of pipelines are those of all peers' clients: each pipeline reports
// them to every member. What has been generated is counted for the clients of
// this peer alone, so the peers' counts add up to the shoal's.
#pragma once

#include "runtime/core/ids.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::core {

struct served_pipeline {
  std::uint32_t pipeline = 0;
  bool ready = false;        ///< all of its stages have their weights
  std::uint32_t streams = 0; ///< of the clients of all peers
  std::uint32_t running = 0; ///< of these, with pages of the cache
  std::uint64_t pages = 0;   ///< of the cache, in use
  std::uint64_t pages_max = 0;
  std::uint64_t waiting_tokens = 0; ///< of prompts, still to be computed
  friend bool
  operator==(const served_pipeline&, const served_pipeline&) = default;
};

struct served_load {
  job_id job = 0;
  std::string name;
  std::uint64_t streams = 0;          ///< of this peer's clients
  std::uint64_t generated_tokens = 0; ///< for them, since its node started
  std::vector<served_pipeline> pipelines;
  friend bool operator==(const served_load&, const served_load&) = default;
};

} // namespace shoal::core
