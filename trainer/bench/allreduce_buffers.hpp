// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The buffers that `bench allreduce` sums: the same operations on host memory and on device memory.
#pragma once

#include "comm/communicator.hpp"
#include "comm/device_all_reduce.hpp"
#include "kernels/device/device.hpp"
#include "trainer/bench/timing.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace lockstep::bench {

/// The median time of `action` on this rank. All ranks start each repetition together.
inline double median_seconds(Communicator& comm, int repetitions, const std::function<void()>& action) {
  std::vector<double> times;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    comm.barrier();
    const auto start = std::chrono::steady_clock::now();
    action();
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return median(std::move(times));
}

/// On the host, over the communicator itself.
template <typename T>
class HostBuffer {
 public:
  HostBuffer(Communicator& comm, std::size_t count) : comm_(comm), data_(count) {}

  void load(const std::vector<T>& values) { data_ = values; }
  const std::vector<T>& values() const { return data_; }
  void all_reduce() { comm_.all_reduce(std::span<T>(data_)); }
  double seconds(int repetitions) {
    return median_seconds(comm_, repetitions, [this] { all_reduce(); });
  }

 private:
  Communicator& comm_;
  std::vector<T> data_;
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
        data_(device, count) {}

  void load(const std::vector<T>& values) {
    stream_->copy_to_device(data_.data(), values.data(), data_.bytes());
    stream_->synchronize();
  }
  std::vector<T> values() {
    std::vector<T> values(data_.size());
    stream_->copy_to_host(values.data(), data_.data(), data_.bytes());
    stream_->synchronize();
    return values;
  }
  void all_reduce() {
    queue();
    wait_until_here();
  }
  /// Of one all-reduce.
  double seconds(int repetitions) {
    if (all_reduce_.on_stream()) return seconds_in_graph(repetitions);
    return median_seconds(comm_, repetitions, [this] { all_reduce(); });
  }

 private:
  static constexpr int kPerGraph = 20;

  void queue() { all_reduce_.all_reduce(*stream_, data_.data(), data_.size()); }
  void wait_until_here() {
    stream_->record(*end_);
    wait_for(*end_, comm_, "an all-reduce on the GPU", &all_reduce_);
  }

  /// By the GPU's clock: many in a row, since the first one waits for the other ranks to start theirs.
  double seconds_in_graph(int repetitions) {
    stream_->begin_capture();
    for (int i = 0; i < kPerGraph; ++i) queue();
    const std::unique_ptr<Graph> graph = stream_->end_capture();
    std::vector<double> times;
    for (int repetition = 0; repetition < repetitions; ++repetition) {
      comm_.barrier();
      stream_->record(*start_);
      stream_->launch(*graph);
      wait_until_here();
      times.push_back(end_->seconds_since(*start_) / kPerGraph);
    }
    return median(std::move(times));
  }

  Communicator& comm_;
  DeviceAllReduce& all_reduce_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> start_, end_;
  DeviceBuffer<T> data_;
};

}  // namespace lockstep::bench
