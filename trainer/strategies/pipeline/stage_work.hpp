// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Work on a rank's device as something that the communicator can wait for, while messages between stages go on.
#pragma once

#include "comm/device_all_reduce.hpp"
#include "comm/pending_collective.hpp"
#include "kernels/device/device.hpp"

#include <functional>

namespace lockstep {

/// The end of what is queued for this rank's stages, in which other ranks may take part. Borrows all.
class StageWork final : public PendingCollective {
 public:
  StageWork(Event& done, DeviceAllReduce* all_reduce, const std::function<void()>& meanwhile)
      : done_(done), all_reduce_(all_reduce), meanwhile_(meanwhile) {}

  bool test() override {
    if (done_.done()) return true;
    if (all_reduce_ != nullptr) all_reduce_->check();
    meanwhile_();
    return false;
  }
  bool needs_this_core() const override { return all_reduce_ != nullptr && all_reduce_->on_stream(); }

 private:
  Event& done_;
  DeviceAllReduce* all_reduce_;
  const std::function<void()>& meanwhile_;
};

}  // namespace lockstep
