// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What `lockstep bench` measured, read from what it printed, and the constants that follow from it.
#pragma once

#include "comm/bucket_plan.hpp"
#include "simulation/cluster.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Of `bench allreduce`: int64, in place.
struct MeasuredAllReduce {
  int ranks = 0;
  std::vector<LatencyPoint> points;  ///< ascending in bytes
};
/// @throws DataError  it is not what `lockstep bench allreduce` prints, or one rank's
MeasuredAllReduce read_allreduce_table(std::string_view text, const std::string& file);

/// Of `bench step`: the line "world".
struct MeasuredStep {
  int ranks = 0, threads = 1;
  double seconds = 0;              ///< of a step
  double exposed = 0, skew = 0;    ///< seconds of it
  double update = 0;               ///< the optimiser's
  double flops_per_second = 0;     ///< of a thread while it computes
  std::int64_t grains = 0;         ///< of a rank, each step
  std::vector<double> until_left;  ///< seconds of a step until each bucket leaves; empty: not told
};
/// @throws DataError  it is not what `lockstep bench step` prints on a CPU
MeasuredStep read_step_table(std::string_view text, const std::string& file);

/// The latency and bandwidth inside a node with which the model comes closest to what was measured there, in
/// relative terms; what adding up takes is that of `start`.
/// @param most_bytes  larger sums are left out: they do not fit the same caches
NetworkConstants fit_local(const MeasuredAllReduce& measured, const NetworkConstants& start,
                           std::size_t most_bytes);

}  // namespace lockstep
