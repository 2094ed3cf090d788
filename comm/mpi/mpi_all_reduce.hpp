// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// An all-reduce under way over point-to-point messages: walks through its schedule, one round at a time.
#pragma once

#include "comm/communicator.hpp"
#include "comm/mpi/all_reduce_schedule.hpp"

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
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

/// T is std::int64_t or float. `buffers` and `data` outlive it. Of all operations under way on `comm`, the
/// tag is this one's alone.
template <typename T>
class MpiAllReduce final : public PendingCollective {
 public:
  MpiAllReduce(MPI_Comm comm, int tag, std::vector<Exchange> rounds, std::span<T> data,
               ReceiveBuffers& buffers);
  ~MpiAllReduce() override;
  MpiAllReduce(const MpiAllReduce&) = delete;
  MpiAllReduce& operator=(const MpiAllReduce&) = delete;

  bool test() override;

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

extern template class MpiAllReduce<std::int64_t>;
extern template class MpiAllReduce<float>;

}  // namespace lockstep
