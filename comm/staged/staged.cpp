// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Device memory by way of the host: for ranks that share a GPU, and for machines without NCCL.
#include "comm/staged/staged.hpp"

#include "comm/collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

// Pieces are copied to pinned memory, summed and copied back, one behind the other.

namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

/// Part of a buffer: where it is on the device and on the host, and the mark behind its copy to the host.
template <typename T>
struct Piece {
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
  std::vector<Piece<T>> cut(T* device, std::size_t count);
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
  const std::vector<Piece<T>> pieces = cut(device, count);
  stream.wait(*copied_back_);  // the last call's may have been another stream
  for (const Piece<T>& piece : pieces) {
    stream.copy_to_host(piece.host.data(), piece.device, piece.host.size_bytes());
    stream.record(*piece.copied);
  }
  std::vector<std::unique_ptr<PendingCollective>> sums;
  for (const Piece<T>& piece : pieces) {
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
std::vector<Piece<T>> StagedAllReduce::cut(T* device, std::size_t count) {
  constexpr std::size_t kPieceCount = kPieceBytes / sizeof(T);
  T* const host = reinterpret_cast<T*>(pinned(count * sizeof(T)));
  std::vector<Piece<T>> pieces;
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

// StagedCollectives: copies to pinned memory, the host's collective, and copies back.

namespace {

std::size_t sum_of(std::span<const std::size_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
}

class StagedCollectives final : public DeviceCollectives {
 public:
  StagedCollectives(Communicator& comm, Device& device)
      : comm_(comm),
        device_(device),
        name_(fmt::format("{} through pinned memory", comm.backend())),
        done_(device.make_event()) {}

  std::string_view name() const override { return name_; }

  void replicate(Stream& stream, std::byte* data, std::size_t bytes, int root) override {
    const std::span<std::byte> host = fetch(stream, data, comm_.rank() == root ? bytes : 0, bytes);
    lockstep::replicate(comm_, host, root);
    if (comm_.rank() != root) put(stream, data, host);
  }

  void scatter(Stream& stream, const std::byte* whole, std::span<const std::size_t> bytes, std::byte* mine,
               int root) override {
    const std::size_t length = comm_.rank() == root ? sum_of(bytes) : 0;
    const std::span<std::byte> sent = fetch(stream, whole, length, length), piece = arriving(own(bytes));
    lockstep::scatter(comm_, sent, bytes, piece, root);
    put(stream, mine, piece);
  }

  void gather_to(Stream& stream, const std::byte* mine, std::span<const std::size_t> bytes, std::byte* whole,
                 int root) override {
    const std::span<std::byte> piece = fetch(stream, mine, own(bytes), own(bytes));
    const std::span<std::byte> all = arriving(comm_.rank() == root ? sum_of(bytes) : 0);
    lockstep::gather_to(comm_, piece, bytes, all, root);
    put(stream, whole, all);
  }

  void all_gather(Stream& stream, const std::byte* mine, std::size_t bytes, std::byte* all) override {
    const std::vector<std::byte> gathered = comm_.all_gather(fetch(stream, mine, bytes, bytes));
    std::ranges::copy(gathered, arriving(gathered.size()).begin());
    put(stream, all, arriving(gathered.size()));
  }

  void reduce_scatter(Stream& stream, const std::int64_t* terms, std::span<const std::size_t> counts,
                      std::int64_t* mine) override {
    reduce(stream, terms, counts, mine);
  }
  void reduce_scatter(Stream& stream, const float* terms, std::span<const std::size_t> counts,
                      float* mine) override {
    reduce(stream, terms, counts, mine);
  }

  void send_and_receive(Stream& stream, std::span<const std::byte> data, int to, std::span<std::byte> into,
                        int from) override {
    const std::span<std::byte> sent = fetch(stream, data.data(), data.size(), data.size());
    const std::span<std::byte> arrived = arriving(into.size());
    lockstep::send_and_receive(comm_, sent, to, arrived, from);
    put(stream, into.data(), arrived);
  }

  /// Nothing of it is ever left under way.
  void check() override {}

 private:
  std::size_t own(std::span<const std::size_t> sizes) const {
    return sizes[static_cast<std::size_t>(comm_.rank())];
  }

  template <typename T>
  void reduce(Stream& stream, const T* terms, std::span<const std::size_t> counts, T* mine) {
    const std::size_t count = sum_of(counts);
    const std::span<std::byte> host =
        fetch(stream, reinterpret_cast<const std::byte*>(terms), count * sizeof(T), count * sizeof(T));
    const std::vector<T> sums = lockstep::reduce_scatter(
        comm_, std::span<const T>(reinterpret_cast<const T*>(host.data()), count), counts);
    const std::span<std::byte> arrived = arriving(sums.size() * sizeof(T));
    std::ranges::copy(std::as_bytes(std::span(sums)), arrived.begin());
    put(stream, reinterpret_cast<std::byte*>(mine), arrived);
  }

  /// Room for `room` bytes on the host, the first of which are the device's once this returns.
  std::span<std::byte> fetch(Stream& stream, const std::byte* device, std::size_t bytes, std::size_t room) {
    grow(leaving_, room);
    if (bytes == 0) return leaving_.span().first(room);
    stream.copy_to_host(leaving_.data(), device, bytes);
    wait(stream);
    return leaving_.span().first(room);
  }
  void put(Stream& stream, std::byte* device, std::span<const std::byte> host) {
    if (host.empty()) return;
    stream.copy_to_device(device, host.data(), host.size());
    wait(stream);
  }
  std::span<std::byte> arriving(std::size_t bytes) {
    grow(arriving_, bytes);
    return arriving_.span().first(bytes);
  }
  void grow(PinnedBuffer<std::byte>& buffer, std::size_t bytes) {
    if (buffer.size() < bytes) buffer = PinnedBuffer<std::byte>(device_, bytes);
  }
  void wait(Stream& stream) {
    stream.record(*done_);
    wait_for(*done_, comm_, "a copy between this rank's GPU and its host", nullptr);
  }

  Communicator& comm_;
  Device& device_;
  std::string name_;
  std::unique_ptr<Event> done_;
  PinnedBuffer<std::byte> leaving_, arriving_;
};

}  // namespace

std::unique_ptr<DeviceCollectives> make_staged_collectives(Communicator& comm, Device& device) {
  return std::make_unique<StagedCollectives>(comm, device);
}

}  // namespace lockstep
