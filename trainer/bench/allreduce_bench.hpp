// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// `lockstep bench allreduce`: the communicator alone, from 1 KB to 16 MB, in the columns of nccl-tests.
#pragma once

#include "comm/communicator.hpp"

namespace lockstep::bench {

struct AllreduceOptions {
  std::size_t min_bytes = 1024;
  std::size_t max_bytes = std::size_t{16} << 20;
  int repetitions = 30;  ///< of each size and type; medians are printed
};

/// Collective. Rank 0 prints one line per size and type: median latency, algorithm bandwidth (bytes / time),
/// bus bandwidth (algorithm bandwidth * 2 (n - 1) / n: what each link carries in an optimal all-reduce), and
/// the number of wrong elements found over all ranks.
/// @returns the number of wrong elements
std::int64_t bench_allreduce(Communicator& comm, const AllreduceOptions& options);

}  // namespace lockstep::bench
