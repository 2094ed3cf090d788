// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep_nccl.so: all-reduce of device memory over NCCL.
#include "comm/device/device_all_reduce.hpp"
#include "comm/nccl/nccl.hpp"
#include "comm/nccl/nccl_communicator.hpp"
#include "common/error.hpp"
#include "kernels/cuda/error.hpp"
#include "kernels/device_buffer.hpp"

#include <cuda_runtime.h>

#include <cstdlib>
#include <string>
#include <type_traits>
#include <utility>

namespace lockstep {
namespace {

class NcclAllReduce final : public DeviceAllReduce {
 public:
  NcclAllReduce(Communicator& comm, const Device& device) : name_(loaded_nccl_version()), nccl_(comm) {
    LOCKSTEP_CUDA(cudaSetDevice(device.properties().index));
    nccl_.connect();
  }

  std::string_view name() const override { return name_; }
  bool on_stream() const override { return true; }
  void all_reduce_into(Stream& stream, const std::int64_t* terms, std::int64_t* sums,
                       std::size_t count) override {
    reduce(stream, terms, sums, count);
  }
  void all_reduce_into(Stream& stream, const float* terms, float* sums, std::size_t count) override {
    reduce(stream, terms, sums, count);
  }
  void check() override { nccl_.settled(); }

 private:
  template <typename T>
  void reduce(Stream& stream, const T* terms, T* sums, std::size_t count) {
    constexpr auto kType = std::is_same_v<T, float> ? ncclFloat32 : ncclInt64;
    nccl_.call([&] {
      LOCKSTEP_NCCL(ncclAllReduce(terms, sums, count, kType, ncclSum, nccl_.handle(),
                                  static_cast<cudaStream_t>(stream.native_handle())));
    });
    nccl_.settle("the start of an all-reduce over NCCL");
  }

  std::string name_;
  NcclCommunicator nccl_;
};

// lockstep_nccl.so: messages from one GPU to another. Work on one NCCL communicator runs in order, on any number of
// streams; so a link has a separate communicator and stream.

/// Blocks of the GPU that a message holds while it waits for its other end.
constexpr int kMostBlocks = 4;

/// That a rank or the network is gone is what every other wait calls it, too.
template <typename Call>
auto as_peer_lost(const Call& call) {
  try {
    return call();
  } catch (const NcclError& error) {
    if (error.code() == ExitCode::kPeerLost) throw PeerLostError(error.what());
    throw;
  }
}

class NcclLink final : public DeviceLink {
 public:
  NcclLink(Communicator& comm, Device& device, LinkEnd end)
      : peer_(1 - comm.rank()),
        name_(loaded_nccl_version()),
        stream_(device.make_stream(Device::Priority::kHigh)),
        done_(device.make_event()),
        greeting_(device, 1),
        nccl_(comm, kMostBlocks) {
    LOCKSTEP_CHECK(comm.size() == 2);
    LOCKSTEP_CUDA(cudaSetDevice(device.properties().index));
    nccl_.connect();
    introduce(comm, end);
  }

  std::string_view name() const override { return name_; }

  std::unique_ptr<PendingCollective> start_send(const Event& behind,
                                                std::span<const std::byte> data) override {
    stream_->wait(behind);
    call([&] {
      LOCKSTEP_NCCL(ncclSend(data.data(), data.size(), ncclInt8, peer_, nccl_.handle(), native()));
    });
    return started_message();
  }

  std::unique_ptr<PendingCollective> start_receive(const Event& behind, std::span<std::byte> data) override {
    stream_->wait(behind);
    call([&] {
      LOCKSTEP_NCCL(ncclRecv(data.data(), data.size(), ncclInt8, peer_, nccl_.handle(), native()));
    });
    return started_message();
  }

 private:
  /// First NCCL's threads put it on the stream, then the stream carries it out.
  std::unique_ptr<PendingCollective> started_message() {
    const auto test = [this, marked = false]() mutable {
      if (!as_peer_lost([this] { return nccl_.settled(); })) return false;
      if (!std::exchange(marked, true)) stream_->record(*done_);
      return done_->done();
    };
    return std::make_unique<PendingWork>(test, /*needs_this_core=*/true);
  }

  template <typename Call>
  void call(const Call& call) {
    as_peer_lost([&] { nccl_.call(call); });
  }

  /// The first message between two ranks has NCCL connect them, and the call waits for the other one's. Later calls
  /// do not: so both make it here.
  void introduce(Communicator& comm, LinkEnd end) {
    stream_->fill_zero(greeting_.data(), greeting_.bytes());
    stream_->record(*done_);
    const auto message = end == LinkEnd::kSender ? start_send(*done_, {greeting_.data(), 1})
                                                 : start_receive(*done_, {greeting_.data(), 1});
    comm.wait(*message, "the first message between two GPUs over NCCL");
  }

  cudaStream_t native() const { return static_cast<cudaStream_t>(stream_->native_handle()); }

  int peer_;
  std::string name_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> done_;
  DeviceBuffer<std::byte> greeting_;
  NcclCommunicator nccl_;  ///< goes first: freeing memory waits for messages that no rank takes any more
};

}  // namespace
}  // namespace lockstep

LOCKSTEP_PLUGIN_TAKES_SPELLING

extern "C" bool lockstep_nccl_shares_gpus() {
  const char* enabled = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");  // NOLINT(concurrency-mt-unsafe)
  return lockstep::loaded_nccl_code() >= NCCL_VERSION(2, 30, 0) && enabled != nullptr &&
         std::atoi(enabled) != 0;
}

extern "C" lockstep::DeviceAllReduce* lockstep_make_nccl_all_reduce(lockstep::Communicator& comm,
                                                                    lockstep::Device& device) {
  return std::make_unique<lockstep::NcclAllReduce>(comm, device).release();
}

extern "C" lockstep::DeviceLink* lockstep_make_nccl_link(lockstep::Communicator& comm,
                                                         lockstep::Device& device, lockstep::LinkEnd end) {
  return std::make_unique<lockstep::NcclLink>(comm, device, end).release();
}
