// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// `lockstep bench allreduce`: all-reduce alone, of host or device memory, as nccl-tests measures it.
#pragma once

#include "comm/communicator.hpp"
#include "kernels/device/device.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace lockstep::bench {

struct AllreduceOptions {
  std::size_t min_bytes = 1024;
  std::size_t max_bytes = std::size_t{16} << 20;
  std::size_t factor = 2;        ///< from one size to the next, at least 2
  int iterations = 30;           ///< of each size and type; medians are printed
  int warmup = 5;                ///< before those
  std::string backend = "auto";  ///< auto, mpi, nccl, thread
  /// Where the buffers are: "auto" (GPUs with backend nccl, otherwise the host), "cpu", "cuda", "emulated".
  std::string device = "auto";
};

/// Collective. Rank 0 prints which ranks take part, then one line per size and type: median time, algorithm
/// bandwidth (bytes / time), bus bandwidth (algorithm bandwidth * 2 (n - 1) / n: what each link carries in an
/// optimal all-reduce) and the number of wrong elements found over all ranks, of sums out of place (from one
/// buffer into another) and in place; and at the end the mean of all bus bandwidths. An all-reduce that the
/// host takes part in is timed by itself, one that is queued on a stream as one of many in a graph, as in
/// training. Between one rank and itself nothing travels: then there are times, and no bandwidths.
/// @param gpus  where "cuda" looks for them
/// @returns the number of wrong elements
/// @throws AgreedError    the device or the backend cannot be used here, or a buffer does not fit in memory
/// @throws PeerLostError  a rank was lost; what lies on the GPU is left as it is (run_leaking_on_peer_loss())
std::int64_t bench_allreduce(Communicator& comm, const AllreduceOptions& options,
                             const Platform& gpus = cuda::platform());

}  // namespace lockstep::bench
