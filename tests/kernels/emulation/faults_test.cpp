// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Faults planted in kernels: each is found, and the message says where.
#include "kernels/emulation/sanitizer.hpp"
#include "tests/kernels/emulation/rig.hpp"

namespace lockstep::emulated::faults_test {
namespace {

using FaultsTest = EmulatorTest;
constexpr unsigned kAll = 0xFFFFFFFFU;

// --- writes out of bounds. Under AddressSanitizer the process ends at the write; in every other build the
// launch throws after it.

__global__ void overrun_kernel(int size, float* out) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i <= size) out[i] = 1;  // one too many
}

__global__ void underrun_kernel(float* out) {
  out[static_cast<int>(threadIdx.x) - 1] = 1;
}

__global__ void shared_overrun_kernel(float* out) {
  LOCKSTEP_SHARED(float, tile, 32);
  const unsigned i = threadIdx.x + blockIdx.x;
  tile[i] = 1;  // the last thread of the second block is beyond it
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];
}

__global__ void dynamic_overrun_kernel(unsigned size) {
  LOCKSTEP_DYNAMIC_SHARED(char, bytes);
  for (unsigned i = threadIdx.x; i <= size; i += blockDim.x) bytes[i] = 1;
}

__global__ void dynamic_underrun_kernel() {
  LOCKSTEP_DYNAMIC_SHARED(char, bytes);
  *(bytes - 1) = 1;
}

#if LOCKSTEP_HAS_ASAN
using FaultsDeathTest = FaultsTest;

TEST_F(FaultsDeathTest, SanitizerSeesWritesOutOfBounds) {
  const DeviceArray<float> out(50);
  EXPECT_DEATH(launch(nullptr, {2, 32}, overrun_kernel, 50, out.data()), "use-after-poison");
  EXPECT_DEATH(launch(nullptr, {1, 32}, underrun_kernel, out.data()), "use-after-poison");
  EXPECT_DEATH(launch(nullptr, {2, 32}, shared_overrun_kernel, out.data()), "out of bounds|poison");
  EXPECT_DEATH(launch(nullptr, {1, 32, 77}, dynamic_overrun_kernel, 77), "use-after-poison");
  EXPECT_DEATH(launch(nullptr, {1, 1, 77}, dynamic_underrun_kernel), "use-after-poison");
}

__global__ void read_overrun_kernel(const float* in, float* out) {
  out[threadIdx.x] = in[threadIdx.x];
}

TEST_F(FaultsDeathTest, SanitizerSeesReadsOutOfBoundsAndAfterFree) {
  const DeviceArray<float> out(64);
  const DeviceArray<float> in(63, 0.0F);
  EXPECT_DEATH(launch(nullptr, {1, 64}, read_overrun_kernel, in.data(), out.data()), "use-after-poison");
  const float* freed = DeviceArray<float>(64, 0.0F).data();
  EXPECT_DEATH(launch(nullptr, {1, 64}, read_overrun_kernel, freed, out.data()), "heap-use-after-free");
}

#else

TEST_F(FaultsTest, WritesOutsideOfAnArrayInDeviceMemory) {
  const DeviceArray<float> out(50);
  launch(nullptr, {1, 32}, overrun_kernel, 50, out.data());
  expect_error<InternalError>(
      [&] {
        launch(nullptr, {2, 32}, overrun_kernel, 50, out.data());
      },
      {"kernel launched at faults_test.cpp:", "wrote out of bounds", "byte 200 of an array of 200 bytes"});
  launch(nullptr, {1, 32}, overrun_kernel, 50, out.data());
  expect_error<InternalError>(
      [&] {
        launch(nullptr, {1, 32}, underrun_kernel, out.data());
      },
      {"faults_test.cpp:", "byte -4 of an array of 200 bytes"});
}

TEST_F(FaultsTest, WritesOutsideOfASharedArray) {
  const DeviceArray<float> out(50);
  launch(nullptr, {1, 32}, shared_overrun_kernel, out.data());
  expect_error<InternalError>(
      [&] {
        launch(nullptr, {2, 32}, shared_overrun_kernel, out.data());
      },
      {"faults_test.cpp:", "block (1,0,0)", "byte 128 of the shared array of faults_test.cpp:"});
  expect_error<InternalError>(
      [] {
        launch(nullptr, {1, 32, 77}, dynamic_overrun_kernel, 77);
      },
      {"block (0,0,0)", "byte 77 of the dynamic shared memory, which has 77"});
  expect_error<InternalError>(
      [] {
        launch(nullptr, {1, 1, 77}, dynamic_underrun_kernel);
      },
      {"block (0,0,0): a thread wrote out of bounds: before the first shared array"});
}

#endif

// --- barriers and races: the result changes with the order of the threads

template <bool kBarrier>
__global__ void reverse_kernel(int* numbers) {
  LOCKSTEP_SHARED(int, tile, 64);
  tile[threadIdx.x] = numbers[threadIdx.x];
  if constexpr (kBarrier) __syncthreads();
  numbers[threadIdx.x] = tile[63 - threadIdx.x];
}

template <bool kBarrier>
std::size_t results_of_reverse() {
  return results_of_ten_orders([] {
           const DeviceArray<int> numbers(64);
           for (std::size_t i = 0; i < 64; ++i) numbers[i] = static_cast<int>(i);
           launch(nullptr, {1, 64}, reverse_kernel<kBarrier>, numbers.data());
           return numbers.values();
         })
      .size();
}

TEST_F(FaultsTest, MissingBarrierChangesTheResult) {
  EXPECT_EQ(results_of_reverse<true>(), 1U);
  EXPECT_EQ(results_of_reverse<false>(), 10U);
}

