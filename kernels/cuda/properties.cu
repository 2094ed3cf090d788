// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Properties of devices, UUIDs, PCI places and links between GPUs, as the runtime tells them.
#include "common/error.hpp"
#include "kernels/cuda/runtime.hpp"
#include "kernels/device_messages.hpp"

#include <array>
#include <cstdlib>
#include <cstring>

namespace lockstep::LOCKSTEP_GPU {

namespace {

FailedSearch failed_search(cudaError_t status) {
  FailedSearch search;
  search.error = std::string(cudaGetErrorName(status)) + " (" + cudaGetErrorString(status) + ")";
  static_cast<void>(cudaDriverGetVersion(&search.driver_version));
  static_cast<void>(cudaRuntimeGetVersion(&search.runtime_version));
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) search.visible_devices = visible;
  return search;
}

int attribute(cudaDeviceAttr which, int index) {
  int value = 0;
  LOCKSTEP_CUDA(cudaDeviceGetAttribute(&value, which, index));
  return value;
}

std::size_t size_attribute(cudaDeviceAttr which, int index) {
  return static_cast<std::size_t>(attribute(which, index));
}

std::string uuid_of(const cudaDeviceProp& prop) {
  std::array<unsigned char, 16> bytes{};
  std::memcpy(bytes.data(), &prop.uuid, bytes.size());
  return uuid_text(bytes, prop.name);
}

std::string pci_bus_of(int index) {
  char text[32] = {};
  LOCKSTEP_CUDA(cudaDeviceGetPCIBusId(text, sizeof text, index));
  return text;
}

PeerLink read_link(int from, int to) {
  int access = 0, rank = 0, atomics = 0;
  LOCKSTEP_CUDA(cudaDeviceCanAccessPeer(&access, from, to));
  LOCKSTEP_CUDA(cudaDeviceGetP2PAttribute(&rank, cudaDevP2PAttrPerformanceRank, from, to));
  LOCKSTEP_CUDA(cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, from, to));
  return {access != 0, rank, access != 0 && atomics != 0};
}

}  // namespace

int device_count() {
  int count = 0;
  cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return count;
  static_cast<void>(cudaGetLastError());
  if (status == cudaSuccess) status = cudaErrorNoDevice;
  const FailedSearch search = failed_search(status);
  if (is_without_gpus(search)) throw NoGpuError(no_device_message(search));
  throw DeviceError(no_device_message(search));
}

DeviceProperties read_properties(int index) {
  cudaDeviceProp prop{};
  LOCKSTEP_CUDA(cudaGetDeviceProperties(&prop, index));
  DeviceProperties properties;
  properties.index = index;
  properties.name = prop.name;
  properties.uuid = uuid_of(prop);
  properties.pci_bus = pci_bus_of(index);
  properties.total_bytes = prop.totalGlobalMem;
  properties.compute_major = attribute(cudaDevAttrComputeCapabilityMajor, index);
  properties.compute_minor = attribute(cudaDevAttrComputeCapabilityMinor, index);
  properties.multiprocessors = attribute(cudaDevAttrMultiProcessorCount, index);
  properties.clock_mhz = attribute(cudaDevAttrClockRate, index) / 1000;
  properties.memory_clock_mhz = attribute(cudaDevAttrMemoryClockRate, index) / 1000;
  properties.memory_bus_bits = attribute(cudaDevAttrGlobalMemoryBusWidth, index);
  properties.l2_bytes = size_attribute(cudaDevAttrL2CacheSize, index);
  properties.shared_bytes_per_block = size_attribute(cudaDevAttrMaxSharedMemoryPerBlock, index);
  properties.max_shared_bytes_per_block = size_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, index);
  return properties;
}

std::vector<std::vector<PeerLink>> read_links() {
  const int count = device_count();
  std::vector<std::vector<PeerLink>> links(static_cast<std::size_t>(count));
  for (int from = 0; from < count; ++from) {
    for (int to = 0; to < count; ++to)
      links[static_cast<std::size_t>(from)].push_back(from == to ? PeerLink{} : read_link(from, to));
  }
  return links;
}

std::string read_versions() {
  int driver = 0, runtime = 0;
  LOCKSTEP_CUDA(cudaDriverGetVersion(&driver));
  LOCKSTEP_CUDA(cudaRuntimeGetVersion(&runtime));
  return "driver " + version_text(driver) + ", runtime " + version_text(runtime);
}

}  // namespace lockstep::LOCKSTEP_GPU
