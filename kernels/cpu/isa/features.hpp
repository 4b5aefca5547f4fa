// kernels/cpu/isa/features.hpp -- instructions that Highway 1.0.3 does not reach.
//
// One hand-written function uses each, guarded by this check, beside a portable
// one. All need AVX-512, and are off if Highway is limited to less.
//
// Threads: usable_features() from any; limit_features() while no kernel runs.
#pragma once

#include <string>

namespace shoal::kernels::cpu {

struct features {
  bool vnni = false; ///< vpdpbusd: four int8 products a lane
  bool bf16 = false; ///< vdpbf16ps: two bf16 products a lane
  bool amx = false;  ///< tiles of bf16, in training; needs bf16, too

  bool operator==(const features&) const = default;
};

/// The features that processor and system offer and the limit allows. The first
/// call asks the system for the tiles' registers.
features usable_features();

/// For tests: from now on no feature outside `limit` is used.
void limit_features(features limit);

/// For example "VNNI BF16 AMX"; empty if there is none.
std::string to_string(features f);

} // namespace shoal::kernels::cpu
