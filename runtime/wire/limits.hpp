// runtime/wire/limits.hpp -- the ranges of numbers in messages and records.
//
// What any machine or model has, and small enough that the planner's products
// fit its integers. What is written must be readable: nobody may count beyond
// these ends (core/cluster/credible.hpp), and encode_record() asserts it.
#pragma once

#include "runtime/core/ids.hpp"

namespace shoal::runtime::codec {

using core::epoch_max; ///< of views, ballots and steps
inline constexpr std::uint64_t bytes_max = std::uint64_t{1} << 48;
inline constexpr std::uint64_t flops_max = std::uint64_t{1} << 56;
inline constexpr std::uint64_t mflops_max = std::uint64_t{1} << 40;
inline constexpr std::uint32_t threads_max = 65536;
inline constexpr std::uint64_t latency_max = std::uint64_t{1} << 40;
/// Unix time in milliseconds: the year 36,800.
inline constexpr std::int64_t unix_ms_max = std::int64_t{1} << 50;
inline constexpr std::uint32_t blocks_max = 4096;
// What a job may ask for is what run files may (run_config.cpp): more makes
// plans that take minutes, and each peer of the shoal makes them.
inline constexpr std::uint32_t microbatches_max = 4096;
inline constexpr std::int32_t want_replicas_max = 64;
inline constexpr std::int32_t want_stages_max = 64;
inline constexpr std::int32_t want_virtual_max = 16;

} // namespace shoal::runtime::codec