template <bool kAtomic>
__global__ void sum_kernel(unsigned* sum) {
  if constexpr (kAtomic) {
    atomicAdd(sum, threadIdx.x);
  } else {
    const unsigned seen = *sum;
    __syncwarp();  // others may come in between
    *sum = seen + threadIdx.x;
  }
}

template <bool kAtomic>
std::set<unsigned> results_of_sum() {
  return results_of_ten_orders([] {
    const DeviceArray<unsigned> sum(1, 0);
    launch(nullptr, {1, 64}, sum_kernel<kAtomic>, sum.data());
    return sum[0];
  });
}

TEST_F(FaultsTest, RaceOfReadAndWriteChangesTheResult) {
  EXPECT_EQ(results_of_sum<true>(), (std::set<unsigned>{63 * 64 / 2}));
  EXPECT_GT(results_of_sum<false>().size(), 1U);
}

__global__ void last_writer_kernel(int* out) {
  *out = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}

TEST_F(FaultsTest, RaceOfTwoWritesChangesTheResult) {
  const auto results = results_of_ten_orders([] {
    const DeviceArray<int> out(1);
    launch(nullptr, {4, 8}, last_writer_kernel, out.data());
    return out[0];
  });
  EXPECT_GT(results.size(), 1U);
}

// --- what hangs on a GPU

__global__ void half_barrier_kernel() {
  if (blockIdx.x == 1 && threadIdx.x >= 16) return;
  __syncthreads();
}

TEST_F(FaultsTest, BarrierThatSomeThreadsNeverReach) {
  for (unsigned seed = 0; seed < 3; ++seed) {
    set_thread_order(seed);
    expect_error<InternalError>(
        [] {
          launch(nullptr, {3, 64}, half_barrier_kernel);
        },
        {"kernel launched at faults_test.cpp:", "block (1,0,0)", "thread (0,0,0) waits forever at",
         "thread (16,0,0) has left the kernel without reaching this barrier"});
  }
}

__global__ void two_barriers_kernel() {
  if (threadIdx.x < 16) {  // NOLINT(bugprone-branch-clone): not the same barrier
    __syncthreads();
  } else {
    __syncthreads();
  }
}

TEST_F(FaultsTest, ThreadsAtDifferentBarriers) {
  expect_error<InternalError>(
      [] {
        launch(nullptr, {1, 64}, two_barriers_kernel);
      },
      {"block (0,0,0)", "thread (0,0,0) waits forever", "thread (16,0,0) waits at another barrier"});
}

__global__ void barriers_of_two_files_kernel(const char* other) {
  __syncthreads({threadIdx.x < 16 ? "a.cu" : other, 7});
}

TEST_F(FaultsTest, OneLineOfTwoFilesIsTwoBarriers) {
  expect_error<InternalError>(
      [] {
        launch(nullptr, {1, 64}, barriers_of_two_files_kernel, "b.cu");
      },
      {"thread (0,0,0) waits forever at a.cu:7: thread (16,0,0) waits at another barrier, b.cu:7"});
  const std::string same = "a.cu";  // elsewhere in memory
  EXPECT_NO_THROW(launch(nullptr, {1, 64}, barriers_of_two_files_kernel, same.c_str()));
}

__global__ void divergent_shuffle_kernel(int kind, int* out) {
  const unsigned lane = threadIdx.x % 32;
  if (lane >= 20 && kind == 0) return;
  if (lane >= 20 && kind == 1) __syncthreads();
  unsigned mask = kAll;
  if (kind == 2 && lane >= 20) mask = 0xFFF80000U;
  if (kind == 3) mask = 0xFFFF0000U;
  out[threadIdx.x] = __shfl_xor_sync(mask, 1, 1);
  if (lane < 20 && kind == 1) __syncthreads();
}

TEST_F(FaultsTest, ShuffleWhoseMaskNamesThreadsThatDoNotTakePart) {
  const DeviceArray<int> out(64);
  const auto run = [&](int kind) { launch(nullptr, {1, 64}, divergent_shuffle_kernel, kind, out.data()); };
  const char* const faults[] = {
      "0xffffffff names lane 20, which has left the kernel",
      "0xffffffff names lane 20, which waits at a barrier",
      "lane 20, which waits at faults_test.cpp:", "0xffff0000 does not name its own lane 0"};
  for (int kind = 0; kind < 4; ++kind)
    expect_error<InternalError>(
        [&] { run(kind); },
        {"block (0,0,0): thread (0,0,0) waits forever at faults_test.cpp:", faults[kind]});
  expect_error<InternalError>([&] { run(2); }, {"with mask 0xfff80000"});
  // All lanes waited in that exchange, and none does when the next block begins.
  expect_error<InternalError>([&] { run(1); }, {faults[1]});
  EXPECT_NO_THROW(run(4));
  expect_error<InternalError>(
      [&] {
        launch(nullptr, {1, 20}, divergent_shuffle_kernel, 4, out.data());
      },
      {"0xffffffff names lane 20, which has left the kernel or never was"});
}

TEST_F(FaultsTest, FaultsInAGraphNameTheirKernel) {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  LOCKSTEP_CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0));
  LOCKSTEP_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  launch(stream, {3, 64}, half_barrier_kernel);
  LOCKSTEP_CUDA(cudaStreamEndCapture(stream, &graph));
  LOCKSTEP_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  expect_error<InternalError>([&] { LOCKSTEP_CUDA(cudaGraphLaunch(executable, stream)); },
                              {"kernel launched at faults_test.cpp:", "block (1,0,0)"});
  LOCKSTEP_CUDA(cudaGraphExecDestroy(executable));
  LOCKSTEP_CUDA(cudaGraphDestroy(graph));
  LOCKSTEP_CUDA(cudaStreamDestroy(stream));
}

}  // namespace
}  // namespace lockstep::emulated::faults_test
