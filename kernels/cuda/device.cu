// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The GPUs of this machine as a Platform: found, tried, made.
#include "common/error.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/device_messages.hpp"
#include "kernels/platform.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace lockstep::LOCKSTEP_GPU {
namespace {

// A device of the CUDA runtime: its memory, streams and events, with errors that say how much was free.

/// Like all others in that it is compiled for the same architectures.
__global__ void nothing() {}

/// Asks for one kernel, which loads its machine code, or compiles it from PTX. A GPU that the program was not
/// built for, or a driver that does not understand it, shows here and not in the middle of a run. Makes the
/// device's context.
/// @throws DeviceError  one line: which GPU, why not, and what to do
void expect_usable(const DeviceProperties& properties) {
  LOCKSTEP_CUDA(cudaSetDevice(properties.index));
  cudaFuncAttributes attributes{};
  const cudaError_t status = cudaFuncGetAttributes(&attributes, nothing);
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  throw DeviceError(
      unusable_device_message(properties, LOCKSTEP_CUDA_FAILURE(status, "cudaFuncGetAttributes")));
}

/// The name of this namespace in quotes.
#define LOCKSTEP_QUOTED(name) #name
#define LOCKSTEP_QUOTED_EXPANSION(name) LOCKSTEP_QUOTED(name)
constexpr std::string_view kKind = LOCKSTEP_QUOTED_EXPANSION(LOCKSTEP_GPU);

/// Free bytes of the current device.
std::size_t free_bytes() {
  std::size_t free = 0, total = 0;
  LOCKSTEP_CUDA(cudaMemGetInfo(&free, &total));
  return free;
}

class GpuDevice final : public Device {
 public:
  explicit GpuDevice(DeviceProperties properties) : properties_(std::move(properties)) {
    expect_usable(properties_);
    properties_.free_bytes = free_bytes();
  }

  const DeviceProperties& properties() const override { return properties_; }
  std::string_view kind() const override { return kKind; }

  void* allocate(std::size_t bytes) override {
    use();
    void* memory = nullptr;
    const cudaError_t status = cudaMalloc(&memory, bytes);
    if (status == cudaErrorMemoryAllocation) {
      static_cast<void>(cudaGetLastError());
      throw DeviceError(out_of_memory_message(properties_, bytes, free_bytes()));
    }
    LOCKSTEP_CUDA(status);
    count(memory, bytes);
    return memory;
  }
  void free(void* memory) noexcept override {
    forget(memory);
    LOCKSTEP_CUDA_NOEXCEPT(cudaSetDevice(properties_.index));
    LOCKSTEP_CUDA_NOEXCEPT(cudaFree(memory));
  }
  DeviceMemoryUse memory_use() const override {
    use();
    const std::size_t free = free_bytes();
    const std::lock_guard lock(mutex_);
    DeviceMemoryUse use = use_;
    use.reserved = properties_.free_bytes > free ? properties_.free_bytes - free : 0;
    return use;
  }

  void* allocate_pinned(std::size_t bytes) override {
    use();
    void* memory = nullptr;
    const cudaError_t status = cudaHostAlloc(&memory, bytes, cudaHostAllocPortable);
    if (status == cudaErrorMemoryAllocation) {
      static_cast<void>(cudaGetLastError());
      throw DeviceError(out_of_pinned_memory_message(bytes));
    }
    LOCKSTEP_CUDA(status);
    return memory;
  }
  void free_pinned(void* memory) noexcept override {
    LOCKSTEP_CUDA_NOEXCEPT(cudaSetDevice(properties_.index));
    LOCKSTEP_CUDA_NOEXCEPT(cudaFreeHost(memory));
  }

  std::unique_ptr<Stream> make_stream(Priority priority) override {
    return LOCKSTEP_GPU::make_stream(properties_.index, priority);
  }
  std::unique_ptr<Event> make_event(Timing timing) override {
    return LOCKSTEP_GPU::make_event(properties_.index, timing);
  }

 private:
  void use() const { LOCKSTEP_CUDA(cudaSetDevice(properties_.index)); }
  void count(void* memory, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    pieces_[memory] = bytes;
    use_.allocated += bytes;
    use_.most_allocated = std::max(use_.most_allocated, use_.allocated);
  }
  void forget(void* memory) noexcept {
    const std::lock_guard lock(mutex_);
    if (const auto piece = pieces_.extract(memory)) use_.allocated -= piece.mapped();
  }

