// kernels/peaks.hpp -- what this machine can do at most, measured.
//
// What every figure of speed is compared with: loops of nothing but the best
// instruction on registers, and of nothing but loads.
//
// Units:   operations and bytes per second of all threads of the team; a
//          multiply-add is two operations.
// Cost:    each call some milliseconds, and memory of its own for reads.
// Threads: the team's; other work on the machine lowers the figure.
#pragma once

#include "kernels/packed_weight.hpp"
#include "kernels/thread_team.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace shoal::kernels {

/// int16: pairs of products, and the sum of them in 32 bits, which takes two
/// instructions.
enum class peak : std::uint8_t { f32, bf16, int16, int8 };

/// Measures one peak. @returns 0 if the machine has no such instruction
double measure_peak(thread_team& team, peak which);

/// By which instruction: "FMA", "AMX", "vdpbf16ps", "vpmaddwd", "vpdpbusd"; ""
/// if by none.
std::string instruction_of(peak which);

/// The peak that bounds a product of many tokens with such a weight: that of
/// what the cpu backend multiplies them by here. Weights of 8 and 4 bits are
/// widened for it, to bf16, 16 bits or floats; int8 bounds products of few
/// tokens only, which reading the weight bounds more.
peak peak_of_products(weight_type type);

/// Memory to read from.
class read_meter {
public:
  /// Much more than the caches hold: 32 MiB and up are common.
  static constexpr std::size_t bytes_default = std::size_t{512} << 20;

  explicit read_meter(std::size_t bytes = bytes_default);
  /// Bytes per second of one pass over all of it.
  double measure(thread_team& team);

private:
  std::shared_ptr<const std::byte> memory_;
  std::size_t bytes_;
};

} // namespace shoal::kernels
