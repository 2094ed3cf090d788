// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The table of `bench allreduce`: the columns of nccl-tests, in 80 of a terminal's. (Theirs are 120 wide;
/// what says the same in every row, redop and root, stands in the title.)
#pragma once

#include "comm/collectives.hpp"
#include "comm/communicator.hpp"
#include "kernels/device.hpp"
#include "trainer/ranks/device_choice.hpp"
#include "trainer/tools/bench.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::bench {

/// What was measured of one way to sum: out of place or in place.
struct AllreduceResult {
  double seconds = 0;      ///< of one all-reduce
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
  double bus_bandwidths_ = 0;  ///< bytes a second, added up
  int results_ = 0;
  std::int64_t wrong_ = 0;
  std::vector<AllreduceRow> rows_;
};

// Where `bench allreduce` has its numbers: host memory, or a device of each rank that reaches the others' somehow.

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
/// Of the same kind as its all-reduce. Collective.
std::unique_ptr<DeviceCollectives> make_collectives(Communicator& comm, const DeviceSide& side);

}  // namespace lockstep::bench
