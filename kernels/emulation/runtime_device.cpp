// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Properties of the emulated device.
#include "kernels/emulation/errors.hpp"
#include "kernels/emulation/memory.hpp"
#include "kernels/emulation/order.hpp"
#include "kernels/emulation/runtime_api.hpp"
#include "kernels/emulation/stream.hpp"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

namespace lockstep::emulation {
namespace {

constexpr int kVersion = 13000;
constexpr char kName[] = "Emulated GPU";
constexpr cudaUUID_t kUuid = {
    {'e', 'm', 'u', 'l', 'a', 't', 'e', 'd', ' ', 'd', 'e', 'v', 'i', 'c', 'e', '0'}};

/// Few multiprocessors: kernels that cut their work by this number cut it into fewer blocks.
int value_of(cudaDeviceAttr attribute) {
  constexpr std::pair<cudaDeviceAttr, int> kValues[] = {
      {cudaDevAttrMaxSharedMemoryPerBlock, 48 * 1024},
      {cudaDevAttrClockRate, 1'000'000},
      {cudaDevAttrMultiProcessorCount, 4},
      {cudaDevAttrMemoryClockRate, 1'000'000},
      {cudaDevAttrGlobalMemoryBusWidth, 64},
      {cudaDevAttrL2CacheSize, 4 << 20},
      {cudaDevAttrComputeCapabilityMajor, 8},
      {cudaDevAttrComputeCapabilityMinor, 0},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, static_cast<int>(kMaxSharedBytesPerBlock)},
  };
  for (const auto& [which, value] : kValues)
    if (which == attribute) return value;
  return -1;
}

std::atomic<bool> has_kernels = true, is_visible = true;

cudaError_t check(int device) {
  return finish(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

}  // namespace

cudaError_t cudaGetDeviceCount(int* count) {
  *count = is_visible ? 1 : 0;
  return finish(*count > 0 ? cudaSuccess : cudaErrorNoDevice);
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

/// One device is no pair.
cudaError_t cudaDeviceGetP2PAttribute(int* /*value*/, cudaDeviceP2PAttr /*attribute*/, int /*from*/,
                                      int /*to*/) {
  return finish(cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void (* /*kernel*/)()) {
  if (!has_kernels) return finish(cudaErrorNoKernelImageForDevice);
  attributes->binaryVersion =
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

// Memory, copies and fills.

namespace {

constexpr std::align_val_t kHostAlignment{4096};

bool on_device(const void* memory, std::size_t bytes) {
  return DeviceMemory::instance().contains(memory, bytes);
}

}  // namespace

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = DeviceMemory::instance().free_bytes();
  *total = DeviceMemory::kTotalBytes;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  if (const cudaError_t status = check_unsafe_call(); status != cudaSuccess) return status;
  *memory = bytes == 0 ? nullptr : DeviceMemory::instance().allocate(bytes);
  return finish(bytes == 0 || *memory != nullptr ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaFree(void* memory) {
  if (const cudaError_t status = check_unsafe_call(); status != cudaSuccess) return status;
  return finish(memory == nullptr || DeviceMemory::instance().free(memory) ? cudaSuccess
                                                                           : cudaErrorInvalidValue);
}

cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned /*flags*/) {
  if (const cudaError_t status = check_unsafe_call(); status != cudaSuccess) return status;
  *memory = ::operator new(bytes, kHostAlignment, std::nothrow);
  return finish(*memory != nullptr ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaFreeHost(void* memory) {
  if (const cudaError_t status = check_unsafe_call(); status != cudaSuccess) return status;
  ::operator delete(memory, kHostAlignment);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const bool to_device = kind != cudaMemcpyDeviceToHost, from_device = kind != cudaMemcpyHostToDevice;
  if (on_device(to, bytes) != to_device || on_device(from, bytes) != from_device)
    return finish(cudaErrorInvalidValue);
  if (bytes > 0) queue(stream, [=] { std::memmove(to, from, bytes); });
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  if (!on_device(memory, bytes)) return finish(cudaErrorInvalidValue);
  if (bytes > 0) queue(stream, [=] { std::memset(memory, value, bytes); });
  return cudaSuccess;
}

}  // namespace lockstep::emulation

void lockstep::emulated::set_built_for_this_device(bool built) {
  emulation::has_kernels = built;
}

void lockstep::emulated::set_visible(bool visible) {
  emulation::is_visible = visible;
}
