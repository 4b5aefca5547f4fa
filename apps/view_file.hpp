// apps/view_file.hpp -- a shoal that does not exist, described for planning.
//
//   [[members]]              # one or more groups of members that are alike
//   count = 128              # default 1
//   name = "gpu"             # gpu-0, gpu-1, ...; default "peer"
//   per_host = 8             # so many share a host; default: a host each
//   kind = "cuda"            # "cpu" (default) shares its host's cores
//   tflops = 380.0           # what training reaches, not what is advertised
//   memory_gib = 180         # for jobs
//   threads = 16             # of cpu members; default 1
//   host_threads = 64        # cores of its host; default: not known
//   stream_gb_per_s = 2000   # of its memory; default: not counted
//   networks = [{ name = "host", latency_us = 5, gb_per_s = 400 },
//               { name = "ib", latency_us = 8, gb_per_s = 45 }]
//
// Members of one host reach each other by "host", others by a network of the
// same name, or else as planning assumes of networks (core/training/cost.hpp).
//
// Errors: a failure names the file and the key, such as members[1].tflops.
// Limits: view_members_max members.
#pragma once

#include "runtime/core/view.hpp"
#include "runtime/model/result.hpp"

#include <string>
#include <string_view>

namespace shoal::apps {

inline constexpr std::size_t view_members_max = 4096;

/// @param json the file as JSON (toml_text_to_json)
/// @param source names the file in errors
model::result<core::view>
parse_view(std::string_view json, const std::string& source);

} // namespace shoal::apps
