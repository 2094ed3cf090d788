// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep_nccl.so: messages from one GPU to another. Whatever is on one NCCL communicator runs in order, on however many
/// streams it was put; so a link has a communicator and a stream of its own.
#include "comm/device_link.hpp"
#include "comm/nccl/nccl_communicator.hpp"
#include "comm/nccl/nccl_error.hpp"
#include "comm/nccl/nccl_plugin.hpp"
#include "comm/nccl/nccl_types.hpp"
#include "common/error.hpp"
#include "kernels/cuda/error.hpp"

#include <cuda_runtime.h>

#include <string>

namespace lockstep {
namespace {

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
    return std::make_unique<Message>(*this);
  }

  std::unique_ptr<PendingCollective> start_receive(const Event& behind, std::span<std::byte> data) override {
    stream_->wait(behind);
    call([&] {
      LOCKSTEP_NCCL(ncclRecv(data.data(), data.size(), ncclInt8, peer_, nccl_.handle(), native()));
    });
    return std::make_unique<Message>(*this);
  }

 private:
  /// First NCCL's threads put it on the stream, then the stream carries it out.
  class Message final : public PendingCollective {
   public:
    explicit Message(NcclLink& link) : link_(link) {}
    bool test() override {
      if (!as_peer_lost([this] { return link_.nccl_.settled(); })) return false;
      if (!marked_) link_.stream_->record(*link_.done_);
      marked_ = true;
      return link_.done_->done();
    }
    bool needs_this_core() const override { return true; }

   private:
    NcclLink& link_;
    bool marked_ = false;
  };

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

extern "C" lockstep::DeviceLink* lockstep_make_nccl_link(lockstep::Communicator& comm,
                                                         lockstep::Device& device, lockstep::LinkEnd end) {
  return std::make_unique<lockstep::NcclLink>(comm, device, end).release();
}
