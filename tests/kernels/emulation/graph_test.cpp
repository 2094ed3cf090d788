// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Streams, events and graphs of the emulator: captured work is recorded, not run, and replayed as recorded.
#include "tests/kernels/emulation/rig.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::emulated {
namespace {

/// Two streams and an event.
class GraphTest : public EmulatorTest {
 protected:
  GraphTest() {
    LOCKSTEP_CUDA(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, 0));
    LOCKSTEP_CUDA(cudaStreamCreateWithPriority(&side_, cudaStreamNonBlocking, 0));
    LOCKSTEP_CUDA(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
  }
  ~GraphTest() override {
    LOCKSTEP_CUDA_NOEXCEPT(cudaEventDestroy(event_));
    LOCKSTEP_CUDA_NOEXCEPT(cudaStreamDestroy(side_));
    LOCKSTEP_CUDA_NOEXCEPT(cudaStreamDestroy(stream_));
    if (executable_ != nullptr) LOCKSTEP_CUDA_NOEXCEPT(cudaGraphExecDestroy(executable_));
  }

  void begin() { LOCKSTEP_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal)); }
  /// Returns the number of nodes.
  std::size_t end() {
    cudaGraph_t graph = nullptr;
    std::size_t nodes = 0;
    LOCKSTEP_CUDA(cudaStreamEndCapture(stream_, &graph));
    LOCKSTEP_CUDA(cudaGraphGetNodes(graph, nullptr, &nodes));
    LOCKSTEP_CUDA(cudaGraphInstantiate(&executable_, graph, cudaGraphInstantiateFlagUseNodePriority));
    LOCKSTEP_CUDA(cudaGraphDestroy(graph));
    return nodes;
  }
  /// Ends a capture during which a call was refused.
  void expect_invalid() {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph, nullptr);
  }
  void replay() { LOCKSTEP_CUDA(cudaGraphLaunch(executable_, stream_)); }

  /// Makes later work of `to` run after the work that `from` has queued.
  void order(cudaStream_t from, cudaStream_t to) {
    LOCKSTEP_CUDA(cudaEventRecord(event_, from));
    LOCKSTEP_CUDA(cudaStreamWaitEvent(to, event_));
  }

  cudaStream_t stream_ = nullptr, side_ = nullptr;
  cudaEvent_t event_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

__global__ void append_kernel(int digit, int* number) {
  *number = *number * 10 + digit;
}

TEST_F(GraphTest, ReplaysFrozenArgumentsOnCurrentMemory) {
  const DeviceArray<int> number(1, 0);
  int digit = 1, host = 5;
  begin();
  LOCKSTEP_CUDA(cudaMemcpyAsync(number.data(), &host, 4, cudaMemcpyHostToDevice, stream_));
  launch(stream_, {1, 1}, append_kernel, digit, number.data());
  digit = 2;
  launch(stream_, {1, 1}, append_kernel, digit, number.data());
  digit = 9;  // NOLINT(clang-analyzer-deadcode.DeadStores): nobody may read it
  EXPECT_EQ(end(), 3U);
  EXPECT_EQ(number[0], 0) << "capturing ran something";
  replay();
  EXPECT_EQ(number[0], 512);
  host = 7;
  replay();
  EXPECT_EQ(number[0], 712);
}

TEST_F(GraphTest, AnotherStreamJoinsThroughEvents) {
  const DeviceArray<int> number(1, 0);
  begin();
  launch(stream_, {1, 1}, append_kernel, 1, number.data());
  order(stream_, side_);
  launch(side_, {1, 1}, append_kernel, 2, number.data());
  order(side_, stream_);
  launch(stream_, {1, 1}, append_kernel, 3, number.data());
  EXPECT_EQ(end(), 3U);
  for (unsigned seed = 0; seed < 10; ++seed) {
    set_thread_order(seed);
    number[0] = 0;
    replay();
    EXPECT_EQ(number[0], 123) << "order " << seed;
  }
  launch(side_, {1, 1}, append_kernel, 4, number.data());
  EXPECT_EQ(number[0], 1234) << "after the capture the other stream runs again";
}

TEST_F(GraphTest, AForgottenWaitShowsInSomeOrder) {
  const DeviceArray<int> number(1, 0);
  begin();
  order(stream_, side_);
  launch(side_, {1, 1}, append_kernel, 1, number.data());
  launch(stream_, {1, 1}, append_kernel, 2, number.data());  // must wait for the other, but does not
  order(side_, stream_);
  end();
  const auto results = results_of_ten_orders([&] {
    number[0] = 0;
    replay();
    return number[0];
  });
  EXPECT_EQ(results, (std::set<int>{12, 21}));
}

TEST_F(GraphTest, CallsThatMakeNoSenseWhileCapturingInvalidateTheCapture) {
  const std::pair<std::function<cudaError_t()>, cudaError_t> calls[] = {
      {[&] { return cudaStreamSynchronize(stream_); }, cudaErrorStreamCaptureUnsupported},
      {[&] { return cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal); },
       cudaErrorStreamCaptureUnsupported},
      {[&] { return cudaStreamWaitEvent(stream_, event_); }, cudaErrorStreamCaptureIsolation},
      {[&] { return cudaEventRecord(event_, stream_), cudaEventQuery(event_); }, cudaErrorCapturedEvent},
  };
  for (const auto& [call, status] : calls) {
    SCOPED_TRACE(cudaGetErrorName(status));
    LOCKSTEP_CUDA(cudaEventRecord(event_, side_));
    begin();
    EXPECT_EQ(call(), status);
    expect_invalid();
  }
}

