// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// An all-reduce of one rank on a device.
#pragma once
#include "comm/device/device_all_reduce.hpp"
#include "common/error.hpp"
#include "tests/kernels/device/rig.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::test {

/// One rank's all-reduce as NCCL queues it: whatever else is added to the buffer meanwhile is lost.
class LoneAllReduce final : public DeviceAllReduce {
 public:
  LoneAllReduce(Device& device, std::size_t size, bool on_stream = true)
      : aside_(device, size), on_stream_(on_stream) {}

  std::string_view name() const override { return "alone"; }
  bool on_stream() const override { return on_stream_; }
  void all_reduce_into(Stream& stream, const std::int64_t* terms, std::int64_t* sums,
                       std::size_t count) override {
    away_and_back(stream, terms, sums, count * sizeof *sums);
  }
  void all_reduce_into(Stream& stream, const float* terms, float* sums, std::size_t count) override {
    away_and_back(stream, terms, sums, count * sizeof *sums);
  }
  void check() override {}

  int calls() const { return calls_; }
  const std::set<Stream*>& streams() const { return streams_; }
  /// The first call makes a copy of this memory, where it stands on its stream.
  void copy_at_first_call(Device& device, const std::int64_t* from, std::size_t count) {
    copied_ = from;
    copy_ = DeviceBuffer<std::int64_t>(device, count);
  }
  const DeviceBuffer<std::int64_t>& copy() const { return copy_; }
  void fail_at(int call) { failing_call_ = call; }
  void at_first_call(std::function<void()> action) { at_first_call_ = std::move(action); }

 private:
  void away_and_back(Stream& stream, const void* terms, void* device, std::size_t bytes) {
    if (terms != device) stream.copy_on_device(device, terms, bytes);
    if (++calls_ == failing_call_) throw PeerLostError("the other rank is gone");
    streams_.insert(&stream);
    if (calls_ == 1 && at_first_call_) at_first_call_();
    if (calls_ == 1 && copied_ != nullptr) stream.copy_on_device(copy_.data(), copied_, copy_.bytes());
    stream.copy_on_device(aside_.data(), device, bytes);
    stream.fill_zero(device, bytes);
    stream.copy_on_device(device, aside_.data(), bytes);
  }

  DeviceBuffer<std::int64_t> aside_;
  bool on_stream_;
  int calls_ = 0, failing_call_ = 0;
  std::set<Stream*> streams_;
  std::function<void()> at_first_call_;
  const std::int64_t* copied_ = nullptr;
  DeviceBuffer<std::int64_t> copy_;
};

}  // namespace lockstep::test
