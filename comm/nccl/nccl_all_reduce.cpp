// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep_nccl.so: all-reduce of device memory over NCCL.
#include "comm/nccl/nccl_communicator.hpp"
#include "comm/nccl/nccl_error.hpp"
#include "comm/nccl/nccl_plugin.hpp"
#include "common/advice.hpp"
#include "kernels/cuda/error.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <string>

namespace lockstep {
namespace {

/// "NCCL 2.28.9": of the library that is loaded, not of the header.
std::string loaded_version() {
  int code = 0;
  LOCKSTEP_NCCL(ncclGetVersion(&code));
  return fmt::format("NCCL {}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

ncclDataType_t datatype(const std::int64_t* /*type*/) {
  return ncclInt64;
}
ncclDataType_t datatype(const float* /*type*/) {
  return ncclFloat32;
}

class NcclAllReduce final : public DeviceAllReduce {
 public:
  NcclAllReduce(Communicator& comm, const Device& device) : name_(loaded_version()), nccl_(comm) {
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
    LOCKSTEP_NCCL(ncclAllReduce(terms, sums, count, datatype(terms), ncclSum, nccl_.handle(),
                                static_cast<cudaStream_t>(stream.native_handle())));
    nccl_.settle("the start of an all-reduce over NCCL");
  }

  std::string name_;
  NcclCommunicator nccl_;
};

}  // namespace
}  // namespace lockstep

LOCKSTEP_PLUGIN_TAKES_SPELLING

extern "C" lockstep::DeviceAllReduce* lockstep_make_nccl_all_reduce(lockstep::Communicator& comm,
                                                                    lockstep::Device& device) {
  return std::make_unique<lockstep::NcclAllReduce>(comm, device).release();
}
