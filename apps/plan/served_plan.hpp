// apps/plan/served_plan.hpp -- the output of `shoal plan --serve`: where a model
// would be served, and how fast. As JSON, and as a table.
//
// Times are those of a pipeline with nothing else on its peers:
//
//   first token   one pass with a prompt of planned_prompt tokens
//   one stream    passes with one token of one sequence, after that prompt
//   in all        as many passes as the pipeline has stages, one behind the
//                 other, each with usual_sequences tokens of as many sequences
//
// JSON: according to served_plan_fields(). First and last are both included.
#pragma once

#include "runtime/core/planning/plan.hpp"
#include "runtime/files/field_text.hpp"
#include "runtime/files/json.hpp"
#include "runtime/jobs/serve_config.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::apps {

/// Tokens of the prompt whose times are predicted; fewer in a smaller context.
inline constexpr std::uint64_t planned_prompt = 512;

struct planned_serving {
  const core::view& view;
  const core::assignment& place; ///< not all of its pipelines wait
  const runtime::serve_config& model;
  std::uint64_t parameters = 0;
  std::string where; ///< the name of the shoal
};

[[nodiscard]] nlohmann::ordered_json served_plan_json(const planned_serving& p);
std::vector<runtime::field_text> served_plan_fields();

/// The table for the result of served_plan_json(); ends with a newline.
[[nodiscard]] std::string served_plan_table(const planned_serving& p);

} // namespace shoal::apps
