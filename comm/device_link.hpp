// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Messages from the device memory of one rank into that of another, one way. Implementation: comm/nccl. (Between hosts:
/// comm/point_to_point.hpp.)
#pragma once

#include "comm/communicator.hpp"
#include "comm/pending_collective.hpp"
#include "kernels/device/device.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace lockstep {

enum class LinkEnd { kSender, kReceiver };

/// One end. Making the two is collective among the two ranks of a communicator, and leaves nothing that a message must
/// wait for but the other end. One message at a time: the next is started when test() of the one before was true.
/// A message that is started may keep the whole device from its other work, other links' included, until the other end has
/// started, too. So ranks agree first, as DeviceStageLinks do. One thread at a time per rank.
class DeviceLink {
 public:
  virtual ~DeviceLink() = default;

  /// "NCCL 2.28.9"
  virtual std::string_view name() const = 0;

  /// Of the sender's end: starts one, behind what `behind` marks; the memory must stay untouched until test() is
  /// true, which may be only when it is received.
  /// test() throws PeerLostError if the other rank is known to be gone; that may also show in nothing but a wait that does not end.
  virtual std::unique_ptr<PendingCollective> start_send(const Event& behind,
                                                        std::span<const std::byte> data) = 0;
  /// Of the receiver's end: as long as what is sent, at least one byte. When test() is true it is there, for all streams.
  virtual std::unique_ptr<PendingCollective> start_receive(const Event& behind,
                                                           std::span<std::byte> data) = 0;
};

}  // namespace lockstep
