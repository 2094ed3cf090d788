// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sums of what all devices of a host have, by two kernels (kernels/peer_sums.hpp), and the memory that they share.
#include "common/error.hpp"
#include "kernels/cuda/runtime.hpp"
#include "kernels/cuda/threads.cuh"
#include "kernels/peer_sums.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep::LOCKSTEP_GPU {

// The kernels.
//
// Limit: Net's 21,840 sums on 8 ranks: 7 x 175 KB over NVLink at 450 GB/s, 2.7 us; a launch, a flag and a first load
// each for two kernels, by estimate another 5 us. Not timed.

namespace {

constexpr int kMostPeers = PeerSums::kMostRanks;

/// The beginning of a rank's memory; two halves follow.
struct alignas(256) PeerHead {
  std::uint64_t offered[kMostPeers];  ///< by rank, which writes it: its terms are there for this sum
  std::uint64_t done;                 ///< sums; this and what follows are its own kernels'
  unsigned offering, adding;          ///< blocks that have ended, of the kernel under way
};

/// In pinned memory, for the host.
struct PeerSignals {
  std::uint64_t waits_for;  ///< sum * kMostPeers + rank; 0: nothing
  std::uint64_t is_over;    ///< the host's: 1, and waits end
};

struct PeerMemory {
  std::byte* of[kMostPeers];  ///< by rank
  int ranks, rank;            ///< how many, and this one
  std::size_t half_bytes;
  PeerSignals* signals;
};

__device__ PeerHead& head_of(const PeerMemory& memory, int rank) {
  return *reinterpret_cast<PeerHead*>(memory.of[rank]);
}

template <typename T>
__device__ T* half_of(const PeerMemory& memory, int rank, std::uint64_t sum) {
  return reinterpret_cast<T*>(memory.of[rank] + sizeof(PeerHead) + sum % 2 * memory.half_bytes);
}

/// The number `first` of each pack of the thread, or of each element where no whole pack is left.
template <int kWidth, class Body>
__device__ void for_each_pack(std::size_t size, const Body& body) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x * kWidth;
#pragma unroll 1
  for (std::size_t first = std::size_t{thread_number()} * kWidth; first < size; first += stride) {
    if (first + kWidth <= size) {
      body.template operator()<kWidth>(first);
    } else {
#pragma unroll 1
      for (std::size_t i = first; i < size; ++i) body.template operator()<1>(i);
    }
  }
}

/// For all threads of a block: whether all other blocks of the launch have come here. Then what they read and wrote
/// before is behind them.
__device__ bool is_last_block(unsigned* ended) {
  LOCKSTEP_SHARED(unsigned, before, 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    before[0] = atomicAdd(ended, 1U);
    __threadfence();
  }
  __syncthreads();
  return before[0] + 1 == gridDim.x;
}

template <typename T>
struct CopyTerms {
  const T* from;
  T* to;
  template <int kWidth>
  __device__ void operator()(std::size_t first) const {
    store_pack(to + first, load_pack<kWidth>(from + first));
  }
};

template <typename T, int kWidth>
__global__ void __launch_bounds__(kThreadsOfEach)
    offer_terms(const __grid_constant__ PeerMemory memory, std::size_t size, const T* terms) {
  await_earlier_kernels();
  PeerHead& own = head_of(memory, memory.rank);
  const std::uint64_t sum = own.done + 1;
  for_each_pack<kWidth>(size, CopyTerms<T>{terms, half_of<T>(memory, memory.rank, sum)});
  __threadfence_system();
  if (!is_last_block(&own.offering)) return;
  const int rank = static_cast<int>(threadIdx.x);
  if (rank < memory.ranks) store_release(&head_of(memory, rank).offered[memory.rank], sum);
  if (rank == 0) own.offering = 0;
}

/// Until the terms of the rank are there. @returns false: the host ended the wait
__device__ bool await_terms(const PeerMemory& memory, const PeerHead& own, int rank, std::uint64_t sum) {
  constexpr unsigned kTurnsPerLook = 1024;  // the host's memory is far
  bool is_told = false;
#pragma unroll 1
  for (unsigned turn = 1; load_acquire(&own.offered[rank]) < sum; ++turn) {
    pause_between_looks();
    if (turn % kTurnsPerLook != 0) continue;
    store_release(&memory.signals->waits_for, sum * kMostPeers + static_cast<std::uint64_t>(rank));
    is_told = true;
    if (load_acquire(&memory.signals->is_over) != 0) return false;
  }
  if (is_told) store_release(&memory.signals->waits_for, 0);
  return true;
}

/// Past the first-level cache, which may still have what was there two sums ago.
template <int kWidth, typename T>
__device__ Pack<T, kWidth> load_past_cache(const T* from) {
  if constexpr (kWidth == 1) {
    using Word = std::conditional_t<sizeof(T) == 8, long long, float>;
    const Word word = __ldcv(reinterpret_cast<const Word*>(from));
    return {{static_cast<T>(word)}};
  } else {
    static_assert(sizeof(Pack<T, kWidth>) == sizeof(longlong2));
    const longlong2 words = __ldcv(reinterpret_cast<const longlong2*>(from));
    Pack<T, kWidth> pack;
    memcpy(&pack, &words, sizeof pack);
    return pack;
  }
}

