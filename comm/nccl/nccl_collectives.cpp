// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep_nccl.so: the other collectives of device memory over NCCL. What NCCL has no call for, because pieces
/// differ, is a group of messages or of sums to one rank each, which it carries out together.
#include "comm/nccl/nccl.hpp"
#include "comm/nccl/nccl_communicator.hpp"
#include "kernels/cuda/error.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>

namespace lockstep {
namespace {

class NcclCollectives final : public DeviceCollectives {
 public:
  NcclCollectives(Communicator& comm, const Device& device)
      : comm_(comm), name_(loaded_nccl_version()), nccl_(comm) {
    LOCKSTEP_CUDA(cudaSetDevice(device.properties().index));
    nccl_.connect();
  }

  std::string_view name() const override { return name_; }

  void replicate(Stream& stream, std::byte* data, std::size_t bytes, int root) override {
    call("the start of a broadcast over NCCL", [&] {
      LOCKSTEP_NCCL(ncclBroadcast(data, data, bytes, ncclInt8, root, nccl_.handle(), native(stream)));
    });
  }

  void scatter(Stream& stream, const std::byte* whole, std::span<const std::size_t> bytes, std::byte* mine,
               int root) override {
    together("the start of a scatter over NCCL", [&] {
      for (int rank = 0; comm_.rank() == root && rank < comm_.size(); ++rank)
        send(stream, {whole + begin_of(bytes, rank), size_of(bytes, rank)}, rank);
      receive(stream, {mine, size_of(bytes, comm_.rank())}, root);
    });
  }

  void gather_to(Stream& stream, const std::byte* mine, std::span<const std::size_t> bytes, std::byte* whole,
                 int root) override {
    together("the start of a gather over NCCL", [&] {
      send(stream, {mine, size_of(bytes, comm_.rank())}, root);
      for (int rank = 0; comm_.rank() == root && rank < comm_.size(); ++rank)
        receive(stream, {whole + begin_of(bytes, rank), size_of(bytes, rank)}, rank);
    });
  }

  void all_gather(Stream& stream, const std::byte* mine, std::size_t bytes, std::byte* all) override {
    call("the start of an all-gather over NCCL",
         [&] { LOCKSTEP_NCCL(ncclAllGather(mine, all, bytes, ncclInt8, nccl_.handle(), native(stream))); });
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
    together("the start of an exchange over NCCL", [&] {
      send(stream, data, to);
      receive(stream, into, from);
    });
  }

  void check() override { nccl_.check(); }

 private:
  static cudaStream_t native(const Stream& stream) {
    return static_cast<cudaStream_t>(stream.native_handle());
  }
  static std::size_t size_of(std::span<const std::size_t> sizes, int rank) {
    return sizes[static_cast<std::size_t>(rank)];
  }
  static std::size_t begin_of(std::span<const std::size_t> sizes, int rank) {
    return std::accumulate(sizes.begin(), sizes.begin() + rank, std::size_t{0});
  }

  void send(Stream& stream, std::span<const std::byte> data, int to) {
    if (data.empty()) return;  // as the receiver knows
    LOCKSTEP_NCCL(ncclSend(data.data(), data.size(), ncclInt8, to, nccl_.handle(), native(stream)));
  }
  void receive(Stream& stream, std::span<std::byte> data, int from) {
    if (data.empty()) return;
    LOCKSTEP_NCCL(ncclRecv(data.data(), data.size(), ncclInt8, from, nccl_.handle(), native(stream)));
  }

  template <typename T>
  void reduce(Stream& stream, const T* terms, std::span<const std::size_t> counts, T* mine) {
    if (std::ranges::adjacent_find(counts, std::not_equal_to{}) == counts.end()) {
      call("the start of a reduce-scatter over NCCL", [&] {
        LOCKSTEP_NCCL(ncclReduceScatter(terms, mine, counts.front(), nccl_datatype(terms), ncclSum,
                                        nccl_.handle(), native(stream)));
      });
      return;
    }
    together("the start of a reduce-scatter over NCCL", [&] {
      for (int rank = 0; rank < comm_.size(); ++rank) {
        const std::size_t count = size_of(counts, rank);
        if (count == 0) continue;
        LOCKSTEP_NCCL(ncclReduce(terms + begin_of(counts, rank), mine, count, nccl_datatype(terms), ncclSum,
                                 rank, nccl_.handle(), native(stream)));
      }
    });
  }

  /// Whatever happens in between, a group that was begun ends: until then NCCL only takes notes.
  void together(std::string_view what, const std::function<void()>& calls) {
    call(what, [&] {
      LOCKSTEP_NCCL(ncclGroupStart());
      try {
        calls();
      } catch (...) {
        ncclGroupEnd();
        throw;
      }
      LOCKSTEP_NCCL(ncclGroupEnd());
    });
  }

  void call(std::string_view what, const std::function<void()>& calls) {
    nccl_.call(calls);
    nccl_.settle(what);
  }

  Communicator& comm_;
  std::string name_;
  NcclCommunicator nccl_;
};

}  // namespace
}  // namespace lockstep

extern "C" lockstep::DeviceCollectives* lockstep_make_nccl_collectives(lockstep::Communicator& comm,
                                                                       lockstep::Device& device) {
  return std::make_unique<lockstep::NcclCollectives>(comm, device).release();
}
