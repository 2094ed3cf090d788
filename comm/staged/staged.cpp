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

/// Part of a buffer, on the device and on the host, and the mark after its copy to the host.
template <typename T>
struct StagedPiece {
  T* device = nullptr;
  std::span<T> host;
  Event* copied = nullptr;
};

class StagedAllReduce final : public DeviceAllReduce {
 public:
  StagedAllReduce(Communicator& comm, Device& device)
      : comm_(comm),
        device_(device),
        name_(fmt::format("{} through pinned memory", comm.backend())),
        copied_back_(device.make_event()) {}

  std::string_view name() const override { return name_; }
  bool on_stream() const override { return false; }
  void all_reduce(Stream& stream, std::int64_t* device, std::size_t count) override {
    reduce(stream, device, count);
  }
  void all_reduce(Stream& stream, float* device, std::size_t count) override {
    reduce(stream, device, count);
  }
  /// Nothing of it is ever left under way.
  void check() override {}

 private:
  template <typename T>
  void reduce(Stream& stream, T* device, std::size_t count);
  template <typename T>
  std::vector<StagedPiece<T>> cut(T* device, std::size_t count);
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
void StagedAllReduce::reduce(Stream& stream, T* device, std::size_t count) {
  const std::vector<StagedPiece<T>> pieces = cut(device, count);
  stream.wait(*copied_back_);  // the last call's may have been another stream
  for (const StagedPiece<T>& piece : pieces) {
    stream.copy_to_host(piece.host.data(), piece.device, piece.host.size_bytes());
    stream.record(*piece.copied);
  }
  std::vector<std::unique_ptr<PendingCollective>> sums;
  for (const StagedPiece<T>& piece : pieces) {
    wait_for(*piece.copied, comm_, "the copy of gradients from this rank's GPU", nullptr, [&sums] {
      for (const auto& sum : sums) sum->test();  // those under way go on
    });
    sums.push_back(comm_.host_all_reduce().start(piece.host));
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    comm_.wait(*sums[i], "the gradients' all-reduce through host memory", Waiting::kForAll);
    stream.copy_to_device(pieces[i].device, pieces[i].host.data(), pieces[i].host.size_bytes());
  }
  stream.record(*copied_back_);
}

template <typename T>
std::vector<StagedPiece<T>> StagedAllReduce::cut(T* device, std::size_t count) {
  constexpr std::size_t kPieceCount = kPieceBytes / sizeof(T);
  T* const host = reinterpret_cast<T*>(pinned(count * sizeof(T)));
  std::vector<StagedPiece<T>> pieces;
  for (std::size_t at = 0; at < count; at += kPieceCount) {
    const std::span<T> on_host(host + at, std::min(kPieceCount, count - at));
    pieces.push_back({device + at, on_host, &copied(pieces.size())});
  }
  return pieces;
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