TEST_F(GraphTest, CapturesDoNotMerge) {
  begin();
  LOCKSTEP_CUDA(cudaStreamBeginCapture(side_, cudaStreamCaptureModeThreadLocal));
  LOCKSTEP_CUDA(cudaEventRecord(event_, side_));
  EXPECT_EQ(cudaStreamWaitEvent(stream_, event_), cudaErrorStreamCaptureMerge);
  expect_invalid();
  cudaGraph_t graph = nullptr;
  LOCKSTEP_CUDA(cudaStreamEndCapture(side_, &graph));
  LOCKSTEP_CUDA(cudaGraphDestroy(graph));
}

TEST_F(GraphTest, WhatIsNoCaptureNeitherBeginsNorEnds) {
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeThreadLocal),
            cudaErrorStreamCaptureUnsupported);
  int anything = 0;
  auto* graph = reinterpret_cast<cudaGraph_t>(&anything);
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorInvalidValue);
  EXPECT_EQ(graph, nullptr);
}

TEST_F(GraphTest, OnlyTheNumberOfNodesIsToldAndUnknownFlagsAreRefused) {
  begin();
  cudaGraph_t graph = nullptr;
  LOCKSTEP_CUDA(cudaStreamEndCapture(stream_, &graph));
  std::size_t count = 1;
  int nodes = 0;
  EXPECT_EQ(cudaGraphGetNodes(graph, &nodes, &count), cudaErrorInvalidValue);
  EXPECT_EQ(count, 1U);
  EXPECT_EQ(cudaGraphInstantiate(&executable_, graph, 16), cudaErrorInvalidValue);
  LOCKSTEP_CUDA(cudaGraphDestroy(graph));
}

TEST_F(GraphTest, AnEventOfACaptureThatIsOverTellsNothing) {
  begin();
  LOCKSTEP_CUDA(cudaEventRecord(event_, stream_));
  end();
  EXPECT_EQ(cudaEventQuery(event_), cudaErrorCapturedEvent);
}

TEST_F(GraphTest, OnlyTheStreamAndTheThreadThatBeganEndTheCapture) {
  begin();
  order(stream_, side_);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(side_, &graph), cudaErrorStreamCaptureUnmatched);
  std::thread([&] {
    const DeviceArray<int> number(1, 0);  // refused in the thread that captures
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureWrongThread);
  }).join();
  EXPECT_EQ(end(), 0U);
}

/// Calls that no graph can hold, though they touch nothing that is captured.
TEST_F(GraphTest, UnsafeCallsAreRefusedWhileTheThreadCaptures) {
  void *memory = nullptr, *pinned = nullptr, *none = nullptr;
  LOCKSTEP_CUDA(cudaMalloc(&memory, 4));
  LOCKSTEP_CUDA(cudaHostAlloc(&pinned, 4, cudaHostAllocPortable));
  LOCKSTEP_CUDA(cudaEventRecord(event_, side_));
  const std::pair<const char*, std::function<cudaError_t()>> calls[] = {
      {"cudaMalloc", [&] { return cudaMalloc(&none, 4); }},
      {"cudaFree", [&] { return cudaFree(memory); }},
      {"cudaHostAlloc", [&] { return cudaHostAlloc(&none, 4, cudaHostAllocPortable); }},
      {"cudaFreeHost", [&] { return cudaFreeHost(pinned); }},
      {"cudaStreamSynchronize", [&] { return cudaStreamSynchronize(side_); }},
      {"cudaEventQuery", [&] { return cudaEventQuery(event_); }},
  };
  for (const auto& [name, call] : calls) {
    SCOPED_TRACE(name);
    begin();
    EXPECT_EQ(call(), cudaErrorStreamCaptureUnsupported);
    expect_invalid();
  }
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(cudaFree(memory), cudaSuccess) << "no capture is left";
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST_F(GraphTest, AStreamIsNotDestroyedBeforeItEndsItsCapture) {
  begin();
  order(stream_, side_);
  EXPECT_EQ(cudaStreamDestroy(stream_), cudaErrorStreamCaptureUnsupported);
  expect_invalid();
}

TEST_F(GraphTest, EventsMeasureTime) {
  cudaEvent_t start = nullptr, stop = nullptr;
  LOCKSTEP_CUDA(cudaEventCreateWithFlags(&start, cudaEventDefault));
  LOCKSTEP_CUDA(cudaEventCreateWithFlags(&stop, cudaEventDefault));
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, stop), cudaErrorInvalidResourceHandle);
  LOCKSTEP_CUDA(cudaEventRecord(start, stream_));
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, stop), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, stop, start), cudaErrorInvalidResourceHandle);
  LOCKSTEP_CUDA(cudaEventRecord(stop, stream_));
  LOCKSTEP_CUDA(cudaEventRecord(event_, stream_));
  LOCKSTEP_CUDA(cudaEventElapsedTime(&milliseconds, start, stop));
  EXPECT_GE(milliseconds, 0.0F);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, event_), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, event_, stop), cudaErrorInvalidResourceHandle) << "not timed";
  LOCKSTEP_CUDA(cudaEventDestroy(stop));
  LOCKSTEP_CUDA(cudaEventDestroy(start));
}

}  // namespace
}  // namespace lockstep::emulated
