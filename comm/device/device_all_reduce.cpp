// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Waiting for device work with the ranks' deadline.
#include "comm/device/device_all_reduce.hpp"

namespace lockstep {

void wait_for(Event& event, Communicator& comm, std::string_view what, DeviceAllReduce* all_reduce,
              const std::function<void()>& meanwhile) {
  PendingWork work(
      [&] {
        if (event.done()) return true;
        if (all_reduce != nullptr) all_reduce->check();
        meanwhile();
        return false;
      },
      all_reduce != nullptr && all_reduce->on_stream());
  comm.wait(work, what);
}

}  // namespace lockstep
