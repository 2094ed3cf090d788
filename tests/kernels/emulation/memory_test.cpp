// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Device memory of the emulator, and the calls that move data.
#include "tests/kernels/emulation/rig.hpp"

#include <cmath>
#include <cstdint>

namespace lockstep::emulated {
namespace {

using MemoryTest = EmulatorTest;

TEST_F(MemoryTest, NewMemoryIsPoisonedAndAligned) {
  const DeviceArray<float> one(3), other(1000);
  for (const float value : other.values()) EXPECT_TRUE(std::isnan(value));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(one.data()) % 256, 0U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(other.data()) % 256, 0U);
}

TEST_F(MemoryTest, TheDeviceCanBeFull) {
  std::size_t free_before = 0, free_then = 0, total = 0;
  LOCKSTEP_CUDA(cudaMemGetInfo(&free_before, &total));
  const DeviceArray<char> some(1000);
  LOCKSTEP_CUDA(cudaMemGetInfo(&free_then, &total));
  EXPECT_EQ(free_before - free_then, 1000U);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, total), cudaErrorMemoryAllocation);
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
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

}  // namespace
}  // namespace lockstep::emulated
