// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Benchmarks of kernels on Google Benchmark: the ops of a CPU, and those of a GPU beside cuDNN and cuBLAS.
///
///   kernels_bench --benchmark_filter=REGEX                              names: cpu/OP, cuda/NETWORK OP
///     --benchmark_repetitions=15 --benchmark_report_aggregates_only     medians of 15 turns
#pragma once

#include "kernels/device.hpp"
#include "kernels/device_buffer.hpp"
#include "kernels/device_ops.hpp"
#include "kernels/platform.hpp"
#include "kernels/vendor/vendor.hpp"
#include "models/network.hpp"
#include "tests/support/prelude.hpp"

#include <benchmark/benchmark.h>

namespace lockstep::bench {

/// Sets the counters GFLOP/s, if there are products, and GB/s. @param seconds  of one call
void count_work(benchmark::State& state, double flops, double bytes, double seconds);

/// Ends this benchmark without a time, and the program with 1.
void fail(benchmark::State& state, const std::string& why);

void register_cpu_kernels();

/// A GPU, or the emulator, and who makes the vendor's ops on it.
struct GpuUnderTest {
  const Platform& platform;
  std::function<std::unique_ptr<VendorOps>(Device&, VendorAlgorithms)> make_vendor;
};

/// Without a GPU, or without the vendor's libraries, the context of the results says why.
/// @returns what the benchmarks use, for as long as they run
[[nodiscard]] std::shared_ptr<void> register_gpu_kernels(const GpuUnderTest& gpu);

/// The program. Returns its exit code: 1 where native and vendor ops differ, or where no benchmark has such a name.
int run_benchmarks(int argc, char** argv, const GpuUnderTest& gpu);

// An op of a GPU: its memory, and the calls of all contenders.

/// Activations twice: [feature][sample], which native ops use, and [sample][feature] for the vendor's.
template <typename T>
struct BothLayouts {
  T *native, *vendor;
  T* operator()(const DeviceOps& ops) const { return ops.batch_innermost() ? native : vendor; }
};

/// Device memory that is given back all at once, filled with numbers that are the same each time.
class GpuMemory {
 public:
  GpuMemory(Device& device, Stream& stream, int batch) : device_(device), stream_(stream), batch_(batch) {}
  int batch() const { return batch_; }
  /// Bytes that a call reads and writes, in one layout.
  double bytes_of_call() const { return bytes_of_call_; }

  /// @param passes  in which a call goes through them: 2 if it reads and writes them, 0 for scratch
  BothLayouts<float> floats(int features, int passes = 1);
  /// The gradient of an image, which is 0 where the pool after it has no window.
  BothLayouts<float> gradient(const ImageShape& image, int pool);
  float* weights(std::size_t size, int passes = 1);
  /// Pixels, masks or argmax, each less than `below`.
  BothLayouts<std::uint8_t> bytes(int features, unsigned below);
  /// Zeros, which a call reads and writes.
  BothLayouts<std::int64_t> sums(std::size_t size);
  std::int32_t* labels(int classes);
  StepState* state();
  template <typename T>
  T* scratch(const std::vector<T>& values);

  /// The numbers that these ops left there, as [feature][sample].
  template <typename T>
  std::vector<double> read(const DeviceOps& ops, const BothLayouts<T>& tensor, int features, int samples);

 private:
  template <typename T>
  BothLayouts<T> both_layouts(const std::vector<T>& values);

  Device& device_;
  Stream& stream_;
  int batch_;
  double bytes_of_call_ = 0;
  std::deque<DeviceBuffer<std::byte>> buffers_;
};

struct GpuCalls {
  std::function<void(DeviceOps&, Stream&)> op;
  /// Reads what the op wrote; empty: the vendor has no such op.
  std::function<std::vector<double>(const DeviceOps&)> result = {};
  /// A library's call without bias, epilogue and exact sums; empty: there is none.
  std::function<void(VendorOps&, Stream&)> alone = {};
  /// Queued before each call of an op that destroys its input.
  std::function<void(Stream&)> restore = {};
};

struct GpuCase {
  std::string name;                          ///< "net conv2 forward"
  double flops = 0;                          ///< multiplications and additions of a call
  std::function<GpuCalls(GpuMemory&)> make;  ///< the memory outlives the calls
};

/// The ops of a training step in their order; after them the parts that are fused in training.
std::vector<GpuCase> gpu_cases(const Network& network, int batch);

}  // namespace lockstep::bench
