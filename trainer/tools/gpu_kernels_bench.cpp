// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Inputs that are found in the L2 cache as in training, timed by the GPU's own clock.
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/output.hpp"
#include "trainer/tools/bench.hpp"
#include "trainer/tools/kernel_cases.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace lockstep::bench {
namespace {

/// How much is measured at once.
struct Effort {
  int calls = 32;     ///< in a graph
  int launches = 4;   ///< of it in a turn
  int max_sets = 16;  ///< of inputs and outputs
  int rounds = 15;
};

Effort effort_for(const GpuKernelsOptions& options) {
  if (options.device == "cuda") return {.rounds = options.rounds};
  return {.calls = 1, .launches = 1, .max_sets = 1, .rounds = 1};
}

/// The device and those who compete on it.
class GpuBench {
 public:
  explicit GpuBench(const GpuKernelsOptions& options)
      : platform_(options.device == "cuda" ? cuda::platform() : emulated::platform()),
        effort_(effort_for(options)),
        device_(platform_.make_device(0)),
        stream_(device_->make_stream()),
        native_(platform_.make_ops(*device_)) {
    try {
      vendor_ = make_vendor_ops(*device_);
      fastest_ = make_vendor_ops(*device_, VendorAlgorithms::kFastest);
    } catch (const DeviceError& error) {
      vendor_.reset();
      without_vendor_ = error.what();
    }
  }

  const DeviceProperties& properties() const { return device_->properties(); }
  int rounds() const { return effort_.rounds; }
  /// Why there are no vendor kernels; empty if there are.
  const std::string& without_vendor() const { return without_vendor_; }

  KernelTimes measure(const KernelCase& kernel, int grain) {
    BenchMemory memory(*device_, *stream_);
    const ComparedOps compared{*native_, vendor_.get(), fastest_.get()};
    return times_of(make_comparison(kernel, grain, sets_for(kernel), compared, memory));
  }

  /// Copies that stay within the L2 cache, and the smallest kernel there is.
  GpuLimits measure_limits() {
    BenchMemory memory(*device_, *stream_);
    const std::size_t size =
        effort_.max_sets > 1 ? std::max<std::size_t>(properties().l2_bytes, 1 << 20) / 32 : 64;
    float* from = memory.floats(size);
    float* to = memory.floats(size);
    const std::int64_t* sum = memory.integers(1);
    const auto medians = medians_of(
        {[=](Stream& stream, int) { stream.copy_on_device(to, from, size * sizeof(float)); },
         [=, ops = native_.get()](Stream& stream, int) { ops->exact_to_fp32(stream, 1, sum, nullptr, to); }});
    return {.flops_per_second = nominal_flops_per_second(properties()),
            .bytes_per_second = 2 * static_cast<double>(size * sizeof(float)) / *medians[0],
            .launch_seconds = *medians[1]};
  }

  /// Sets of inputs and outputs that fill half of the L2 cache: a call finds its input there, as in training,
  /// where another op has just written it, but not in the L1 caches.
  int sets_for(const KernelCase& kernel) const {
    const double fit = static_cast<double>(properties().l2_bytes) / 2 / kernel.bytes;
    return std::clamp(static_cast<int>(std::min(fit, 1e6)), 1, effort_.max_sets);
  }

 private:
  KernelTimes times_of(const KernelComparison& comparison) {
    const auto seconds =
        medians_of({after_restoring(comparison, comparison.native),
                    after_restoring(comparison, comparison.vendor), comparison.library, comparison.restore});
    const double restoring = seconds[3].value_or(0);
    KernelTimes times{*seconds[0] - restoring, seconds[1], seconds[2]};
    if (times.vendor) *times.vendor -= restoring;
    return times;
  }

  static QueueCall after_restoring(const KernelComparison& comparison, const QueueCall& queue) {
    if (!comparison.restore || !queue) return queue;
    return [&comparison, &queue](Stream& stream, int call) {
      comparison.restore(stream, call);
      queue(stream, call);
    };
  }

  /// Seconds of a call of each candidate, which take turns. Nothing for an empty one.
  std::vector<std::optional<double>> medians_of(const std::vector<QueueCall>& candidates) {
    std::vector<std::optional<GraphTimer>> timers(candidates.size());
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (candidates[i]) {
        timers[i].emplace(*device_, *stream_, candidates[i], effort_.calls, effort_.launches);
      }
    }
    std::vector<std::vector<double>> seconds(candidates.size());
    for (int round = 0; round < effort_.rounds; ++round) {
      for (std::size_t i = 0; i < timers.size(); ++i) {
        if (timers[i]) seconds[i].push_back(timers[i]->seconds());
      }
    }
    std::vector<std::optional<double>> medians;
    for (auto& series : seconds) {
      medians.push_back(series.empty() ? std::nullopt : std::optional(median(std::move(series))));
    }
    return medians;
  }

