// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Times calls whose input is in the L2 cache, as in training, by the GPU's own clock, in turns.
#include "common/error.hpp"
#include "tests/bench/kernels/bench.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::bench {
namespace {

/// Many calls in one graph between two events, so that neither the host nor launches of single kernels are timed.
class GraphTimer {
 public:
  using Queue = std::function<void(Stream&)>;

  /// @param calls  in the graph, which a turn launches `launches` times
  GraphTimer(Device& device, Stream& stream, const Queue& queue, int calls, int launches)
      : stream_(stream),
        calls_(calls),
        launches_(launches),
        start_(device.make_event(Device::Timing::kOn)),
        end_(device.make_event(Device::Timing::kOn)) {
    queue(stream);  // loads kernels, lets libraries choose and allocate
    stream.synchronize();
    stream.begin_capture();
    for (int call = 0; call < calls; ++call) queue(stream);
    graph_ = stream.end_capture();
  }

  /// Seconds of one call, averaged over a turn. Blocks until that is done.
  double seconds() {
    stream_.launch(*graph_);  // keeps the device busy while the host queues the rest
    stream_.record(*start_);
    for (int i = 0; i < launches_; ++i) stream_.launch(*graph_);
    stream_.record(*end_);
    stream_.synchronize();
    return end_->seconds_since(*start_) / (double{1} * calls_ * launches_);
  }

 private:
  Stream& stream_;
  int calls_, launches_;
  std::unique_ptr<Graph> graph_;
  std::unique_ptr<Event> start_, end_;
};

/// Source of the units of a multiprocessor: CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions".
double nominal_flops_per_second(const DeviceProperties& gpu) {
  const bool has_half = gpu.compute_major == 7 || (gpu.compute_major == 8 && gpu.compute_minor == 0);
  return 2.0 * (has_half ? 64 : 128) * gpu.multiprocessors * gpu.clock_mhz * 1e6;
}

/// The largest, relative to the largest number.
double difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0, error = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i] - b[i])) return INFINITY;
    largest = std::max(largest, std::abs(a[i]));
    error = std::max(error, std::abs(a[i] - b[i]));
  }
  return error / largest;
}

class GpuBench {
 public:
  explicit GpuBench(const GpuUnderTest& gpu)
      : device_(gpu.platform.make_device(0)),
        is_emulated_(device_->kind() == "emulated"),
        stream_(device_->make_stream()),
        native_(gpu.platform.make_ops(*device_)) {
    benchmark::AddCustomContext("gpu", device_->properties().name);
    try {
      vendor_ = gpu.make_vendor(*device_, VendorAlgorithms::kReproducible);
      fastest_ = gpu.make_vendor(*device_, VendorAlgorithms::kFastest);
    } catch (const DeviceError& error) {
      vendor_.reset();
      benchmark::AddCustomContext("without_vendor", error.what());
    }
    measure_limits();
    const std::pair<const char*, int> models[] = {{"net", 64},
                                                  {"lenet", 256}};  // the project's goals are about these
    for (const auto& [model, batch] : models) add_cases(model, is_emulated_ ? 2 : batch);
  }

 private:
  enum { kNative, kVendor, kAlone, kRestore, kTimers };

  void add_cases(const char* model, int batch) {
    for (GpuCase& c : gpu_cases(Network::load(model, {1, 28, 28}, 10), batch)) {
      const std::string name = std::string(device_->kind()) + "/" + c.name;
      benchmark::RegisterBenchmark(name.c_str(), [=, this](benchmark::State& state) { run(state, c, batch); })
          ->UseManualTime()
          ->Iterations(1)
          ->Unit(benchmark::kMicrosecond);
    }
  }

