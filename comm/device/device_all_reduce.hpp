// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sums of device memory over all ranks, and messages from one rank's device memory to another's. It has what the
/// ways there have in common. Implementations: comm/nccl, comm/staged.
#pragma once

#include "comm/communicator.hpp"
#include "kernels/device.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

namespace lockstep {

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

  /// Device memory `sums` [count] becomes the sum over all ranks of `terms` [count]. It comes after the work that is on
  /// the stream now, and is there for the work queued on it afterwards. The terms stay as they are unless they are the
  /// same memory. int64: exact, wraps around, the same bits everywhere. fp32: the same bits on every rank; which, is
  /// the backend's.
  /// @throws PeerLostError  the other ranks did not come within the communicator's timeout()
  virtual void all_reduce_into(Stream& stream, const std::int64_t* terms, std::int64_t* sums,
                               std::size_t count) = 0;
  virtual void all_reduce_into(Stream& stream, const float* terms, float* sums, std::size_t count) = 0;
  /// In place.
  template <typename T>
  void all_reduce(Stream& stream, T* device, std::size_t count) {
    all_reduce_into(stream, device, device, count);
  }

  /// Throws what went wrong with queued work, as far as the backend knows of it. Cheap, to be called while
  /// waiting. A peer that is gone may show in nothing but a wait that does not end.
  virtual void check() = 0;
};

/// Waits for work on this rank's device in which other ranks may take part.
/// @param all_reduce  the all-reduce in it, or null
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

  /// Starts a message at the sender's end, after the work that `behind` marks. The memory must stay untouched until
  /// test() is true, which may be only when it is received. test() throws PeerLostError if the other rank is known to
  /// be gone; that may also show only in a wait that does not end.
  virtual std::unique_ptr<PendingCollective> start_send(const Event& behind,
                                                        std::span<const std::byte> data) = 0;
  /// Starts to receive, at the receiver's end: as many bytes as are sent, at least one. When test() is true they are
  /// there, for all streams.
  virtual std::unique_ptr<PendingCollective> start_receive(const Event& behind,
                                                           std::span<std::byte> data) = 0;
};

}  // namespace lockstep