  const Platform& platform_;
  Effort effort_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<DeviceOps> native_;
  std::unique_ptr<VendorOps> vendor_, fastest_;
  std::string without_vendor_;
};

struct Model {
  const char* name;
  int batch;  ///< that the project's goals are about
};
constexpr Model kModels[] = {{"net", 64}, {"lenet", 256}};
constexpr int kEmulatedBatch = 2;

int batch_of(const Model& model, const GpuKernelsOptions& options) {
  return options.batch.value_or(options.device == "cuda" ? model.batch : kEmulatedBatch);
}

std::vector<KernelCase> cases_of(const Model& model, const GpuKernelsOptions& options) {
  const Network network = Network::load(model.name, {1, 28, 28}, 10);
  auto cases = kernel_cases(network, batch_of(model, options));
  std::erase_if(
      cases, [&](const KernelCase& kernel) { return kernel.name.find(options.filter) == std::string::npos; });
  return cases;
}

constexpr char kExplanation[] = R"(
us        device time of a call in a graph of many, median of {3} turns. Calls rotate among as many inputs and outputs
          as half of the L2 cache holds: a call finds its input there, as in training, where another op has just
          written it
limit us  a launch of {0:.2f} us (the smallest kernel) and the longer of arithmetic at the nominal rate and traffic at
          {1:.2f} TB/s (a copy within the {2} MB of L2 cache)
vendor    the same result by cuDNN or cuBLAS with reproducible algorithms; epilogue and exact sums by kernels of ours
alone     one call of the library with its fastest algorithm: no bias, no epilogue, no exact sums
ratio     how many times as long as native: above 1 native is faster
)";

void print_preface(const GpuBench& bench, const GpuLimits& limits, const GpuKernelsOptions& options) {
  const DeviceProperties& properties = bench.properties();
  if (options.device != "cuda") print("This device is emulated: the times mean nothing.\n");
  print("{}, {} multiprocessors, {} MHz: {:.1f} TFLOP/s in fp32, {:.2f} TB/s to memory (nominal)\n",
        properties.name, properties.multiprocessors, properties.clock_mhz, limits.flops_per_second * 1e-12,
        nominal_memory_bytes_per_second(properties) * 1e-12);
  print(kExplanation, limits.launch_seconds * 1e6, limits.bytes_per_second * 1e-12, properties.l2_bytes >> 20,
        bench.rounds());
  if (!bench.without_vendor().empty()) print("\nWithout vendor kernels: {}\n", bench.without_vendor());
}

void print_json(const GpuBench& bench, const std::vector<KernelRow>& rows, const GpuLimits& limits,
                const GpuKernelsOptions& options) {
  const auto number = [](const std::optional<double>& seconds) {
    return seconds ? nlohmann::ordered_json(*seconds) : nlohmann::ordered_json();
  };
  nlohmann::ordered_json ops = nlohmann::ordered_json::array();
  for (const auto& [kernel, times] : rows) {
    ops.push_back({{"op", kernel.name},
                   {"seconds", times.native},
                   {"limit_seconds", limit_seconds(kernel, limits)},
                   {"vendor_seconds", number(times.vendor)},
                   {"library_seconds", number(times.library)},
                   {"flops", kernel.flops},
                   {"bytes", kernel.bytes}});
  }
  const nlohmann::ordered_json object = {{"format", kBenchFormat},
                                         {"bench", "kernels"},
                                         {"device", options.device},
                                         {"name", bench.properties().name},
                                         {"grain", options.grain},
                                         {"peak_flops", limits.flops_per_second},
                                         {"ops", ops}};
  print("{}\n", json_text_in_ascii(object));
}

}  // namespace

void bench_gpu_kernels(const GpuKernelsOptions& options) {
  GpuBench bench(options);
  const GpuLimits limits = bench.measure_limits();
  if (!options.json) print_preface(bench, limits, options);
  std::vector<KernelRow> rows;
  for (const Model& model : kModels) {
    const auto cases = cases_of(model, options);
    if (cases.empty()) continue;
    if (!options.json)
      print("\n{}, batch {}, grain {}\n{}\n", model.name, batch_of(model, options), options.grain,
            table_header());
    for (const KernelCase& kernel : cases) {
      rows.push_back({kernel, bench.measure(kernel, options.grain)});
      if (options.json) continue;
      print("{}\n", table_line(rows.back(), limits));
      std::fflush(stdout);
    }
  }
  if (options.json) return print_json(bench, rows, limits, options);
  if (const auto text = verdict(rows); !text.empty()) print("\n{}\n", text);
}

}  // namespace lockstep::bench
