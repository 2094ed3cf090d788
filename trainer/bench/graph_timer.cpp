// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Launches the graph between two events and divides by the calls in it.
#include "trainer/bench/graph_timer.hpp"

namespace lockstep::bench {

GraphTimer::GraphTimer(Device& device, Stream& stream, const QueueCall& queue, int calls, int launches)
    : stream_(stream),
      calls_(calls),
      launches_(launches),
      start_(device.make_event(Device::Timing::kOn)),
      end_(device.make_event(Device::Timing::kOn)) {
  queue(stream, 0);  // loads kernels, lets libraries choose and allocate
  stream.synchronize();
  stream.begin_capture();
  for (int call = 0; call < calls; ++call) queue(stream, call);
  graph_ = stream.end_capture();
}

double GraphTimer::seconds() {
  stream_.launch(*graph_);  // keeps the device busy while the host queues the rest
  stream_.record(*start_);
  for (int i = 0; i < launches_; ++i) stream_.launch(*graph_);
  stream_.record(*end_);
  stream_.synchronize();
  return end_->seconds_since(*start_) / (static_cast<double>(calls_) * launches_);
}

}  // namespace lockstep::bench
