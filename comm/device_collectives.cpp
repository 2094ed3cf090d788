// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Out of place by a copy first; and waiting for device work with the ranks' deadline.
#include "comm/device_collectives.hpp"

namespace lockstep {
namespace {

/// Device work as something that the communicator can wait for.
class DeviceWork final : public PendingCollective {
 public:
  DeviceWork(Event& event, DeviceAllReduce* all_reduce) : event_(event), all_reduce_(all_reduce) {}

  bool test() override {
    if (event_.done()) return true;
    if (all_reduce_ != nullptr) all_reduce_->check();
    return false;
  }
  bool needs_this_core() const override { return all_reduce_ != nullptr && all_reduce_->on_stream(); }

 private:
  Event& event_;
  DeviceAllReduce* all_reduce_;
};

}  // namespace

void DeviceAllReduce::all_reduce_into(Stream& stream, const std::int64_t* terms, std::int64_t* sums,
                                      std::size_t count) {
  if (terms != sums) stream.copy_on_device(sums, terms, count * sizeof *terms);
  all_reduce(stream, sums, count);
}

void DeviceAllReduce::all_reduce_into(Stream& stream, const float* terms, float* sums, std::size_t count) {
  if (terms != sums) stream.copy_on_device(sums, terms, count * sizeof *terms);
  all_reduce(stream, sums, count);
}

void wait_for(Event& event, Communicator& comm, std::string_view what, DeviceAllReduce* all_reduce) {
  DeviceWork work(event, all_reduce);
  comm.wait(work, what);
}

}  // namespace lockstep
