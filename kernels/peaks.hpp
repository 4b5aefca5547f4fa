// kernels/peaks.hpp -- the highest speeds of this machine, measured.
//
// Every figure of speed is compared with these. The loops do nothing but the
// best instruction on registers, or nothing but loads.
//
// Units:   operations and bytes per second of all threads of the team; a
//          multiply-add is two operations.
// Cost:    some milliseconds for each call, and memory of its own for reads.
// Threads: uses the team; other work on the machine lowers the figure.
#pragma once

#include "kernels/common/thread_team.hpp"
#include "kernels/inference/packed_weight.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace shoal::kernels {

/// int16: products of pairs, summed in 32 bits, which takes two instructions.
enum class peak : std::uint8_t { f32, bf16, int16, int8 };

/// Measures one peak. @returns 0 if the machine has no such instruction
double measure_peak(thread_team& team, peak which);

/// The instruction that the peak is measured with: "FMA", "AMX", "vdpbf16ps",
/// "vpmaddwd", "vpdpbusd"; "" if the machine has none.
std::string instruction_of(peak which);

/// The peak that bounds a product of many tokens with such a weight: the peak
/// of the type that the cpu backend multiplies here. It widens weights of 8 and
/// 4 bits to 16 bits if the machine does not multiply bytes; without products of
/// 16 bits it computes them one by one.
peak peak_of_products(weight_type type);

/// Measures how fast memory can be read.
class read_meter {
public:
  /// Much larger than caches, of which 32 MiB and more are common.
  static constexpr std::size_t bytes_default = std::size_t{512} << 20;

  explicit read_meter(std::size_t bytes = bytes_default);
  /// Bytes per second of one pass over the whole memory.
  double measure(thread_team& team);

private:
  std::shared_ptr<const std::byte> memory_;
  std::size_t bytes_;
};

} // namespace shoal::kernels
