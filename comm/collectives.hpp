// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The parts of data-parallel training, one function for each: replicate, scatter, parallel apply, gather.
/// (All-reduce is Communicator::all_reduce, all-gather is comm/agreement.hpp, send and receive are
/// Communicator's.) On host memory for any backend and any number of ranks; each call is collective and, but for
/// parallel_apply(), made of messages between two ranks with tag kCollectiveTag. Then sums of, and messages from, device memory.
#pragma once

#include "comm/communicator.hpp"
#include "kernels/device.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace lockstep {

/// Tags of collectives alone: other messages do not mix with them.
inline constexpr int kCollectiveTag = PointToPoint::kTags - 1;

/// Every rank's `data`, of the same size everywhere, becomes that of `root`.
template <typename T>
void replicate(Communicator& comm, std::span<T> data, int root) {
  static_assert(std::is_trivially_copyable_v<T>);
  comm.broadcast(std::as_writable_bytes(data), root);
}

/// `root`'s `whole` is cut in order of rank: `mine`, whose sizes may differ and be 0 and which together are as
/// long as `whole`, becomes this rank's piece. `whole` is only looked at on `root`.
/// @param bytes  of every rank's piece, on root
void scatter(Communicator& comm, std::span<const std::byte> whole, std::span<const std::size_t> bytes,
             std::span<std::byte> mine, int root);

/// The reverse: `whole`, on `root`, becomes all ranks' pieces in order of rank.
void gather_to(Communicator& comm, std::span<const std::byte> mine, std::span<const std::size_t> bytes,
               std::span<std::byte> whole, int root);

/// Runs `body` on every rank at the same time; returns when all are done. An error of any rank is one of all:
/// @throws AgreedError  on every rank, with the code of the lowest that failed
void parallel_apply(Communicator& comm, const std::function<void()>& body);

/// A message at a time in each direction, both at once: what two neighbours exchange without waiting for each
/// other. Sizes may be 0.
void send_and_receive(Communicator& comm, std::span<const std::byte> data, int to, std::span<std::byte> into,
                      int from, int tag = kCollectiveTag);

}  // namespace lockstep

namespace lockstep {

// The same for numbers of any type: counts become bytes.

template <typename T>
std::vector<std::size_t> bytes_of(std::span<const std::size_t> counts) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<std::size_t> bytes(counts.begin(), counts.end());
  for (std::size_t& size : bytes) size *= sizeof(T);
  return bytes;
}

/// The same of numbers. `counts`, of every rank's piece, is known to all ranks. Returns this rank's piece.
template <typename T>
std::vector<T> scatter(Communicator& comm, std::span<const T> whole, std::span<const std::size_t> counts,
                       int root) {
  std::vector<T> mine(at(counts, comm.rank()));
  scatter(comm, std::as_bytes(whole), bytes_of<T>(counts), std::as_writable_bytes(std::span(mine)), root);
  return mine;
}

/// Returns the whole on `root`, nothing on the others.
template <typename T>
std::vector<T> gather_to(Communicator& comm, std::span<const T> mine, std::span<const std::size_t> counts,
                         int root) {
  std::vector<T> whole;
  if (comm.rank() == root) whole.resize(std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
  gather_to(comm, std::as_bytes(mine), bytes_of<T>(counts), std::as_writable_bytes(std::span(whole)), root);
  return whole;
}

// How sums in device memory are added up over all ranks. Implementations: comm/nccl, comm/staged.

/// One rank's end. Making one is collective; so is all_reduce(): every rank calls it in the same order with
/// the same types and counts, and captures it in a graph where the others do. One thread at a time per rank.
/// Graphs that hold its operations must be destroyed before it.
class DeviceAllReduce {
 public:
  virtual ~DeviceAllReduce() = default;

  /// "NCCL 2.28.9", "mpi through pinned memory"
  virtual std::string_view name() const = 0;
  /// True: all_reduce() only queues work, which may be captured in a graph and overlap other streams' work.
  /// False: the host takes part. all_reduce() waits for the work queued before it and for the other ranks,
  /// and cannot be captured.
  virtual bool on_stream() const = 0;

  /// In place: device memory [count], after the work that is on the stream now, becomes the sum over all
  /// ranks for the work queued on it afterwards. int64: exact, wraps around, the same bits everywhere. fp32:
  /// the same bits on every rank; which, is the backend's.
  /// @throws PeerLostError  the other ranks did not come within the communicator's timeout()
  virtual void all_reduce(Stream& stream, std::int64_t* device, std::size_t count) = 0;
  virtual void all_reduce(Stream& stream, float* device, std::size_t count) = 0;

  /// Out of place: device memory `sums` [count] becomes the sum of `terms` [count], which stay as they are
  /// unless they are the same memory. In so far as a backend has no way of its own: a copy, then in place.
  virtual void all_reduce_into(Stream& stream, const std::int64_t* terms, std::int64_t* sums,
                               std::size_t count);
  virtual void all_reduce_into(Stream& stream, const float* terms, float* sums, std::size_t count);

  /// Throws what went wrong with queued work, as far as the backend knows of it; cheap, to be called while
  /// waiting. A peer that is gone may show in nothing but a wait that does not end.
  virtual void check() = 0;
};

/// Waits for work on this rank's device in which other ranks may take part.
/// @param all_reduce  which one it contains, or null
/// @param meanwhile   called again and again; must not block
/// @throws PeerLostError  after comm.timeout(): names this rank, its host and `what` was waited for
/// @throws what Event::done() and DeviceAllReduce::check() throw
void wait_for(
    Event& event, Communicator& comm, std::string_view what, DeviceAllReduce* all_reduce,
    const std::function<void()>& meanwhile = [] {});

// Messages from the device memory of one rank into that of another, one way. Implementation: comm/nccl. (Between hosts:
// comm/communicator.hpp.)

enum class LinkEnd { kSender, kReceiver };

/// One end. Making the two is collective among the two ranks of a communicator, and leaves nothing that a message
/// must wait for but the other end. One message at a time: the next is started when test() of the one before was
/// true. A message that is started may keep the whole device from its other work, other links' included, until the
/// other end has started, too. So ranks agree first, as DeviceStageLinks do. One thread at a time per rank.
class DeviceLink {
 public:
  virtual ~DeviceLink() = default;

  /// "NCCL 2.28.9"
  virtual std::string_view name() const = 0;

  /// Of the sender's end: starts one, behind what `behind` marks; the memory must stay untouched until test() is
  /// true, which may be only when it is received. test() throws PeerLostError if the other rank is known to be gone;
  /// that may also show in nothing but a wait that does not end.
  virtual std::unique_ptr<PendingCollective> start_send(const Event& behind,
                                                        std::span<const std::byte> data) = 0;
  /// Of the receiver's end: as long as what is sent, at least one byte. When test() is true it is there, for all
  /// streams.
  virtual std::unique_ptr<PendingCollective> start_receive(const Event& behind,
                                                           std::span<std::byte> data) = 0;
};

}  // namespace lockstep