__device__ std::int64_t plus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
__device__ float plus(float a, float b) {
  return a + b;
}

template <typename T>
struct AddTerms {
  const PeerMemory& memory;
  std::uint64_t sum;
  T* sums;

  /// All loads are on their way before the first addition.
  template <int kWidth>
  __device__ void operator()(std::size_t first) const {
    Pack<T, kWidth> terms[kMostPeers];
#pragma unroll
    for (int rank = 0; rank < kMostPeers; ++rank)
      if (rank < memory.ranks) terms[rank] = load_past_cache<kWidth>(half_of<T>(memory, rank, sum) + first);
    Pack<T, kWidth> total = terms[0];
#pragma unroll
    for (int rank = 1; rank < kMostPeers; ++rank) {
      if (rank >= memory.ranks) continue;
#pragma unroll
      for (int i = 0; i < kWidth; ++i) total.at[i] = plus(total.at[i], terms[rank].at[i]);
    }
    store_pack(sums + first, total);
  }
};

template <typename T, int kWidth>
__global__ void __launch_bounds__(kThreadsOfEach)
    add_terms(const __grid_constant__ PeerMemory memory, std::size_t size, T* sums) {
  await_earlier_kernels();
  PeerHead& own = head_of(memory, memory.rank);
  const std::uint64_t sum = own.done + 1;
  const int rank = static_cast<int>(threadIdx.x);
  const bool is_there = rank >= memory.ranks || await_terms(memory, own, rank, sum);
  if (__syncthreads_and(is_there ? 1 : 0) != 0) for_each_pack<kWidth>(size, AddTerms<T>{memory, sum, sums});
  if (!is_last_block(&own.adding) || rank != 0) return;
  own.adding = 0;
  own.done = sum;
}

}  // namespace

// The memory of a rank, that of the others, and the launches.

namespace {

/// What NVIDIA's manual recommends for memory of other processes, so that they see nothing else.
constexpr std::size_t kSharedUnit = std::size_t{2} << 20;

std::array<std::uint64_t, 2> key_of_process() {
  static const std::array<std::uint64_t, 2> key = [] {
    std::random_device device;
    const auto word = [&device] { return std::uint64_t{device()} << 32 | device(); };
    return std::array{word(), word()};
  }();
  return key;
}

std::string text_of(cudaError_t status) {
  static_cast<void>(cudaGetLastError());
  return std::string(cudaGetErrorName(status)) + " (" + cudaGetErrorString(status) + ")";
}

class GpuPeerSums final : public PeerSums {
 public:
  GpuPeerSums(Device& device, int rank, int ranks, std::size_t bytes)
      : index_(device.properties().index),
        multiprocessors_(static_cast<unsigned>(device.properties().multiprocessors)),
        region_(device, (sizeof(PeerHead) + 2 * bytes + kSharedUnit - 1) / kSharedUnit * kSharedUnit),
        signals_(device, 1),
        last_(device.make_event()) {
    LOCKSTEP_CHECK(ranks >= 1 && ranks <= kMostRanks && rank >= 0 && rank < ranks &&
                   bytes % sizeof(longlong2) == 0);
    memory_.ranks = ranks;
    memory_.rank = rank;
    memory_.half_bytes = bytes;
    memory_.signals = signals_.data();
    const auto stream = device.make_stream();
    stream->fill_zero(region_.data(), sizeof(PeerHead));
    stream->synchronize();
  }
  ~GpuPeerSums() override { close(); }
  GpuPeerSums(const GpuPeerSums&) = delete;
  GpuPeerSums& operator=(const GpuPeerSums&) = delete;

  PeerAddress address() const override {
    PeerAddress address{.process = key_of_process(),
                        .memory = reinterpret_cast<std::uint64_t>(region_.data()),
                        .device = index_};
    cudaIpcMemHandle_t handle{};
    LOCKSTEP_CUDA(cudaSetDevice(index_));
    const cudaError_t status = cudaIpcGetMemHandle(&handle, region_.data());
    if (status != cudaSuccess)
      throw DeviceError("memory of this device cannot be given to other processes: " + text_of(status));
    static_assert(sizeof handle == sizeof address.ipc_handle);
    std::memcpy(address.ipc_handle.data(), &handle, sizeof handle);
    return address;
  }

  void open(std::span<const PeerAddress> by_rank) override {
    LOCKSTEP_CHECK(std::cmp_equal(by_rank.size(), memory_.ranks));
    LOCKSTEP_CUDA(cudaSetDevice(index_));
    for (int rank = 0; rank < memory_.ranks; ++rank) {
      const PeerAddress& address = by_rank[static_cast<std::size_t>(rank)];
      if (rank == memory_.rank) {
        memory_.of[rank] = region_.data();
      } else if (address.process == key_of_process()) {
        memory_.of[rank] = of_thread(rank, address);
      } else {
        memory_.of[rank] = of_process(rank, address);
      }
    }
  }