  DeviceProperties properties_;
  mutable std::mutex mutex_;
  std::map<void*, std::size_t> pieces_;  ///< bytes of each; under mutex_, as the following
  DeviceMemoryUse use_;                  ///< but for what is reserved
};

// Properties of devices, UUIDs, PCI places and links between GPUs, as the runtime tells them. None of these questions
// makes a context, so none uses device memory.

template <typename T = int>
T attribute(cudaDeviceAttr which, int index) {
  int value = 0;
  LOCKSTEP_CUDA(cudaDeviceGetAttribute(&value, which, index));
  return static_cast<T>(value);
}

PeerLink read_link(int from, int to) {
  int access = 0, rank = 0, atomics = 0;
  LOCKSTEP_CUDA(cudaDeviceCanAccessPeer(&access, from, to));
  LOCKSTEP_CUDA(cudaDeviceGetP2PAttribute(&rank, cudaDevP2PAttrPerformanceRank, from, to));
  LOCKSTEP_CUDA(cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, from, to));
  return {access != 0, rank, access != 0 && atomics != 0};
}

/// How many devices this process sees; at least one.
/// @throws NoGpuError, DeviceError: why there is none and what to do
int device_count() {
  int count = 0;
  cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return count;
  static_cast<void>(cudaGetLastError());
  if (status == cudaSuccess) status = cudaErrorNoDevice;
  FailedSearch search;
  search.error = std::string(cudaGetErrorName(status)) + " (" + cudaGetErrorString(status) + ")";
  static_cast<void>(cudaDriverGetVersion(&search.driver_version));
  static_cast<void>(cudaRuntimeGetVersion(&search.runtime_version));
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) search.visible_devices = visible;
  if (is_without_gpus(search)) throw NoGpuError(no_device_message(search));
  throw DeviceError(no_device_message(search));
}

/// All but free_bytes.
DeviceProperties read_properties(int index) {
  cudaDeviceProp prop{};
  LOCKSTEP_CUDA(cudaGetDeviceProperties(&prop, index));
  std::array<unsigned char, 16> uuid{};
  std::memcpy(uuid.data(), &prop.uuid, uuid.size());
  char pci_bus[32] = {};
  LOCKSTEP_CUDA(cudaDeviceGetPCIBusId(pci_bus, sizeof pci_bus, index));
  return {
      .index = index,
      .name = prop.name,
      .uuid = uuid_text(uuid, prop.name),
      .pci_bus = pci_bus,
      .total_bytes = prop.totalGlobalMem,
      .compute_major = attribute(cudaDevAttrComputeCapabilityMajor, index),
      .compute_minor = attribute(cudaDevAttrComputeCapabilityMinor, index),
      .multiprocessors = attribute(cudaDevAttrMultiProcessorCount, index),
      .clock_mhz = attribute(cudaDevAttrClockRate, index) / 1000,
      .memory_clock_mhz = attribute(cudaDevAttrMemoryClockRate, index) / 1000,
      .memory_bus_bits = attribute(cudaDevAttrGlobalMemoryBusWidth, index),
      .l2_bytes = attribute<std::size_t>(cudaDevAttrL2CacheSize, index),
      .shared_bytes_per_block = attribute<std::size_t>(cudaDevAttrMaxSharedMemoryPerBlock, index),
      .max_shared_bytes_per_block = attribute<std::size_t>(cudaDevAttrMaxSharedMemoryPerBlockOptin, index)};
}

class GpuPlatform final : public Platform {
 public:
  std::vector<DeviceProperties> devices() const override {
    std::vector<DeviceProperties> devices;
    for (int index = 0, count = device_count(); index < count; ++index)
      devices.push_back(read_properties(index));
    return devices;
  }
  std::vector<std::vector<PeerLink>> links() const override {
    const int count = device_count();
    std::vector<std::vector<PeerLink>> links(static_cast<std::size_t>(count));
    for (int from = 0; from < count; ++from) {
      for (int to = 0; to < count; ++to)
        links[static_cast<std::size_t>(from)].push_back(from == to ? PeerLink{} : read_link(from, to));
    }
    return links;
  }
  std::string versions() const override {
    int driver = 0, runtime = 0;
    LOCKSTEP_CUDA(cudaDriverGetVersion(&driver));
    LOCKSTEP_CUDA(cudaRuntimeGetVersion(&runtime));
    return "driver " + version_text(driver) + ", runtime " + version_text(runtime);
  }

  std::unique_ptr<Device> make_device(int index) const override {
    if (index < 0 || index >= device_count()) throw DeviceError(no_such_device_message(index, devices()));
    return std::make_unique<GpuDevice>(read_properties(index));
  }
  std::unique_ptr<DeviceOps> make_ops(Device& device) const override {
    return std::make_unique<NativeOps>(device.properties());
  }
};

}  // namespace

const Platform& platform() {
  static const GpuPlatform platform;
  return platform;
}

}  // namespace lockstep::LOCKSTEP_GPU
