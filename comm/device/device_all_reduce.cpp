// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Out of place by a copy first; and waiting for device work with the ranks' deadline.
#include "comm/device/device_all_reduce.hpp"

namespace lockstep {

void DeviceAllReduce::all_reduce_into(Stream& stream, const std::int64_t* terms, std::int64_t* sums,
                                      std::size_t count) {
  if (terms != sums) stream.copy_on_device(sums, terms, count * sizeof *terms);
  all_reduce(stream, sums, count);
}

void DeviceAllReduce::all_reduce_into(Stream& stream, const float* terms, float* sums, std::size_t count) {
  if (terms != sums) stream.copy_on_device(sums, terms, count * sizeof *terms);
  all_reduce(stream, sums, count);
}

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
