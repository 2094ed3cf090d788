// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Walks through a network's stages and lists what their kernels are called for.
#include "trainer/tools/kernel_cases.hpp"

#include "models/layer.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::bench {

namespace {

constexpr double kFloat = 4, kByte = 1, kInteger = 8;

std::string text_of(const EpilogueStep& step) {
  switch (step.kind) {
    case EpilogueKind::kRelu:
      return "relu";
    case EpilogueKind::kDropout:
      return step.whole_channels ? "dropout2d" : "dropout";
    case EpilogueKind::kMaxPool:
      return "max_pool";
    case EpilogueKind::kAvgPool:
      return "avg_pool";
  }
  return {};
}

std::string text_of(const Epilogue& epilogue) {
  std::string text;
  for (int i = 0; i < epilogue.count; ++i) text += " " + text_of(epilogue.steps[i]);
  return text;
}

std::string text_of(const ImageShape& image) {
  return fmt::format("{}x{}x{}", image.channels, image.height, image.width);
}

/// Without rows and columns in which the epilogue's pool has no window.
double flops_of(const Stage& stage, int batch) {
  if (stage.head == nullptr) return 0;
  const ImageShape &before = stage.before_epilogue, &output = stage.output;
  const double windows = double{1} * output.height * output.width * stage.epilogue.pool * stage.epilogue.pool;
  return stage.head->flops_per_sample() * batch * windows / (double{1} * before.height * before.width);
}

const EpilogueStep* pool_of(const Epilogue& epilogue) {
  for (int i = 0; i < epilogue.count; ++i) {
    const EpilogueKind kind = epilogue.steps[i].kind;
    if (kind == EpilogueKind::kMaxPool || kind == EpilogueKind::kAvgPool) return &epilogue.steps[i];
  }
  return nullptr;
}

/// Collects the cases of one network.
class Cases {
 public:
  Cases(const Network& network, int batch)
      : network_(network), batch_(batch), stages_(fuse_layers(network)) {}

  std::vector<KernelCase> collect() {
    const double features = network_.input_shape().features();
    add("gather", GatherOp{network_.input_shape().features()}, 0, (kByte + kFloat) * features * batch_);
    for (std::size_t i = 0; i + 1 < stages_.size(); ++i) add_forward(i);
    add_end();
    for (std::size_t i = stages_.size(); i-- > first_trained();) add_backward(i);
    const auto parameters = static_cast<double>(network_.parameters().size);
    add("update", UpdateOp{network_.parameters().size}, 0, (2 * kInteger + 4 * kFloat) * parameters);
    add_parts_of_end();
    for (std::size_t i = 0; i < stages_.size(); ++i) add_parts(i);
    return std::move(cases_);
  }

 private:
  std::size_t first_trained() const {
    std::size_t first = 0;
    while (!stages_[first].trained()) ++first;
    return first;
  }

  void add(const std::string& what, KernelOp op, double flops, double bytes) {
    cases_.push_back({network_.name() + " " + what, std::move(op), batch_, flops, bytes});
  }

  double floats(const ImageShape& image) const { return kFloat * image.features() * batch_; }
  double masks(const Stage& stage) const {
    return stage.epilogue.count > 0 ? kByte * stage.output.features() * batch_ : 0;
  }

  void add_forward(std::size_t i) {
    const Stage& stage = stages_[i];
    if (stage.head == nullptr) return;
    const double bytes = floats(stage.input) + floats(stage.output) + masks(stage) +
                         kFloat * static_cast<double>(stage.parameter_size());
    const std::string epilogue = stage.epilogue.count > 0 ? "," + text_of(stage.epilogue) : "";
    add(stages_[i].name + " forward" + epilogue, ForwardOp{stage}, flops_of(stage, batch_), bytes);
  }

