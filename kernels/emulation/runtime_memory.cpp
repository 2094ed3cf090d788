// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Memory, copies and fills.
#include "kernels/emulation/errors.hpp"
#include "kernels/emulation/memory.hpp"
#include "kernels/emulation/runtime_api.hpp"
#include "kernels/emulation/stream.hpp"

#include <cstring>
#include <new>

namespace lockstep::emulation {
namespace {

constexpr std::align_val_t kHostAlignment{4096};

bool on_device(const void* memory, std::size_t bytes) {
  return DeviceMemory::instance().contains(memory, bytes);
}

cudaError_t check_copy(const void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  return on_device(to, bytes) == to_device && on_device(from, bytes) == from_device ? cudaSuccess
                                                                                    : cudaErrorInvalidValue;
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
  const cudaError_t status = check_copy(to, from, bytes, kind);
  if (status != cudaSuccess || bytes == 0) return finish(status);
  queue(stream, [=] { std::memmove(to, from, bytes); });
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  if (!on_device(memory, bytes)) return finish(cudaErrorInvalidValue);
  if (bytes > 0) queue(stream, [=] { std::memset(memory, value, bytes); });
  return cudaSuccess;
}

}  // namespace lockstep::emulation
