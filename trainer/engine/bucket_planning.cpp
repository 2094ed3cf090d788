// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The plan follows measured latencies and the speed of backward, both rank 0's.
#include "trainer/engine/bucket_planning.hpp"

#include "comm/latency.hpp"
#include "kernels/cpu/fma_peak.hpp"
#include "models/backward_ranges.hpp"

#include <span>
#include <vector>

namespace lockstep {
namespace {

constexpr double kPeakMeasurementSeconds = 0.002;
/// Whole training steps run at about this fraction of the fused multiply-add peak.
constexpr double kTypicalFractionOfPeak = 0.75;

/// FLOP/s of one thread in backward, rank 0's word.
double shared_flops_per_second(Communicator& comm) {
  double rate =
      comm.rank() == 0 ? kTypicalFractionOfPeak * cpu::measure_fma_peak(kPeakMeasurementSeconds) : 0;
  comm.broadcast(std::as_writable_bytes(std::span(&rate, 1)), 0);
  return rate;
}

/// Only the last grain of a rank hides communication: before it, no bucket is complete.
std::vector<GradientRange> ranges_of_last_grain(const Network& network, int grain, double flops_per_second) {
  std::vector<GradientRange> ranges;
  for (const BackwardRange& range : backward_ranges(network)) {
    ranges.push_back({.offset = range.offset,
                      .size = range.size,
                      .backward_seconds = range.flops * grain / flops_per_second});
  }
  return ranges;
}

}  // namespace

BucketPlan plan_buckets(const Job& job, const Network& network, const DeviceChoice& device,
                        Communicator& comm) {
  const std::size_t bytes_per_element =
      job.parallel.determinism == Determinism::kOff ? sizeof(float) : sizeof(std::int64_t);
  if (job.parallel.bucket_bytes > 0 || comm.size() == 1 || device.gpu != nullptr) {
    const auto ranges = ranges_of_last_grain(network, job.parallel.grain, 1.0);
    const std::size_t bytes = job.parallel.bucket_bytes > 0 ? job.parallel.bucket_bytes : SIZE_MAX;
    return plan_buckets_of_size(ranges, bytes_per_element, bytes);
  }
  const auto ranges = ranges_of_last_grain(network, job.parallel.grain, shared_flops_per_second(comm));
  const auto latency = measure_latency(comm, network.parameters().size * bytes_per_element);
  return plan_buckets_auto(ranges, bytes_per_element, latency);
}

}  // namespace lockstep
