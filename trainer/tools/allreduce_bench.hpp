// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// `lockstep bench allreduce`, and what all benchmarks share.
#pragma once

#include "comm/communicator.hpp"
#include "kernels/device.hpp"
#include "kernels/platform.hpp"
#include "trainer/device/gradient_path.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::bench {

/// Format of all objects that --json prints.
inline constexpr int kBenchFormat = 1;

/// The middle value (mean of two for an even number). `values` must not be empty.
double median(std::vector<double> values);

// `lockstep bench allreduce`: all-reduce alone, of host or device memory, as nccl-tests measures it.

struct AllreduceOptions {
  std::size_t min_bytes = 1024;
  std::size_t max_bytes = std::size_t{16} << 20;
  std::size_t factor = 2;        ///< from one size to the next, at least 2
  int iterations = 30;           ///< per size and type; medians are printed
  int warmup = 5;                ///< before those
  std::string backend = "auto";  ///< auto, mpi, nccl, thread
  /// Place of the buffers: "auto" (GPUs with backend nccl, otherwise the host), "cpu", "cuda", "emulated".
  std::string device = "auto";
  bool json = false;  ///< one JSON object in place of the table
};

/// Collective. Rank 0 prints which ranks take part, then one line per size and type: median time, algorithm
/// bandwidth (bytes / time), bus bandwidth (algorithm bandwidth * 2 (n - 1) / n: what each link carries in an
/// optimal all-reduce) and the number of wrong elements found over all ranks, of sums out of place (from one
/// buffer into another) and in place; and at the end the mean of all bus bandwidths. An all-reduce that the
/// host takes part in is timed by itself, one that is queued on a stream as one of many in a graph, as in
/// training. Between one rank and itself nothing travels: then there are times, and no bandwidths.
/// @param gpus  where "cuda" looks for them
/// @returns the exit code: 70 if an element is wrong
/// @throws AgreedError    the device or the backend cannot be used here, or a buffer does not fit in memory
/// @throws PeerLostError  a rank was lost; what lies on the GPU is left as it is (run_leaking_on_peer_loss())
int bench_allreduce(Communicator& comm, const AllreduceOptions& options,
                    const Platform& gpus = cuda::platform());

// `lockstep bench allreduce --demo`: what data-parallel training does with numbers, shown on a handful of them.

/// The explicit steps of "Dive into Deep Learning", section 13.5, on the ranks of this job. Parameters made on rank 0
/// are copied to all (get_params), ones times (rank + 1) are summed (allreduce), and the 20 numbers of a 4 x 5 matrix
/// are scattered over the ranks by rows (split_batch), squared where they are (parallel_apply) and gathered again.
/// Rank 0 prints what every rank has, before and after. Collective.
/// @param options  of which device and backend count: what carries the numbers. With a device those of the allreduce
///                 are in its memory, all others in the host's
/// @throws AgreedError, PeerLostError  as bench_allreduce()
void show_allreduce(Communicator& comm, const AllreduceOptions& options);

// The table of `bench allreduce`: the columns of nccl-tests, in 80 of a terminal's. (Theirs are 120 wide; what says
// the same in every row, redop and root, is in the title.)

/// Measurements of one kind of sum: out of place or in place.
struct AllreduceResult {
  double seconds = 0;      ///< per all-reduce
  std::int64_t wrong = 0;  ///< elements, over all ranks
};

struct AllreduceRow {
  std::size_t bytes = 0, count = 0;
  std::string_view type;
  AllreduceResult out_of_place, in_place;
};

/// Lines without their end. All but the rows start with '#', as in nccl-tests.
class AllreduceTable {
 public:
  explicit AllreduceTable(int ranks) : ranks_(ranks) {}

  static std::vector<std::string> head();
  /// Adds the row to what foot() sums up, and json() tells.
  std::string row(const AllreduceRow& row);
  std::vector<std::string> foot() const;
  /// All rows, as one line of JSON. @param path  what carries the sums
  std::string json(const std::string& path) const;

 private:
  double bus_bandwidth(const AllreduceRow& row, const AllreduceResult& result) const;
  std::string half(const AllreduceRow& row, const AllreduceResult& result);

  int ranks_;
  double bus_bandwidths_ = 0;  ///< bytes a second, added up over both halves of all rows
  std::int64_t wrong_ = 0;
  std::vector<AllreduceRow> rows_;
};

// Buffers of `bench allreduce`: host memory, or a device of each rank that can reach the others.

/// Null: host memory.
const Platform* platform_of(const AllreduceOptions& options, const Platform& gpus);

/// @throws AgreedError  the backend is none of host memory
void require_host_backend(Communicator& comm, const AllreduceOptions& options);

/// In the order in which they were made.
struct DeviceSide {
  std::unique_ptr<Device> device;
  AllReduceSetup setup;  ///< its all-reduce is there also where one rank is alone
};

/// Collective. @throws AgreedError  the device or the backend cannot be used here
std::unique_ptr<DeviceSide> take_device(Communicator& comm, const AllreduceOptions& options,
                                        const Platform& platform);

}  // namespace lockstep::bench
