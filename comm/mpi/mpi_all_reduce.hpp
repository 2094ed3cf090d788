// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// All-reduce of host memory over MPI's point-to-point messages.
#pragma once

#include "comm/communicator.hpp"

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace lockstep {

// The messages of an all-reduce: a pure function of rank, number of ranks and size.
//
// MPI_Iallreduce is not used: Open MPI's (libnbc) reduces to rank 0 and broadcasts. So two ranks take turns
// where they could work at once, and each of its rounds needs a call of ours to begin. Medians of 2 ranks on
// one machine (shared memory, int64, microseconds):
// bytes    MPI_Allreduce   MPI_Iallreduce + MPI_Test   doubling   halving
// 2,048              0.6                         1.2        0.6       0.9
// 40,960             12.0                        15.2       10.8      11.5
// 174,720             32.3                        44.1       36.4      31.6
// 4,194,304              509                        1250        705       487
// Under a backward of 600 us four polls hide all of it. Where there are more ranks than cores,
// MPI_Iallreduce is ahead (4 ranks on 2 cores, 174,720 bytes: 81 against 130): it changes threads less
// often.
//
// Ranks of a host are neighbours, as launchers number them by default, and share its way to the others. So
// sharing out begins with the nearest partners. It begins at a size at which it is ahead between hosts, although not
// yet inside one: docs/scaling.md.

/// A part of the buffer, in elements.
struct Slice {
  std::size_t offset = 0, count = 0;
};

/// Send a slice of the buffer as it is now to one rank. Receive another from one, mostly the same. Mostly a round.
/// Either slice may be empty, and then there is no message. The slices overlap only if `add`, where the received slice
/// arrives beside the buffer.
struct Exchange {
  int to = 0, from = 0;
  Slice send, receive;
  bool add = false;    ///< the received slice is added to the buffer; otherwise it replaces what is there
  bool own = false;    ///< this rank's term is sent, to which nothing was added yet
  bool first = false;  ///< the first addition to that slice: this rank's term and what arrived
  bool together =
      false;  ///< in one round with the exchange before it: all their messages are under way at once
};

/// From this size on each element is added up by one rank only instead of by all of them (doubling).
inline constexpr std::size_t kSharedOutFromBytes = 16 * 1024;

/// The rounds of `rank`, to be done in order. All ranks end with the same bits, fp32 too.
///
/// Small buffers: recursive doubling, log2(size) rounds of everything; partners add the same two numbers, and addition
/// commutes. Where there are not a power of two of ranks, every second of the last ones, as many as are beyond it,
/// first gives its buffer to the rank before it, and at last receives the result: inside each host, if all are full and
/// a power of two, otherwise among all ranks.
///
/// Large sums: neighbours in groups of 2, 3, 5 or 7 share their slice out and add up their parts. Ranks with
/// the same part go on among themselves, and the same way back: halving (Rabenseifner) for a power of two.
/// Each rank sends the buffer twice, less its own part. Ranks that no such group divides are in groups of
/// three or four, up to three of which have a rank more, which keeps no part. Inside a host a rank has one
/// partner after the other, between hosts all at once.
///
/// Each host shares out among its ranks first. Those of a last host that is not full keep several of the parts that
/// the others' ranks keep, up to eight, and do with each what its other ranks do. Where they would have to keep more,
/// the full hosts share out so far only that eight are enough; each of these goes to a rank of one full host, and the
/// sum comes back from there.
///
/// @param ranks_per_host  ranks of every host but the last, which may have fewer, all neighbours; 1: it is not so
std::vector<Exchange> all_reduce_schedule(int rank, int size, std::size_t count,
                                          std::size_t bytes_per_element, int ranks_per_host);

/// Free buffers for what arrives to be added; kept, since fresh pages would cost as much as the all-reduce itself.
using ReceiveBuffers = std::vector<std::vector<std::byte>>;

/// One under way: walks through its schedule, one round after the other. T is std::int64_t or float. `buffers`, `mine`
/// and `data` outlive it. The tag belongs to this one alone of all operations under way on `comm`.
template <typename T>
class MpiPendingSum final : public PendingCollective {
 public:
  /// @param mine  this rank's term: read by the first addition, and where a round sends `own`
  MpiPendingSum(MPI_Comm comm, int tag, std::vector<Exchange> rounds, std::span<const T> mine,
                std::span<T> data, ReceiveBuffers& buffers);
  ~MpiPendingSum() override;

  bool test() override;
  /// Requests of the current round. A caller that waits for one itself leaves MPI_REQUEST_NULL in its place.
  std::span<MPI_Request> requests() { return requests_; }

 private:
  void start_round();
  void finish_round();
  T* incoming() { return reinterpret_cast<T*>(incoming_.data()); }

  MPI_Comm comm_;
  int tag_;
  std::vector<Exchange> rounds_;
  std::size_t round_ = 0, next_round_ = 0;  ///< the exchanges under way: from the one to before the other
  std::span<const T> mine_;
  std::span<T> data_;
  ReceiveBuffers& buffers_;
  std::vector<std::byte> incoming_;
  std::vector<MPI_Request> requests_;
};

extern template class MpiPendingSum<std::int64_t>;
extern template class MpiPendingSum<float>;

/// Sums are added in the order of the schedule (all_reduce_schedule()). Uses the tags 0 to 32,767
/// of the communicator, which is the caller's.
class MpiAllReduce final : public AllReduce {
 public:
  /// @param ranks_per_host  see all_reduce_schedule()
  MpiAllReduce(MPI_Comm comm, int rank, int size, int ranks_per_host)
      : comm_(comm), rank_(rank), size_(size), ranks_per_host_(ranks_per_host) {}

  std::unique_ptr<PendingCollective> start(std::span<const std::int64_t> mine,
                                           std::span<std::int64_t> sum) override;
  std::unique_ptr<PendingCollective> start(std::span<float> data) override;

 private:
  template <typename T>
  std::unique_ptr<PendingCollective> start_sum(std::span<const T> mine, std::span<T> sum);

  MPI_Comm comm_;
  int rank_, size_, ranks_per_host_;
  int next_tag_ = 0;
  ReceiveBuffers receive_buffers_;
};

}  // namespace lockstep
