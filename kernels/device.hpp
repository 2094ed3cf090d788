// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A GPU as the rest of the program sees it: memory, streams, events, graphs. No CUDA header is needed to use
/// it. kernels/cuda implements it twice from the same sources: for GPUs, and for the emulator.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep {

/// A GPU's properties. Bytes, MHz.
struct DeviceProperties {
  int index = 0;  ///< among the visible ones
  std::string name;
  std::string uuid;     ///< "GPU-8f0c...", unique to the physical device (or to a MIG slice of it)
  std::string pci_bus;  ///< "0000:65:00.0"
  std::size_t total_bytes = 0;
  std::size_t free_bytes = 0;  ///< when the Device was made; 0 from Platform::devices(), which occupies none
  int compute_major = 0, compute_minor = 0;
  int multiprocessors = 0;
  int clock_mhz = 0, memory_clock_mhz = 0;
  int memory_bus_bits = 0;
  std::size_t l2_bytes = 0;
  std::size_t shared_bytes_per_block = 0;      ///< without asking for more
  std::size_t max_shared_bytes_per_block = 0;  ///< after asking
};

/// Memory of a device that is in use. Bytes.
struct DeviceMemoryUse {
  std::size_t allocated = 0;       ///< now, by Device::allocate()
  std::size_t most_allocated = 0;  ///< at once so far
  /// No longer free since the Device was made. It is what was allocated, rounded up as the driver does it, and what
  /// libraries took; also what others took who use this device.
  std::size_t reserved = 0;
};

/// A mark in a stream.
class Event {
 public:
  virtual ~Event() = default;
  /// True when all work queued before the last record() is done. @throws DeviceError if that work failed
  virtual bool done() = 0;
  /// From `start` to this event, both done and made with timing.
  virtual double seconds_since(const Event& start) const = 0;
};

/// A captured series of operations, ready to be launched again.
class Graph {
 public:
  virtual ~Graph() = default;
  virtual std::size_t nodes() const = 0;
};

/// A queue of work: operations of one stream run in order, those of two streams as events order them. Calls
/// return at once unless they say so. While capturing, operations are recorded instead of run.
class Stream {
 public:
  virtual ~Stream() = default;
  /// cudaStream_t, for kernels, NCCL and libraries.
  virtual void* native_handle() const = 0;

  /// Asynchronous where the host memory is pinned; then it must stay untouched until the copy is done.
  virtual void copy_to_device(void* device, const void* host, std::size_t bytes) = 0;
  virtual void copy_to_host(void* host, const void* device, std::size_t bytes) = 0;
  virtual void copy_on_device(void* to, const void* from, std::size_t bytes) = 0;
  virtual void fill_zero(void* device, std::size_t bytes) = 0;

  virtual void record(Event& event) = 0;
  /// Later work of this stream runs after the event's. During capture this is how a second stream joins in.
  virtual void wait(const Event& event) = 0;
  /// Blocks until all work queued so far is done. Not for work that other ranks take part in: that may never
  /// end; poll an Event with a deadline.
  virtual void synchronize() = 0;

  virtual void begin_capture() = 0;
  virtual std::unique_ptr<Graph> end_capture() = 0;
  virtual void launch(Graph& graph) = 0;
};

/// One GPU, used by one rank. Every call makes it the calling thread's current device first. Must outlive all
/// that it made. Errors throw DeviceError (cannot be used) or InternalError (a call that should not fail
/// did).
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceProperties& properties() const = 0;
  /// "cuda" or "emulated".
  virtual std::string_view kind() const = 0;

  /// Contents unspecified, aligned to 256 bytes. @throws DeviceError naming wanted and free bytes
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void free(void* memory) noexcept = 0;
  virtual DeviceMemoryUse memory_use() const { return {}; }
  /// Host memory that copies reach without staging.
  virtual void* allocate_pinned(std::size_t bytes) = 0;
  virtual void free_pinned(void* memory) noexcept = 0;

  /// Work of kHigh starts before waiting work of kNormal. Never waits for the legacy default stream.
  enum class Priority { kNormal, kHigh };
  virtual std::unique_ptr<Stream> make_stream(Priority priority = Priority::kNormal) = 0;
  enum class Timing { kOff, kOn };
  virtual std::unique_ptr<Event> make_event(Timing timing = Timing::kOff) = 0;
};

}  // namespace lockstep