  void sum(Stream& stream, const std::int64_t* terms, std::int64_t* sums, std::size_t count) override {
    queue(stream, terms, sums, count);
  }
  void sum(Stream& stream, const float* terms, float* sums, std::size_t count) override {
    queue(stream, terms, sums, count);
  }

  std::optional<Wait> waits_for() const override {
    const std::uint64_t word = std::atomic_ref(signals_[0].waits_for).load(std::memory_order_relaxed);
    if (word == 0) return std::nullopt;
    return Wait{word / kMostRanks, static_cast<int>(word % kMostRanks)};
  }
  void end_waits() noexcept override {
    std::atomic_ref(signals_[0].is_over).store(1, std::memory_order_release);
  }

  void close() noexcept override {
    LOCKSTEP_CUDA_NOEXCEPT(cudaSetDevice(index_));
    LOCKSTEP_CUDA_NOEXCEPT(cudaDeviceSynchronize());
    for (void* memory : opened_) LOCKSTEP_CUDA_NOEXCEPT(cudaIpcCloseMemHandle(memory));
    opened_.clear();
  }

 private:
  /// Its pointer is ours, once this device may read that one.
  std::byte* of_thread(int rank, const PeerAddress& address) const {
    const int device = static_cast<int>(address.device);
    if (device != index_) {
      const cudaError_t status = cudaDeviceEnablePeerAccess(device, 0);
      if (status != cudaSuccess && status != cudaErrorPeerAccessAlreadyEnabled)
        throw DeviceError("GPU " + std::to_string(index_) + " cannot read the memory of rank " +
                          std::to_string(rank) + "'s GPU " + std::to_string(device) + ": " + text_of(status) +
                          "; see nvidia-smi topo -p2p r");
      static_cast<void>(cudaGetLastError());
    } else if (kKernelsShareQueues) {
      throw DeviceError(
          "rank " + std::to_string(rank) +
          " is a thread of this process on the same GPU, where a kernel that waits can hold up the "
          "one that it waits for: start ranks that share a GPU as processes");
    }
    return reinterpret_cast<std::byte*>(address.memory);
  }

  std::byte* of_process(int rank, const PeerAddress& address) {
    cudaIpcMemHandle_t handle{};
    std::memcpy(&handle, address.ipc_handle.data(), sizeof handle);
    void* memory = nullptr;
    const cudaError_t status = cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess);
    if (status != cudaSuccess)
      throw DeviceError(
          "the device memory of rank " + std::to_string(rank) + " cannot be opened: " + text_of(status) +
          "; containers need the host's namespaces (docker run --pid=host --ipc=host), GPUs access "
          "to each other (nvidia-smi topo -p2p r)");
    opened_.push_back(memory);
    return static_cast<std::byte*>(memory);
  }

  template <typename T>
  void queue(Stream& stream, const T* terms, T* sums, std::size_t count) {
    constexpr int kWidth = sizeof(longlong2) / sizeof(T);
    LOCKSTEP_CHECK(count * sizeof(T) <= memory_.half_bytes);
    LOCKSTEP_CUDA(cudaSetDevice(index_));
    auto* const native = static_cast<cudaStream_t>(stream.native_handle());
    cudaStreamCaptureStatus status{};
    LOCKSTEP_CUDA(cudaStreamIsCapturing(native, &status));
    const bool captures = status != cudaStreamCaptureStatusNone;
    if (!captures) stream.wait(*last_);
    if (is_packable<kWidth>(terms) && is_packable<kWidth>(sums)) {
      launch_both<kWidth>(native, terms, sums, count);
    } else {
      launch_both<1>(native, terms, sums, count);
    }
    if (!captures) stream.record(*last_);
  }

  template <int kWidth, typename T>
  void launch_both(cudaStream_t stream, const T* terms, T* sums, std::size_t count) const {
    LaunchShape shape = thread_each(thread_count((count + kWidth - 1) / kWidth));
    shape.grid.x = std::clamp(shape.grid.x, 1U, multiprocessors_);
    launch(stream, shape, offer_terms<T, kWidth>, memory_, count, terms);
    launch(stream, shape, add_terms<T, kWidth>, memory_, count, sums);
  }

  int index_;
  unsigned multiprocessors_;
  DeviceBuffer<std::byte> region_;
  PinnedBuffer<PeerSignals> signals_;
  std::unique_ptr<Event> last_;  ///< the last sum that is in no graph
  PeerMemory memory_{};
  std::vector<void*> opened_;  ///< of other processes
};

}  // namespace

std::unique_ptr<PeerSums> make_peer_sums(Device& device, int rank, int ranks, std::size_t bytes) {
  return std::make_unique<GpuPeerSums>(device, rank, ranks, bytes);
}

}  // namespace lockstep::LOCKSTEP_GPU
