// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What data-parallel training is made of (comm/collectives.hpp), on device memory. Implementations: comm/nccl,
/// comm/staged. (The sum over all ranks is comm/device_all_reduce.hpp; parallel_apply() has no memory.)
#pragma once

#include "comm/communicator.hpp"
#include "kernels/device/device.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace lockstep {

/// One rank's end. Making one is collective, as each of its calls is: every rank makes them in the same order with the
/// same root and the same sizes, as the call says. Pointers are device memory of the rank; buffers do not overlap.
/// Whatever is on the stream comes first, and what is queued on it afterwards finds the result. One thread at a
/// time per rank.
class DeviceCollectives {
 public:
  virtual ~DeviceCollectives() = default;

  /// "NCCL 2.28.9", "mpi through pinned memory"
  virtual std::string_view name() const = 0;

  /// Every rank's `data` becomes that of `root`.
  virtual void replicate(Stream& stream, std::byte* data, std::size_t bytes, int root) = 0;
  /// `root`'s `whole` is cut in order of rank: `mine` becomes this rank's piece.
  /// @param whole  of the root; others' is not looked at
  /// @param bytes  of every rank's piece, known to all; may differ and be 0
  virtual void scatter(Stream& stream, const std::byte* whole, std::span<const std::size_t> bytes,
                       std::byte* mine, int root) = 0;
  /// The reverse: `whole`, on `root`, becomes all ranks' pieces in order of rank.
  virtual void gather_to(Stream& stream, const std::byte* mine, std::span<const std::size_t> bytes,
                         std::byte* whole, int root) = 0;
  /// `all` [rank][bytes] becomes what every rank has, on every rank.
  virtual void all_gather(Stream& stream, const std::byte* mine, std::size_t bytes, std::byte* all) = 0;
  /// Of the sum of `terms` over all ranks, `mine` becomes this rank's piece; pieces are cut as in scatter(), by
  /// `counts`. int64: exact, wraps around. fp32: which bits, is the backend's.
  virtual void reduce_scatter(Stream& stream, const std::int64_t* terms, std::span<const std::size_t> counts,
                              std::int64_t* mine) = 0;
  virtual void reduce_scatter(Stream& stream, const float* terms, std::span<const std::size_t> counts,
                              float* mine) = 0;
  /// A message in each direction at once. Who sends to whom must come out over all ranks; sizes may be 0.
  virtual void send_and_receive(Stream& stream, std::span<const std::byte> data, int to,
                                std::span<std::byte> into, int from) = 0;

  /// As DeviceAllReduce::check().
  virtual void check() = 0;
};

}  // namespace lockstep
