// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Device memory by way of the host: for ranks that share a GPU, and for machines without NCCL.
#include "comm/staged/staged.hpp"

#include "kernels/device_buffer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

// Pieces are copied to pinned memory, summed and copied back, one after the other.

namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

class StagedAllReduce final : public DeviceAllReduce {
 public:
  StagedAllReduce(Communicator& comm, Device& device)
      : comm_(comm),
        device_(device),
        name_(fmt::format("{} through pinned memory", comm.backend())),
        copied_back_(device.make_event()) {}

  std::string_view name() const override { return name_; }
  bool on_stream() const override { return false; }
  void all_reduce_into(Stream& stream, const std::int64_t* terms, std::int64_t* sums,
                       std::size_t count) override {
    reduce(stream, terms, sums, count);
  }
  void all_reduce_into(Stream& stream, const float* terms, float* sums, std::size_t count) override {
    reduce(stream, terms, sums, count);
  }
  /// Nothing of it is ever left under way.
  void check() override {}

 private:
  template <typename T>
  void reduce(Stream& stream, const T* terms, T* sums, std::size_t count);
  std::byte* pinned(std::size_t bytes);
  Event& copied(std::size_t piece);

  Communicator& comm_;
  Device& device_;
  std::string name_;
  PinnedBuffer<std::byte> pinned_;
  std::vector<std::unique_ptr<Event>> copied_;  // by piece
  std::unique_ptr<Event> copied_back_;          // the last call's sums are on the device
};

template <typename T>
void StagedAllReduce::reduce(Stream& stream, const T* terms, T* sums, std::size_t count) {
  constexpr std::size_t kPieceCount = kPieceBytes / sizeof(T);
  const std::span<T> host(reinterpret_cast<T*>(pinned(count * sizeof(T))), count);
  std::vector<std::span<T>> pieces;
  for (std::size_t at = 0; at < count; at += kPieceCount)
    pieces.push_back(host.subspan(at, std::min(kPieceCount, count - at)));
  const auto offset = [&](std::span<T> piece) { return piece.data() - host.data(); };
  stream.wait(*copied_back_);  // the last call's may have been another stream
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    stream.copy_to_host(pieces[i].data(), terms + offset(pieces[i]), pieces[i].size_bytes());
    stream.record(copied(i));
  }
  std::vector<std::unique_ptr<PendingCollective>> pending;
  for (const std::span<T> piece : pieces) {
    wait_for(copied(pending.size()), comm_, "the copy of gradients from this rank's GPU", nullptr, [&] {
      for (const auto& sum : pending) sum->test();  // those under way go on
    });
    pending.push_back(comm_.host_all_reduce().start(piece));
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    comm_.wait(*pending[i], "the gradients' all-reduce through host memory", Waiting::kForAll);
    stream.copy_to_device(sums + offset(pieces[i]), pieces[i].data(), pieces[i].size_bytes());
  }
  stream.record(*copied_back_);
}

/// The buffer is only exchanged when nothing is copied from it any more.
std::byte* StagedAllReduce::pinned(std::size_t bytes) {
  if (pinned_.size() < bytes) {
    wait_for(*copied_back_, comm_, "the copy of gradients to this rank's GPU", nullptr);
    pinned_ = {};
    pinned_ = PinnedBuffer<std::byte>(device_, bytes);
  }
  return pinned_.data();
}

Event& StagedAllReduce::copied(std::size_t piece) {
  while (copied_.size() <= piece) copied_.push_back(device_.make_event());
  return *copied_[piece];
}

}  // namespace

std::unique_ptr<DeviceAllReduce> make_staged_all_reduce(Communicator& comm, Device& device) {
  return std::make_unique<StagedAllReduce>(comm, device);
}

}  // namespace lockstep
