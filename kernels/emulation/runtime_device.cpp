// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What the emulated device says of itself.
#include "kernels/emulation/built_for.hpp"
#include "kernels/emulation/errors.hpp"
#include "kernels/emulation/memory.hpp"
#include "kernels/emulation/runtime_api.hpp"

#include <atomic>
#include <cstdio>
#include <cstring>

namespace lockstep::emulation {
namespace {

constexpr int kVersion = 13000;
constexpr char kName[] = "Emulated GPU";
constexpr cudaUUID_t kUuid = {
    {'e', 'm', 'u', 'l', 'a', 't', 'e', 'd', ' ', 'd', 'e', 'v', 'i', 'c', 'e', '0'}};

/// Few multiprocessors: kernels that cut their work by this number cut it into fewer blocks.
int value_of(cudaDeviceAttr attribute) {
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      return 1024;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return static_cast<int>(kSharedBytesPerBlock);
    case cudaDevAttrWarpSize:
      return 32;
    case cudaDevAttrClockRate:
      return 1'000'000;
    case cudaDevAttrMultiProcessorCount:
      return 4;
    case cudaDevAttrMemoryClockRate:
      return 1'000'000;
    case cudaDevAttrGlobalMemoryBusWidth:
      return 64;
    case cudaDevAttrL2CacheSize:
      return 4 << 20;
    case cudaDevAttrComputeCapabilityMajor:
      return 8;
    case cudaDevAttrComputeCapabilityMinor:
      return 0;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return static_cast<int>(kMaxSharedBytesPerBlock);
  }
  return -1;
}

std::atomic<bool> has_kernels = true;

cudaError_t check(int device) {
  return finish(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

}  // namespace

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  return check(device);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  *properties = {};
  std::memcpy(properties->name, kName, sizeof kName);
  properties->uuid = kUuid;
  properties->totalGlobalMem = DeviceMemory::kTotalBytes;
  return check(device);
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  *value = value_of(attribute);
  return *value < 0 ? finish(cudaErrorInvalidValue) : check(device);
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  std::snprintf(text, static_cast<std::size_t>(size), "0000:00:00.0");
  return check(device);
}

cudaError_t cudaDeviceCanAccessPeer(int* access, int device, int /*peer*/) {
  *access = 0;
  return check(device);
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr /*attribute*/, int from, int to) {
  *value = 0;
  return finish(from == to ? cudaErrorInvalidDevice : check(to));
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void (* /*kernel*/)()) {
  if (!has_kernels) return finish(cudaErrorNoKernelImageForDevice);
  attributes->binaryVersion = attributes->ptxVersion =
      10 * value_of(cudaDevAttrComputeCapabilityMajor) + value_of(cudaDevAttrComputeCapabilityMinor);
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}

}  // namespace lockstep::emulation

namespace lockstep::emulated {

void set_built_for_this_device(bool built) {
  emulation::has_kernels = built;
}

}  // namespace lockstep::emulated