  /// A turn of each contender. What they need is made for the first of several.
  void run(benchmark::State& state, const GpuCase& c, int batch) {
    if (c.name != prepared_) prepare(c, batch);
    if (!(difference_ <= kTolerance)) {
      fail(state, fmt::format("native and vendor ops differ by {:.1e} of the largest number", difference_));
      return;
    }
    std::array<double, kTimers> seconds{};
    while (state.KeepRunning()) {
      for (int i = 0; i < kTimers; ++i) seconds[i] = timers_[i] ? timers_[i]->seconds() : 0;
      seconds[kNative] = std::max(seconds[kNative] - seconds[kRestore], 1e-9);
      state.SetIterationTime(seconds[kNative]);
    }
    const double bytes = memory_->bytes_of_call();
    count_work(state, c.flops, bytes, seconds[kNative]);
    state.counters["limit_us"] =
        1e6 * (launch_seconds_ + std::max(c.flops / flops_per_second_, bytes / bytes_per_second_));
    for (const auto& [rival, name] : {std::pair{kVendor, "vendor"}, std::pair{kAlone, "alone"}}) {
      if (!timers_[rival]) continue;
      state.counters[fmt::format("{}_us", name)] = 1e6 * seconds[rival];
      state.counters[fmt::format("{}_ratio", name)] = seconds[rival] / seconds[kNative];
    }
  }

  void prepare(const GpuCase& c, int batch) {
    for (auto& timer : timers_) timer.reset();
    memory_.emplace(*device_, *stream_, batch);
    calls_ = c.make(*memory_);
    compare();
    time(kNative, [this](Stream& stream) { queue_op(*native_, stream); });
    if (vendor_ && calls_.result) time(kVendor, [this](Stream& stream) { queue_op(*vendor_, stream); });
    if (vendor_ && calls_.alone) time(kAlone, [this](Stream& stream) { calls_.alone(*fastest_, stream); });
    if (calls_.restore) time(kRestore, [this](Stream& stream) { calls_.restore(stream); });
    prepared_ = c.name;
  }

  void queue_op(DeviceOps& ops, Stream& stream) {
    if (calls_.restore) calls_.restore(stream);
    calls_.op(ops, stream);
  }

  /// The first call of both contenders.
  void compare() {
    difference_ = 0;
    if (!vendor_ || !calls_.result) return;
    queue_op(*native_, *stream_);
    queue_op(*vendor_, *stream_);
    difference_ = difference(calls_.result(*native_), calls_.result(*vendor_));
  }

  void time(int contender, const GraphTimer::Queue& queue) {
    timers_[contender].emplace(*device_, *stream_, queue, is_emulated_ ? 1 : 32, is_emulated_ ? 1 : 4);
  }

  /// The nominal rate of arithmetic, that of copies which stay within the L2 cache, and the smallest kernel there is.
  void measure_limits() {
    const std::size_t size =
        is_emulated_ ? 64 : std::max<std::size_t>(device_->properties().l2_bytes, 1 << 20) / 32;
    GpuMemory memory(*device_, *stream_, 1);
    float *from = memory.weights(size), *to = memory.weights(size);
    const std::int64_t* sum = memory.sums(1).native;
    time(kNative, [=](Stream& stream) { stream.copy_on_device(to, from, size * sizeof(float)); });
    time(kVendor, [=, this](Stream& stream) { native_->exact_to_fp32(stream, 1, sum, nullptr, to); });
    const auto least = [](GraphTimer& timer) {
      double seconds = timer.seconds();
      for (int turn = 1; turn < 15; ++turn) seconds = std::min(seconds, timer.seconds());
      return seconds;
    };
    flops_per_second_ = nominal_flops_per_second(device_->properties());
    bytes_per_second_ = 2 * static_cast<double>(size * sizeof(float)) / least(*timers_[kNative]);
    launch_seconds_ = least(*timers_[kVendor]);
  }

  static constexpr double kTolerance = 1e-4;  ///< allows for sums of up to 75,000 products in fp32

  std::unique_ptr<Device> device_;
  bool is_emulated_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<DeviceOps> native_;
  std::unique_ptr<VendorOps> vendor_, fastest_;
  double flops_per_second_ = 0, bytes_per_second_ = 0, launch_seconds_ = 0;
  std::string prepared_;  ///< the case that memory and calls are made for
  std::optional<GpuMemory> memory_;
  GpuCalls calls_;
  double difference_ = 0;
  std::array<std::optional<GraphTimer>, kTimers> timers_;
};

}  // namespace

std::shared_ptr<void> register_gpu_kernels(const GpuUnderTest& gpu) {
  try {
    return std::make_shared<GpuBench>(gpu);
  } catch (const DeviceError& error) {
    benchmark::AddCustomContext("without_gpu", error.what());
    return nullptr;
  }
}

}  // namespace lockstep::bench