  /// The last stage and the loss.
  void add_end() {
    const std::size_t i = stages_.size() - 1;
    if (!is_one_launch(i)) {
      add_forward(i);
      return add_loss();
    }
    const Stage& last = stages_[i];
    LastLayerOp op{last, std::nullopt};
    double flops = flops_of(last, batch_), bytes = floats(last.input) + floats(last.output) +
                                                   kFloat * batch_ +
                                                   kFloat * static_cast<double>(last.parameter_size());
    if (gives_gradient_with_loss(i)) {
      op.before = stages_[i - 1];
      flops *= 2;
      bytes += floats(last.input) + masks(*op.before);
    }
    const std::string gradient = op.before ? ", data gradient" : "";
    add(last.name + " forward, loss" + gradient, std::move(op), flops, bytes);
  }
  void add_parts_of_end() {
    const std::size_t i = stages_.size() - 1;
    if (!is_one_launch(i)) return;
    add_forward(i);
    add_loss();
    if (gives_gradient_with_loss(i)) add_data_gradient(i);
  }
  void add_loss() {
    const double logits = network_.classes() * batch_;
    add("loss", LossOp{network_.classes()}, 0, 2 * kFloat * logits + kFloat * batch_);
  }

  // What DeviceExecution launches with the loss (models/device_passes.cpp).

  bool is_one_launch(std::size_t i) const {
    const Stage& stage = stages_[i];
    return i + 1 == stages_.size() && stage.head != nullptr && stage.epilogue.count == 0 &&
           std::holds_alternative<LinearShape>(stage.head->op());
  }
  bool gives_gradient_with_loss(std::size_t i) const {
    return is_one_launch(i) && i > first_trained() && (!goes_through(i) || stages_[i - 1].epilogue.pool == 1);
  }

  bool goes_through(std::size_t i) const {
    const Stage& before = stages_[i - 1];
    return before.epilogue.count > 0 && shape_through_epilogue(before, stages_[i]).has_value();
  }

  void add_backward(std::size_t i) {
    const Stage& stage = stages_[i];
    if (stage.head == nullptr) return;
    if (stage.trained()) {
      add(stage.name + " weight gradient", WeightGradientOp{stage}, flops_of(stage, batch_),
          floats(stage.input) + floats(stage.before_epilogue) +
              2 * kInteger * static_cast<double>(stage.parameter_size()));
    }
    if (i > first_trained() && !stage.passes_gradient() && !gives_gradient_with_loss(i)) add_data_gradient(i);
  }

  void add_data_gradient(std::size_t i) {
    const Stage &stage = stages_[i], &before = stages_[i - 1];
    const bool through = goes_through(i);
    const std::string expansion = through ? "," + text_of(before.epilogue) : "";
    const double dx = through ? floats(before.before_epilogue) + masks(before) : floats(stage.input);
    add(stage.name + " data gradient" + expansion, DataGradientOp{stage, before}, flops_of(stage, batch_),
        floats(stage.before_epilogue) + dx + kFloat * static_cast<double>(stage.parameter_size()));
  }

  void add_parts(std::size_t i) {
    const Stage& stage = stages_[i];
    if (stage.epilogue.count == 0) return;
    const double bytes = floats(stage.before_epilogue) + floats(stage.output) + masks(stage);
    const std::string what = stages_[i].name + " epilogue";
    add(what + " forward," + text_of(stage.epilogue), EpilogueOp{stage, false}, 0, bytes);
    add(what + " backward," + text_of(stage.epilogue), EpilogueOp{stage, true}, 0, bytes);
    if (const EpilogueStep* pool = pool_of(stage.epilogue)) add_pool(stage, *pool);
  }

  void add_pool(const Stage& stage, const EpilogueStep& step) {
    const ImageShape& image = stage.before_epilogue;
    const std::string what = text_of(step) + " of " + text_of(image);
    const Pool2dShape shape{batch_, image.channels, image.height, image.width};
    const bool max = step.kind == EpilogueKind::kMaxPool;
    const double bytes = floats(image) + floats(stage.output) + (max ? masks(stage) : 0);
    add(what + " forward", PoolOp{shape, max, false}, 0, bytes);
    add(what + " backward", PoolOp{shape, max, true}, 0, bytes);
  }

