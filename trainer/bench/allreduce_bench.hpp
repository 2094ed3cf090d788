// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// `lockstep bench allreduce`: all-reduce alone, of host or device memory, in the columns of nccl-tests.
#pragma once

#include "comm/communicator.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace lockstep::bench {

struct AllreduceOptions {
  std::size_t min_bytes = 1024;
  std::size_t max_bytes = std::size_t{16} << 20;
  int repetitions = 30;          ///< of each size and type; medians are printed
  std::string backend = "auto";  ///< auto, mpi, nccl, thread
  /// Where the buffers are: "auto" (GPUs with backend nccl, otherwise the host), "cpu", "cuda", "emulated".
  std::string device = "auto";
};

/// Collective. Rank 0 prints one line per size and type: median time, algorithm bandwidth (bytes / time),
/// bus bandwidth (algorithm bandwidth * 2 (n - 1) / n: what each link carries in an optimal all-reduce), and
/// the number of wrong elements found over all ranks. An all-reduce that the host takes part in is timed by
/// itself, one that is queued on a stream as one of many in a graph, as in training.
/// @returns the number of wrong elements
/// @throws AgreedError  the device or the backend cannot be used here
std::int64_t bench_allreduce(Communicator& comm, const AllreduceOptions& options);

}  // namespace lockstep::bench
