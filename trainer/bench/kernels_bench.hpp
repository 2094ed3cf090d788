// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// `lockstep bench kernels`: every op of both networks, forward and backward, beside the machine's peak.
#pragma once

#include <string>

namespace lockstep::bench {

struct KernelsOptions {
  int batch = 64;      ///< columns: the samples of one grain
  int rounds = 15;     ///< turns that each op and the peak measurement take
  std::string filter;  ///< only ops whose name contains this
};

/// Prints one line per op: microseconds, GFLOP/s and fraction of the fused multiply-add peak that was
/// measured in turns with the ops, or GB/s for ops that only move data.
void bench_kernels(const KernelsOptions& options);

}  // namespace lockstep::bench