  const Network& network_;
  int batch_;
  std::vector<Stage> stages_;
  std::vector<KernelCase> cases_;
};

}  // namespace

std::vector<KernelCase> kernel_cases(const Network& network, int batch) {
  return Cases(network, batch).collect();
}

// Peaks from what a device says of itself; times, shares of them, and the best rival beside.

namespace {

/// What the table shows as 1.00.
constexpr double kAsFast = 0.995;

/// fp32 units of a multiprocessor. Source: CUDA C++ Programming Guide, "Throughput of Native Arithmetic
/// Instructions".
int fp32_units(const DeviceProperties& properties) {
  const bool has_half =
      properties.compute_major == 7 || (properties.compute_major == 8 && properties.compute_minor == 0);
  return has_half ? 64 : 128;
}

/// "12.34   1.50" or dashes.
std::string rival(std::optional<double> seconds, double native) {
  if (!seconds) return fmt::format("{:>9} {:>6}", "-", "-");
  return fmt::format("{:>9.2f} {:>6.2f}", *seconds * 1e6, *seconds / native);
}

std::string arithmetic(const KernelRow& row) {
  return row.kernel.flops > 0 ? fmt::format("{:>8.0f}", row.kernel.flops / row.times.native * 1e-9)
                              : fmt::format("{:>8}", "");
}

/// The best that a rival reached.
std::optional<double> fastest_rival(const KernelTimes& times) {
  if (!times.vendor || !times.library) return times.vendor ? times.vendor : times.library;
  return std::min(*times.vendor, *times.library);
}

}  // namespace

double nominal_flops_per_second(const DeviceProperties& properties) {
  return 2.0 * fp32_units(properties) * properties.multiprocessors * properties.clock_mhz * 1e6;
}

double nominal_memory_bytes_per_second(const DeviceProperties& properties) {
  return 2.0 * properties.memory_clock_mhz * 1e6 * properties.memory_bus_bits / 8;
}

double limit_seconds(const KernelCase& kernel, const GpuLimits& limits) {
  return limits.launch_seconds +
         std::max(kernel.flops / limits.flops_per_second, kernel.bytes / limits.bytes_per_second);
}

std::string table_header() {
  return fmt::format("{:<53} {:>9} {:>9} {:>8} {:>8} | {:>9} {:>6} | {:>9} {:>6}", "op", "us", "limit us",
                     "GFLOP/s", "GB/s", "vendor us", "ratio", "alone us", "ratio");
}

std::string table_line(const KernelRow& row, const GpuLimits& limits) {
  const double seconds = row.times.native;
  return fmt::format("{:<53} {:>9.2f} {:>9.2f} {} {:>8.0f} | {} | {}", row.kernel.name, seconds * 1e6,
                     limit_seconds(row.kernel, limits) * 1e6, arithmetic(row),
                     row.kernel.bytes / seconds * 1e-9, rival(row.times.vendor, seconds),
                     rival(row.times.library, seconds));
}

std::string verdict(const std::vector<KernelRow>& rows) {
  std::string slower;
  int compared = 0;
  for (const KernelRow& row : rows) {
    const auto rival = fastest_rival(row.times);
    if (!rival) continue;
    ++compared;
    if (*rival < kAsFast * row.times.native) {
      slower += fmt::format("\n  {} ({:.2f})", row.kernel.name, *rival / row.times.native);
    }
  }
  if (compared == 0) return {};
  if (slower.empty()) return fmt::format("native is at least as fast on all {} ops compared", compared);
  return "native is slower than the vendor's op or the library's call alone on:" + slower;
}

}  // namespace lockstep::bench
