// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A capture is instantiated and uploaded once, then launched as often as wanted.
#include "common/error.hpp"
#include "kernels/cuda/kernels.hpp"

#include <memory>
#include <type_traits>

namespace lockstep::LOCKSTEP_GPU {

namespace {

struct DestroyCaptured {
  void operator()(cudaGraph_t graph) const noexcept { LOCKSTEP_CUDA_NOEXCEPT(cudaGraphDestroy(graph)); }
};
using CapturedGraph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyCaptured>;

/// A captured series of operations in the form that the CUDA runtime launches.
class GpuGraph final : public Graph {
 public:
  /// Takes ownership of what was captured, and queues the graph's transfer to the device. So its first launch
  /// costs no more than the others.
  GpuGraph(cudaGraph_t captured, cudaStream_t stream) {
    const CapturedGraph owner(captured);
    LOCKSTEP_CUDA(cudaGraphGetNodes(captured, nullptr, &nodes_));
    // Else all nodes would run at the launching stream's priority, not at those of the streams they came from.
    LOCKSTEP_CUDA(cudaGraphInstantiate(&handle_, captured, cudaGraphInstantiateFlagUseNodePriority));
    const cudaError_t uploaded = cudaGraphUpload(handle_, stream);
    if (uploaded != cudaSuccess) LOCKSTEP_CUDA_NOEXCEPT(cudaGraphExecDestroy(handle_));
    LOCKSTEP_CUDA(uploaded);
  }
  ~GpuGraph() override { LOCKSTEP_CUDA_NOEXCEPT(cudaGraphExecDestroy(handle_)); }
  GpuGraph(const GpuGraph&) = delete;
  GpuGraph& operator=(const GpuGraph&) = delete;

  std::size_t nodes() const override { return nodes_; }
  void launch(cudaStream_t stream) { LOCKSTEP_CUDA(cudaGraphLaunch(handle_, stream)); }

 private:
  cudaGraphExec_t handle_ = nullptr;
  std::size_t nodes_ = 0;
};

// Queues, events and captures; a capture restricts only the thread that makes it.

class GpuEvent final : public Event {
 public:
  GpuEvent(int device, Device::Timing timing) : device_(device) {
    LOCKSTEP_CUDA(cudaSetDevice(device_));
    const unsigned flags = timing == Device::Timing::kOn ? cudaEventDefault : cudaEventDisableTiming;
    LOCKSTEP_CUDA(cudaEventCreateWithFlags(&handle_, flags));
  }
  ~GpuEvent() override { LOCKSTEP_CUDA_NOEXCEPT(cudaEventDestroy(handle_)); }
  GpuEvent(const GpuEvent&) = delete;
  GpuEvent& operator=(const GpuEvent&) = delete;

  cudaEvent_t handle() const { return handle_; }

  bool done() override {
    LOCKSTEP_CUDA(cudaSetDevice(device_));
    const cudaError_t status = cudaEventQuery(handle_);
    if (status == cudaErrorNotReady) {
      static_cast<void>(cudaGetLastError());
      return false;
    }
    LOCKSTEP_CUDA(status);
    return true;
  }

  double seconds_since(const Event& start) const override {
    float milliseconds = 0;
    LOCKSTEP_CUDA(cudaSetDevice(device_));
    LOCKSTEP_CUDA(cudaEventElapsedTime(&milliseconds, static_cast<const GpuEvent&>(start).handle(), handle_));
    return static_cast<double>(milliseconds) / 1000;
  }

 private:
  int device_;
  cudaEvent_t handle_ = nullptr;
};

/// CUDA counts from the lowest priority down to the highest, which is a negative number.
int cuda_priority(Device::Priority priority) {
  int lowest = 0, highest = 0;
  LOCKSTEP_CUDA(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
  return priority == Device::Priority::kHigh ? highest : lowest;
}

class GpuStream final : public Stream {
 public:
  GpuStream(int device, Device::Priority priority) : device_(device) {
    LOCKSTEP_CUDA(cudaSetDevice(device_));
    LOCKSTEP_CUDA(cudaStreamCreateWithPriority(&handle_, cudaStreamNonBlocking, cuda_priority(priority)));
  }
  ~GpuStream() override {
    if (capturing_) {  // an exception in the middle of a capture leaves it open
      cudaGraph_t captured = nullptr;
      static_cast<void>(cudaStreamEndCapture(handle_, &captured));
      static_cast<void>(cudaGetLastError());
      const CapturedGraph owner(captured);
    }
    LOCKSTEP_CUDA_NOEXCEPT(cudaStreamDestroy(handle_));
  }
  GpuStream(const GpuStream&) = delete;
  GpuStream& operator=(const GpuStream&) = delete;

  void* native_handle() const override { return handle_; }

  void copy_to_device(void* device, const void* host, std::size_t bytes) override {
    copy(device, host, bytes, cudaMemcpyHostToDevice);
  }
  void copy_to_host(void* host, const void* device, std::size_t bytes) override {
    copy(host, device, bytes, cudaMemcpyDeviceToHost);
  }
  void copy_on_device(void* to, const void* from, std::size_t bytes) override {
    copy(to, from, bytes, cudaMemcpyDeviceToDevice);
  }
  void fill_zero(void* device, std::size_t bytes) override {
    if (bytes == 0) return;
    use_device();
    LOCKSTEP_CUDA(cudaMemsetAsync(device, 0, bytes, handle_));
  }

  void record(Event& event) override {
    use_device();
    LOCKSTEP_CUDA(cudaEventRecord(static_cast<GpuEvent&>(event).handle(), handle_));
  }
  void wait(const Event& event) override {
    use_device();
    LOCKSTEP_CUDA(cudaStreamWaitEvent(handle_, static_cast<const GpuEvent&>(event).handle(), 0));
  }
  void synchronize() override {
    use_device();
    LOCKSTEP_CUDA(cudaStreamSynchronize(handle_));
  }

  /// Only this thread's calls are restricted meanwhile: other ranks may be threads of this process.
  void begin_capture() override {
    use_device();
    LOCKSTEP_CUDA(cudaStreamBeginCapture(handle_, cudaStreamCaptureModeThreadLocal));
    capturing_ = true;
  }
  std::unique_ptr<Graph> end_capture() override {
    LOCKSTEP_CHECK(capturing_);
    capturing_ = false;
    cudaGraph_t captured = nullptr;
    LOCKSTEP_CUDA(cudaStreamEndCapture(handle_, &captured));
    return std::make_unique<GpuGraph>(captured, handle_);
  }
  void launch(Graph& graph) override {
    use_device();
    static_cast<GpuGraph&>(graph).launch(handle_);
  }

 private:
  void use_device() const { LOCKSTEP_CUDA(cudaSetDevice(device_)); }

  void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    if (bytes == 0) return;
    use_device();
    LOCKSTEP_CUDA(cudaMemcpyAsync(to, from, bytes, kind, handle_));
  }

  int device_;
  cudaStream_t handle_ = nullptr;
  bool capturing_ = false;
};

}  // namespace

std::unique_ptr<Stream> make_stream(int device, Device::Priority priority) {
  return std::make_unique<GpuStream>(device, priority);
}

std::unique_ptr<Event> make_event(int device, Device::Timing timing) {
  return std::make_unique<GpuEvent>(device, timing);
}

}  // namespace lockstep::LOCKSTEP_GPU
