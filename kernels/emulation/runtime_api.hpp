// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The functions of the CUDA runtime that kernels/cuda calls, for the one emulated device. They do what NVIDIA's manual
/// says, except that work runs when it is queued, and that a fault of a kernel leaves the launch as
/// an InternalError instead of a status.
#pragma once

#include <cstddef>

namespace lockstep::emulation {

// The types and constants of the CUDA runtime that kernels/cuda uses, with CUDA's names and values.

struct StreamState;
struct EventState;
class OperationGraph;

using cudaStream_t = StreamState*;
using cudaEvent_t = EventState*;
using cudaGraph_t = OperationGraph*;
using cudaGraphExec_t = const OperationGraph*;

enum cudaError_t : int {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorStreamCaptureMerge = 902,
  cudaErrorStreamCaptureUnmatched = 903,
  cudaErrorStreamCaptureUnjoined = 904,
  cudaErrorStreamCaptureIsolation = 905,
  cudaErrorCapturedEvent = 907,
  cudaErrorStreamCaptureWrongThread = 908,
};

enum cudaMemcpyKind : int {
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
};

enum cudaDeviceAttr : int {
  cudaDevAttrMaxSharedMemoryPerBlock = 8,
  cudaDevAttrClockRate = 13,
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrMemoryClockRate = 36,
  cudaDevAttrGlobalMemoryBusWidth = 37,
  cudaDevAttrL2CacheSize = 38,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
};

enum cudaDeviceP2PAttr : int {
  cudaDevP2PAttrPerformanceRank = 1,
  cudaDevP2PAttrNativeAtomicSupported = 3,
};

enum cudaStreamCaptureMode : int {
  cudaStreamCaptureModeThreadLocal = 1,
};

enum cudaGraphInstantiateFlags : int {
  cudaGraphInstantiateFlagUseNodePriority = 8,
};

inline constexpr unsigned cudaEventDefault = 0, cudaEventDisableTiming = 2;
inline constexpr unsigned cudaStreamNonBlocking = 1, cudaHostAllocPortable = 1;

struct cudaFuncAttributes {
  int binaryVersion;  ///< 80: compute capability 8.0
};

struct cudaUUID_t {
  char bytes[16];
};

struct cudaDeviceProp {
  char name[256];
  cudaUUID_t uuid;
  std::size_t totalGlobalMem;
};

// Errors. Each OS thread has its last one.
const char* cudaGetErrorName(cudaError_t status);
const char* cudaGetErrorString(cudaError_t status);
cudaError_t cudaGetLastError();

// The device.
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device);
cudaError_t cudaDeviceCanAccessPeer(int* access, int device, int peer);
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int from, int to);
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest);
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void (*kernel)());
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);

// Memory. Not to be allocated or freed by a thread that captures. Copies are refused where a device pointer
// and its bytes do not lie within one allocation.
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total);
cudaError_t cudaMalloc(void** memory, std::size_t bytes);
cudaError_t cudaFree(void* memory);
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void* memory);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream = nullptr);

// Streams and events. A thread that captures may not wait for either, nor ask whether an event is done. A stream ends
// its capture before it is destroyed.
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end);

// Graphs. A call refused during a capture invalidates it, which its end tells. Every stream has the same
// priority, so cudaGraphInstantiateFlagUseNodePriority, the one flag known, changes nothing.
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, void* nodes, std::size_t* count);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long flags = 0);
cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable);

}  // namespace lockstep::emulation
