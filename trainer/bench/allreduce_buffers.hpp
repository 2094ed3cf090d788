// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The buffers that `bench allreduce` sums: the same operations on host memory and on device memory.
#pragma once

#include "comm/communicator.hpp"
#include "comm/device_all_reduce.hpp"
#include "common/clock.hpp"
#include "kernels/device/device.hpp"
#include "trainer/bench/timing.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace lockstep::bench {

/// Out of place, the sums of `source` end up in `result`; in place, those of `result`.
enum class InPlace { kNo, kYes };

struct Repetitions {
  int warmup = 0, timed = 1;
};

/// The median of what `timed` returns, after the warm-up. All ranks start each repetition together.
inline double median_seconds(Communicator& comm, const Repetitions& repetitions,
                             const std::function<double()>& timed) {
  std::vector<double> times;
  for (int i = -repetitions.warmup; i < repetitions.timed; ++i) {
    comm.barrier();
    const double seconds = timed();
    if (i >= 0) times.push_back(seconds);
  }
  return median(std::move(times));
}

/// How long `action` takes by this host's clock.
inline double host_seconds(const std::function<void()>& action) {
  const auto start = Clock::now();
  action();
  return seconds_since(start);
}

/// On the host, over the communicator itself, which sums in place: out of place is a copy before that.
template <typename T>
class HostBuffer {
 public:
  HostBuffer(Communicator& comm, std::size_t count) : comm_(comm), source_(count), result_(count) {}

  void load(const std::vector<T>& values, InPlace in_place) {
    (in_place == InPlace::kNo ? source_ : result_) = values;
  }
  const std::vector<T>& values() const { return result_; }
  void all_reduce(InPlace in_place) {
    if (in_place == InPlace::kNo) std::copy(source_.begin(), source_.end(), result_.begin());
    comm_.all_reduce(std::span<T>(result_));
  }
  double seconds(InPlace in_place, const Repetitions& repetitions) {
    return median_seconds(comm_, repetitions, [&] { return host_seconds([&] { all_reduce(in_place); }); });
  }

 private:
  Communicator& comm_;
  std::vector<T> source_, result_;
};

/// On a device.
template <typename T>
class BufferOnDevice {
 public:
  BufferOnDevice(Communicator& comm, Device& device, DeviceAllReduce& all_reduce, std::size_t count)
      : comm_(comm),
        all_reduce_(all_reduce),
        stream_(device.make_stream()),
        start_(device.make_event(Device::Timing::kOn)),
        end_(device.make_event(Device::Timing::kOn)),
        source_(device, count),
        result_(device, count) {}

  void load(const std::vector<T>& values, InPlace in_place) {
    const auto& buffer = in_place == InPlace::kNo ? source_ : result_;
    stream_->copy_to_device(buffer.data(), values.data(), buffer.bytes());
    stream_->synchronize();
  }
  std::vector<T> values() {
    std::vector<T> values(result_.size());
    stream_->copy_to_host(values.data(), result_.data(), result_.bytes());
    stream_->synchronize();
    return values;
  }
  void all_reduce(InPlace in_place) {
    queue(in_place);
    wait_until_here();
  }
  /// Of one all-reduce.
  double seconds(InPlace in_place, const Repetitions& repetitions) {
    if (!all_reduce_.on_stream()) {
      return median_seconds(comm_, repetitions, [&] { return host_seconds([&] { all_reduce(in_place); }); });
    }
    capture(in_place);
    return median_seconds(comm_, repetitions, [&] { return graph_seconds() / kPerGraph; });
  }

 private:
  static constexpr int kPerGraph = 20;

  void queue(InPlace in_place) {
    const T* source = in_place == InPlace::kNo ? source_.data() : result_.data();
    all_reduce_.all_reduce_into(*stream_, source, result_.data(), result_.size());
  }
  void wait_until_here() {
    stream_->record(*end_);
    wait_for(*end_, comm_, "an all-reduce on the GPU", &all_reduce_);
  }

  /// Many in a row, since the first one waits for the other ranks to start theirs.
  void capture(InPlace in_place) {
    graph_.reset();
    stream_->begin_capture();
    for (int i = 0; i < kPerGraph; ++i) queue(in_place);
    graph_ = stream_->end_capture();
  }
  /// By the GPU's clock.
  double graph_seconds() {
    stream_->record(*start_);
    stream_->launch(*graph_);
    wait_until_here();
    return end_->seconds_since(*start_);
  }

  Communicator& comm_;
  DeviceAllReduce& all_reduce_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> start_, end_;
  DeviceBuffer<T> source_, result_;
  std::unique_ptr<Graph> graph_;
};

}  // namespace lockstep::bench
