// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Device memory of the emulator, and the calls that move data.
#include "kernels/emulation/memory.hpp"

#include "tests/kernels/emulation/rig.hpp"
#include "tests/support/prelude.hpp"

#include <unistd.h>

namespace lockstep::emulated {

namespace {

using MemoryTest = EmulatorTest;

TEST_F(MemoryTest, NewMemoryIsPoisonedAndAligned) {
  std::vector<std::unique_ptr<DeviceArray<float>>> arrays;
  for (std::size_t size = 1; size < 40; ++size) {
    const auto& array = arrays.emplace_back(std::make_unique<DeviceArray<float>>(size));
    EXPECT_TRUE(std::ranges::all_of(array->values(), [](float value) { return std::isnan(value); }));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(array->data()) % 256, 0U);
  }
}

TEST_F(MemoryTest, TheDeviceCanBeFullAndHasNothingForNoBytes) {
  std::size_t free_before = 0, free_then = 0, total = 0;
  LOCKSTEP_CUDA(cudaMemGetInfo(&free_before, &total));
  EXPECT_EQ(total, std::size_t{4} << 30);
  const DeviceArray<char> some(1000);
  LOCKSTEP_CUDA(cudaMemGetInfo(&free_then, &total));
  EXPECT_EQ(free_before - free_then, 1000U);
  void* memory = &total;
  EXPECT_EQ(cudaMalloc(&memory, 0), cudaSuccess);
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(cudaMalloc(&memory, free_then + 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

/// Their values: tests/kernels/device/runtime_test.cpp.
TEST_F(MemoryTest, OnlyDocumentedAttributesOfTheOneDeviceAreTold) {
  int value = 0;
  EXPECT_EQ(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(9999), 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrClockRate, 1), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaSetDevice(1), cudaErrorInvalidDevice);
  cudaFuncAttributes attributes{};
  LOCKSTEP_CUDA(cudaFuncGetAttributes(&attributes, [] {}));
  EXPECT_EQ(attributes.binaryVersion, 80);
  static_cast<void>(cudaGetLastError());
}

TEST_F(MemoryTest, ADeviceHasNoLinks) {
  int value = 7;
  LOCKSTEP_CUDA(cudaDeviceCanAccessPeer(&value, 0, 0));
  EXPECT_EQ(value, 0);
  EXPECT_EQ(cudaDeviceCanAccessPeer(&value, 1, 0), cudaErrorInvalidDevice);
  for (const int to : {0, 1})
    EXPECT_EQ(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrPerformanceRank, 0, to),
              cudaErrorInvalidDevice);
  static_cast<void>(cudaGetLastError());
}

TEST_F(MemoryTest, CopiesMoveBytes) {
  const std::vector<int> source = {1, 2, 3, 4};
  std::vector<int> target(4);
  const DeviceArray<int> a(4), b(4);
  LOCKSTEP_CUDA(cudaMemcpyAsync(a.data(), source.data(), 16, cudaMemcpyHostToDevice));
  LOCKSTEP_CUDA(cudaMemcpyAsync(b.data(), a.data(), 16, cudaMemcpyDeviceToDevice));
  LOCKSTEP_CUDA(cudaMemsetAsync(b.data() + 2, 0, 4));
  LOCKSTEP_CUDA(cudaMemcpyAsync(target.data(), b.data(), 16, cudaMemcpyDeviceToHost));
  EXPECT_EQ(target, (std::vector<int>{1, 2, 0, 4}));
}

TEST_F(MemoryTest, CopiesBeyondAnArrayOrInAWrongDirectionAreRefused) {
  const DeviceArray<int> array(4, 0);
  int host[5] = {};
  EXPECT_EQ(cudaMemcpyAsync(array.data(), host, 17, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(host, array.data() + 1, 16, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(host, host, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(host, array.data(), 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemsetAsync(array.data() + 3, 0, 5), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemsetAsync(host, 0, 4), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

TEST_F(MemoryTest, FreeingWhatIsNotAnArrayIsRefused) {
  const DeviceArray<int> array(4);
  EXPECT_EQ(cudaFree(array.data() + 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  static_cast<void>(cudaGetLastError());
}

TEST_F(MemoryTest, ErrorsHaveTheNamesOfCuda) {
  EXPECT_STREQ(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
  EXPECT_STREQ(cudaGetErrorName(static_cast<cudaError_t>(12345)), "unrecognized error code");
}

// Stacks of threads, of which each OS thread keeps some.

__global__ void wait_kernel(unsigned* arrived) {
  atomicAdd(arrived, 1U);
  __syncthreads();
}

/// Address space of this process.
std::size_t mapped_bytes() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// Each OS thread has 64 stacks of 256 KiB, 16 MiB. All threads after the first few reuse what those gave back.
TEST_F(MemoryTest, StacksAreGivenBackWithTheirOsThread) {
  const DeviceArray<unsigned> arrived(1, 0);
  const auto run_threads = [&](int count) {
    for (int i = 0; i < count; ++i)
      std::thread([&] { launch(nullptr, {1, 64}, wait_kernel, arrived.data()); }).join();
  };
  run_threads(4);
  const std::size_t before = mapped_bytes();
  run_threads(32);
  EXPECT_EQ(arrived[0], 36U * 64);
  EXPECT_LT(mapped_bytes(), before + (std::size_t{256} << 20)) << "of 512 MiB";
}

// Shared memory of the emulator: of a block, poisoned, exactly as large as asked for.

using SharedMemoryTest = EmulatorTest;

__global__ void first_sight_kernel(float* out) {
  LOCKSTEP_SHARED(float, cell, 1);
  LOCKSTEP_DYNAMIC_SHARED(float, dynamic);
  out[blockIdx.x * 2] = cell[0];
  out[blockIdx.x * 2 + 1] = dynamic[0];
  cell[0] = 1;
  dynamic[0] = 1;
}

TEST_F(SharedMemoryTest, EveryBlockFindsItPoisoned) {
  const DeviceArray<float> out(6, 0.0F);
  launch(nullptr, {3, 1, sizeof(float)}, first_sight_kernel, out.data());
  for (std::size_t i = 0; i < 6; ++i) EXPECT_TRUE(std::isnan(out[i])) << i;
}

/// The sum of the numbers of the block's threads, seen by all of them.
__device__ unsigned block_sum(unsigned number) {
  LOCKSTEP_SHARED(unsigned, sum, 1);
  if (threadIdx.x == 0) sum[0] = 0;
  __syncthreads();
  atomicAdd(sum, number);
  __syncthreads();
  return sum[0];
}

__global__ void block_sum_kernel(unsigned* out) {
  LOCKSTEP_SHARED(unsigned, own, 40);
  own[threadIdx.x] = blockIdx.x;
  const unsigned total = block_sum(own[threadIdx.x] + 1);
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = total + block_sum(1000);
}

TEST_F(SharedMemoryTest, ThreadsOfABlockShareItAndBlocksDoNot) {
  const auto sums = [] {
    const DeviceArray<unsigned> out(3 * 40, 0);
    launch(nullptr, {3, 40}, block_sum_kernel, out.data());
    return out.values();
  };
  const auto results = results_of_ten_orders(sums);
  ASSERT_EQ(results.size(), 1U);
  for (std::size_t i = 0; i < 120; ++i)
    EXPECT_EQ((*results.begin())[i], (i / 40 + 1) * 40 + 40000) << "thread " << i;
}

template <int kTag>
__global__ void addresses_kernel(std::uintptr_t* out) {
  LOCKSTEP_SHARED(char, one, 3);
  LOCKSTEP_SHARED(double, two, 5);
  LOCKSTEP_SHARED(float4, three, 2);
  LOCKSTEP_DYNAMIC_SHARED(float4, dynamic);
  static_assert(sizeof one == 3 && sizeof two == 40 && sizeof three == 32);
  out[0] = reinterpret_cast<std::uintptr_t>(one);
  out[1] = reinterpret_cast<std::uintptr_t>(two);
  out[2] = reinterpret_cast<std::uintptr_t>(three);
  out[3] = reinterpret_cast<std::uintptr_t>(dynamic);
}

TEST_F(SharedMemoryTest, EveryPlaceHasAnAlignedArrayOfItsOwn) {
  const DeviceArray<std::uintptr_t> out(4);
  launch(nullptr, {1, 1, 16}, addresses_kernel<0>, out.data());
  const auto values = out.values();
  EXPECT_EQ(std::set<std::uintptr_t>(values.begin(), values.end()).size(), 4U);
  for (const std::uintptr_t address : values) EXPECT_EQ(address % 16, 0U);
}

__global__ void large_kernel() {
  LOCKSTEP_SHARED(float, half, 20 * 1024);
  LOCKSTEP_DYNAMIC_SHARED(float, other);
  half[0] = other[0];
}

TEST_F(SharedMemoryTest, StaticAndDynamicTogetherHaveALimit) {
  EXPECT_NO_THROW(launch(nullptr, {1, 1, 83 * 1024}, large_kernel));
  expect_error<InternalError>(
      [] {
        launch(nullptr, {1, 1, 84 * 1024}, large_kernel);
      },
      {"memory_test.cpp",
       "block (0,0,0): a block cannot have 167936 bytes of shared memory in 2 arrays (at most 166912)"});
}

TEST_F(SharedMemoryTest, ATestMayPlayASmallerGpuAndNoLargerOne) {
  set_most_shared_bytes(1000);
  EXPECT_EQ(emulation::most_shared_bytes(), 1000U);
  set_most_shared_bytes(std::size_t{1} << 30);
  EXPECT_EQ(emulation::most_shared_bytes(), std::size_t{163} * 1024);
}

}  // namespace

}  // namespace lockstep::emulated
