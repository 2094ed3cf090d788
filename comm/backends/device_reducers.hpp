// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Every way from device memory to that of other ranks, and what it needs.
#pragma once

#include "comm/backend.hpp"
#include "comm/device/device_all_reduce.hpp"

#include <memory>
#include <span>
#include <string_view>

namespace lockstep {

struct DeviceReducer {
  GradientPath path;
  /// Name of the backend that chooses it; empty: the control plane's name does.
  std::string_view name = {};
  /// The one kind of device whose memory it can sum; empty: any.
  std::string_view device_kind = {};
  bool whole_gpus = false;  ///< every rank must have a GPU to itself, but for tests: may_share_gpus()
  bool threads = false;     ///< it has separate threads, which want cores
  /// Loads its library. @throws DeviceError  it is not there. Null: it needs none.
  void (*load)() = nullptr;
  /// True if this library, in this environment, lets ranks share a GPU; throws as load(). Null: never, or always.
  bool (*may_share_gpus)() = nullptr;
  /// Collective. Borrows both.
  std::unique_ptr<DeviceAllReduce> (*make)(Communicator& comm, Device& device);
  /// Between the two ranks of `comm`. Null: by way of their hosts.
  std::unique_ptr<DeviceLink> (*make_link)(Communicator& comm, Device& device, LinkEnd end) = nullptr;
};

/// The best one first: where the backend is `auto`, the first that works is taken. The last one always does.
std::span<const DeviceReducer> device_reducers();

/// @throws InternalError  path is kNone
const DeviceReducer& device_reducer(GradientPath path);

}  // namespace lockstep
