// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Brings the model and the communicator together: how a network's gradient is cut into buckets on this machine.
#include "comm/reduce/bucket_plan.hpp"
#include "kernels/cpu/simd_choice.hpp"
#include "models/network.hpp"
#include "trainer/training/setup.hpp"

#include <cstdint>
#include <vector>

namespace lockstep {
namespace {

constexpr double kPeakMeasurementSeconds = 0.002;
/// Whole training steps run at about this fraction of the fused multiply-add peak.
constexpr double kTypicalFractionOfPeak = 0.75;

/// Only the last grain of a rank hides communication: before it, no bucket is complete.
/// @param seconds_of_flop  that a grain takes for one operation on each of its samples
std::vector<GradientRange> ranges_of_last_grain(const Network& network, double seconds_of_flop) {
  std::vector<GradientRange> ranges;
  for (const BackwardRange& range : backward_ranges(network))
    ranges.push_back({range.offset, range.size, range.flops * seconds_of_flop});
  return ranges;
}

std::size_t bytes_of_element(const StepOptions& step) {
  return step.determinism == Determinism::kOff ? sizeof(float) : sizeof(std::int64_t);
}

}  // namespace

BucketPlan plan_buckets_of_size(const Network& network, const StepOptions& step, std::size_t bucket_bytes) {
  return plan_buckets_of_size(ranges_of_last_grain(network, 0), bytes_of_element(step), bucket_bytes);
}

BucketPlan plan_buckets_by_latency(const Network& network, const StepOptions& step, Communicator& comm) {
  if (comm.size() == 1) return plan_buckets_of_size(network, step, SIZE_MAX);
  double flops_per_second = 0;  // by one thread in backward
  if (comm.rank() == 0)
    flops_per_second = kTypicalFractionOfPeak * cpu::measure_fma_peak(kPeakMeasurementSeconds);
  broadcast(comm, flops_per_second);
  const auto ranges = ranges_of_last_grain(network, step.grain / flops_per_second);
  const auto latency = measure_latency(comm, network.parameters().size * bytes_of_element(step));
  return plan_buckets_auto(ranges, bytes_of_element(step), latency);
}

}  // namespace lockstep
