// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sums over the devices of one host, each of which reads the memory of all others: one rank's device side of
/// comm/peers. kernels/cuda implements it, for GPUs and for the emulator.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace lockstep {

class Stream;

/// Where the other ranks of the host find a rank's memory: plain bytes, to be sent to them.
struct PeerAddress {
  std::array<std::uint64_t, 2> process{};  ///< random, the same for all threads of a process
  std::uint64_t memory = 0;                ///< in that process
  std::int64_t device = 0;                 ///< its index there
  std::array<std::byte, 64> ipc_handle{};  ///< cudaIpcMemHandle_t
};

/// Every rank has memory that the others read, of two halves, and a flag in it for each other rank. A sum is two
/// kernels. The first copies this rank's terms into a half; when all of them are there, it sets this rank's flag at
/// all others. The second waits for the flags in its own memory, and adds up the halves of all ranks in order of rank.
///
/// What holds, and why:
/// - *No deadlock.* The first kernel waits for no other rank, and is ahead of the second in its stream. So of sums
///   that all ranks queue in the same order, the terms of each come without the help of a later one. Blocks need not
///   be on the device at the same time. A launch has at most a block of 256 threads for each multiprocessor, which
///   leaves room for other work. Where queues are shared (ranks that are threads of one process), each needs a device
///   of its own.
/// - *No half is overwritten while it is read.* Sum n writes the half of sum n - 2. By then this rank has ended sum
///   n - 1, for which every other rank had set its flag: behind its own sum n - 2, the last to read that half.
/// - *Order of memory.* Terms are ahead of a fence of the system, an atomic addition of each block, and the flag that
///   the last block stores with release. Threads that wait load it with acquire; then their block reads the terms,
///   past the first-level cache.
/// - *Graphs.* The number of the next sum is in device memory, so a captured sum can be replayed. A sum may be in a
///   graph on one rank and outside of one on another. Kernels await those before them, so graphs may overlap kernels.
/// - *Addresses.* Other ranks see only this memory, which stays where it is; terms and sums may be elsewhere each
///   time.
/// - *Streams.* Outside a capture, a sum waits for the last one, whatever stream that was on. A captured sum is
///   ordered by its graph alone: a caller that captures sums on several streams, or launches graphs beside other
///   sums, orders them by events.
///
/// One thread at a time, but for waits_for() and end_waits().
class PeerSums {
 public:
  static constexpr int kMostRanks = 8;
  using SumNumber = std::uint64_t;  ///< from 1 on

  virtual ~PeerSums() = default;

  virtual PeerAddress address() const = 0;
  /// Once, before the first sum, with the addresses of all ranks, by rank.
  /// @throws DeviceError  one line: which rank's memory cannot be read from this device, and why
  virtual void open(std::span<const PeerAddress> by_rank) = 0;

  /// Queues: device memory `sums` [count] becomes the sum of all ranks' `terms` [count]; the two are the same memory,
  /// or apart. int64: exact, wraps around. fp32: added in order of rank, the same bits everywhere. Every rank with the
  /// same type and count.
  /// @param count  of at most as many bytes as Device::make_peer_sums() was told
  virtual void sum(Stream& stream, const std::int64_t* terms, std::int64_t* sums, std::size_t count) = 0;
  virtual void sum(Stream& stream, const float* terms, float* sums, std::size_t count) = 0;

  struct Wait {
    SumNumber sum = 0;
    int rank = 0;  ///< one whose terms are missing
  };
  /// What a kernel has been waiting for, for longer than ranks usually take.
  virtual std::optional<Wait> waits_for() const = 0;
  /// Kernels that wait now or later end without their sums, which must not be used.
  virtual void end_waits() noexcept = 0;

  /// Waits until the device has done its work, and lets go of the others' memory. Only when all ranks have come so far
  /// may they destroy theirs.
  virtual void close() noexcept = 0;
};

}  // namespace lockstep
