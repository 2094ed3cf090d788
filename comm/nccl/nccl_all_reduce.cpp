// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep_nccl.so: all-reduce of device memory over NCCL.
#include "comm/nccl/nccl_communicator.hpp"
#include "comm/nccl/nccl_error.hpp"
#include "comm/nccl/nccl_plugin.hpp"
#include "comm/nccl/nccl_types.hpp"
#include "common/advice.hpp"
#include "kernels/cuda/error.hpp"

#include <cuda_runtime.h>

#include <cstdlib>
#include <string>

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
  void all_reduce(Stream& stream, std::int64_t* device, std::size_t count) override {
    reduce(stream, device, device, count);
  }
  void all_reduce(Stream& stream, float* device, std::size_t count) override {
    reduce(stream, device, device, count);
  }
  void all_reduce_into(Stream& stream, const std::int64_t* terms, std::int64_t* sums,
                       std::size_t count) override {
    reduce(stream, terms, sums, count);
  }
  void all_reduce_into(Stream& stream, const float* terms, float* sums, std::size_t count) override {
    reduce(stream, terms, sums, count);
  }
  void check() override { nccl_.check(); }

 private:
  template <typename T>
  void reduce(Stream& stream, const T* terms, T* sums, std::size_t count) {
    nccl_.call([&] {
      LOCKSTEP_NCCL(ncclAllReduce(terms, sums, count, nccl_datatype(terms), ncclSum, nccl_.handle(),
                                  static_cast<cudaStream_t>(stream.native_handle())));
    });
    nccl_.settle("the start of an all-reduce over NCCL");
  }

  std::string name_;
  NcclCommunicator nccl_;
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
