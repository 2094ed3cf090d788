// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// All-reduce of host memory over MPI's point-to-point messages.
#pragma once

#include "comm/all_reduce.hpp"
#include "comm/mpi/all_reduce_schedule.hpp"

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace lockstep {

/// Buffers for what arrives to be added; kept, since fresh pages would cost as much as the all-reduce itself.
class ReceiveBuffers {
 public:
  /// At least `bytes`, contents unspecified, aligned for any number.
  std::vector<std::byte> take(std::size_t bytes);
  void give_back(std::vector<std::byte> buffer);

 private:
  std::vector<std::vector<std::byte>> free_;
};

/// One under way: walks through its schedule, one round at a time. T is std::int64_t or float. `buffers` and
/// `data` outlive it. Of all operations under way on `comm`, the tag is this one's alone.
template <typename T>
class MpiPendingSum final : public PendingCollective {
 public:
  MpiPendingSum(MPI_Comm comm, int tag, std::vector<Exchange> rounds, std::span<T> data,
                ReceiveBuffers& buffers);
  ~MpiPendingSum() override;
  MpiPendingSum(const MpiPendingSum&) = delete;
  MpiPendingSum& operator=(const MpiPendingSum&) = delete;

  bool test() override;
  /// Of the current round. A caller that waits for one itself leaves MPI_REQUEST_NULL in its place.
  std::span<MPI_Request> requests() { return requests_; }

 private:
  void start_round();
  void finish_round();
  T* incoming() { return reinterpret_cast<T*>(incoming_.data()); }

  MPI_Comm comm_;
  int tag_;
  std::vector<Exchange> rounds_;
  std::size_t round_ = 0;
  std::span<T> data_;
  ReceiveBuffers& buffers_;
  std::vector<std::byte> incoming_;
  std::array<MPI_Request, 2> requests_{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

extern template class MpiPendingSum<std::int64_t>;
extern template class MpiPendingSum<float>;

/// Sums are added in the order of the schedule (comm/mpi/all_reduce_schedule.hpp). Uses the tags 0 to 32,767
/// of the communicator, which is the caller's.
class MpiAllReduce final : public AllReduce {
 public:
  MpiAllReduce(MPI_Comm comm, int rank, int size) : comm_(comm), rank_(rank), size_(size) {}

  std::unique_ptr<PendingCollective> start(std::span<std::int64_t> data) override;
  std::unique_ptr<PendingCollective> start(std::span<float> data) override;

 private:
  template <typename T>
  std::unique_ptr<PendingCollective> start_sum(std::span<T> data);

  MPI_Comm comm_;
  int rank_, size_;
  int next_tag_ = 0;
  ReceiveBuffers receive_buffers_;
};

}  // namespace lockstep
