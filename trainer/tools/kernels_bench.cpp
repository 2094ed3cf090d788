// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The cases on a CPU and on a device, measured in turns, and their table.
#include "common/buffers.hpp"
#include "common/json_text.hpp"
#include "common/output.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_choice.hpp"
#include "kernels/optimizers/update_rule.hpp"
#include "kernels/shapes.hpp"
#include "kernels/sum_cuts.hpp"
#include "trainer/tools/bench.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace lockstep::bench {
namespace {

constexpr double kTurnSeconds = 0.01;
constexpr float kScale = 0.01F, kShift = -0.4F;  ///< of pixels

/// One op at one shape, ready to run.
struct Case {
  std::string name;
  double flops = 0;  ///< 0 for ops that only move data
  double bytes = 0;  ///< read and written at least once
  std::function<void()> run;
};

/// Owns the tensors that the cases of a table use, filled with small numbers.
class Tensors {
 public:
  float* make(std::size_t size) {
    buffers_.emplace_back(size);
    for (std::size_t i = 0; i < size; ++i) {
      buffers_.back()[i] =
          uniform01(philox(buffers_.size(), {{static_cast<std::uint32_t>(i), 0, 0, 0}}).value[0]) - 0.5F;
    }
    return buffers_.back().data();
  }

 private:
  std::vector<AlignedBuffer<float>> buffers_;
};

double bytes_of(std::size_t floats) {
  return static_cast<double>(floats) * sizeof(float);
}

void add_conv2d(const std::string& name, const Conv2dShape& s, bool first, Tensors& t,
                std::vector<Case>& out) {
  float* x = t.make(s.in_size());
  float* y = t.make(s.out_size());
  float* w = t.make(s.weight_size());
  float* b = t.make(static_cast<std::size_t>(s.out_channels));
  const std::size_t gradients = s.weight_size() + static_cast<std::size_t>(s.out_channels);
  float* dw = t.make(static_cast<std::size_t>(GradientSplit(s, s.batch).terms) * gradients);
  const GradientOutput to{dw, dw + s.weight_size(), gradients};
  const double flops = cpu::conv2d_flops(s), bytes = bytes_of(s.in_size() + s.out_size() + s.weight_size());
  out.push_back({name + " forward", flops, bytes, [=] { cpu::conv2d_forward(s, x, w, b, y); }});
  out.push_back({name + " weight gradient", flops, bytes,
                 [=] { cpu::conv2d_backward_weights(s, GradientSplit(s, s.batch), x, y, to); }});
  if (first) return;
  float* dx = t.make(s.in_size());
  out.push_back(
      {name + " data gradient", flops, bytes, [=] { cpu::conv2d_backward_data(s, y, w, nullptr, dx); }});
}

void add_linear(const std::string& name, const LinearShape& s, Tensors& t, std::vector<Case>& out) {
  const auto in = static_cast<std::size_t>(s.in_features) * static_cast<std::size_t>(s.batch);
  const auto outs = static_cast<std::size_t>(s.out_features) * static_cast<std::size_t>(s.batch);
  float* x = t.make(in);
  float* dx = t.make(in);
  float* y = t.make(outs);
  float* w = t.make(s.weight_size());
  float* dw = t.make(s.weight_size());
  float* b = t.make(static_cast<std::size_t>(s.out_features));
  const double bytes = bytes_of(in + outs + s.weight_size());
  out.push_back({name + " forward", s.flops(), bytes, [=] { cpu::linear_forward(s, x, w, b, y); }});
  out.push_back(
      {name + " weight gradient", s.flops(), bytes, [=] { cpu::linear_backward_weights(s, x, y, dw, b); }});
  out.push_back({name + " data gradient", s.flops(), bytes, [=] { cpu::linear_backward_data(s, y, w, dx); }});
}

void add_pool(const std::string& name, const Pool2dShape& s, bool max, Tensors& t, std::vector<Case>& out) {
  float* x = t.make(s.in_size());
  float* y = t.make(s.out_size());
  auto argmax = std::make_shared<AlignedBuffer<std::uint8_t>>(s.out_size());
  const double bytes = bytes_of(s.in_size() + s.out_size());
  if (max) {
    out.push_back({name + " forward", 0, bytes, [=] { cpu::max_pool_forward(s, x, y, argmax->data()); }});
    out.push_back({name + " backward", 0, bytes, [=] { cpu::max_pool_backward(s, y, argmax->data(), x); }});
  } else {
    out.push_back({name + " forward", 0, bytes, [=] { cpu::avg_pool_forward(s, x, y); }});
    out.push_back({name + " backward", 0, bytes, [=] { cpu::avg_pool_backward(s, y, x); }});
  }
}

void add_elementwise(int batch, Tensors& t, std::vector<Case>& out) {
  const std::size_t activations = std::size_t{1440} * static_cast<std::size_t>(batch);
  float* x = t.make(activations);
  float* y = t.make(activations);
  float* z = t.make(activations);
  auto positive = std::make_shared<std::vector<std::uint8_t>>(sign_bytes(activations));
  out.push_back({"relu 10x12x12 forward", 0, bytes_of(2 * activations),
                 [=] { cpu::relu_forward(activations, x, y, positive->data()); }});
  for (const auto& [function, name] : {std::pair{ActivationFunction(Activation::kTanh), "tanh"},
                                       {Activation::kSigmoid, "sigmoid"},
                                       {Activation::kGelu, "gelu"},
                                       {{Activation::kLeakyRelu, 0.01F}, "leaky_relu"},
                                       {{Activation::kElu, 1}, "elu"},
                                       {Activation::kSilu, "silu"},
                                       {Activation::kHardSwish, "hardswish"}}) {
    const ActivationFunction f = function;
    out.push_back({fmt::format("{} 10x12x12 forward", name), 0, bytes_of(2 * activations),
                   [=] { cpu::activation_forward(f, activations, x, y); }});
    out.push_back({fmt::format("{} 10x12x12 backward", name), 0, bytes_of(3 * activations),
                   [=] { cpu::activation_backward(f, activations, x, y, z); }});
  }
  out.push_back({"add 10x12x12", 0, bytes_of(3 * activations), [=] { cpu::add(activations, x, y, z); }});
  const ImageShape image{10, 12, 12};
  out.push_back({"global_avg_pool of 10x12x12 forward", 0, bytes_of(activations + activations / 144),
                 [=] { cpu::global_avg_pool_forward(image, batch, x, y); }});
  out.push_back({"global_avg_pool of 10x12x12 backward", 0, bytes_of(activations + activations / 144),
                 [=] { cpu::global_avg_pool_backward(image, batch, x, z); }});
  const DropoutShape drop{.batch = batch, .units = 20, .unit_size = 64};
  out.push_back({"dropout2d 20x8x8", 0, bytes_of(std::size_t{2560} * static_cast<std::size_t>(batch)),
                 [=] { cpu::dropout(drop, {.seed = 1}, x, y); }});
  const std::size_t parameters = 21840;
  float* w = t.make(parameters);
  float* g = t.make(parameters);
  float* m = t.make(parameters);
  auto sums = std::make_shared<AlignedBuffer<std::int64_t>>(parameters);
  out.push_back({"exact sum 21,840", 0, bytes_of(5 * parameters),
                 [=] { cpu::accumulate_exact(parameters, g, {.limit = 1e4F}, sums->data()); }});
  out.push_back(
      {"sgd momentum 21,840", 0, bytes_of(5 * parameters), [=] {
         const UpdateTensor all{.size = parameters};
         cpu::update(UpdateRule::kSgdMomentum, pack_scalars(SgdStep{.momentum = 0.5F}), {&all, 1}, g, &m, w);
       }});
}

void add_input(int batch, Tensors& t, std::vector<Case>& out) {
  constexpr int kImages = 60000, kPixels = 784;
  auto images = std::make_shared<AlignedBuffer<std::uint8_t>>(std::size_t{kImages} * kPixels);
  std::vector<const std::uint8_t*> rows(static_cast<std::size_t>(batch) * 64);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = images->data() + i * 7919 % kImages * kPixels;
  float* x = t.make(std::size_t{kPixels} * static_cast<std::size_t>(batch));
  const GatherShape shape{.batch = batch, .samples = batch, .features = kPixels};
  auto turn = std::make_shared<std::size_t>(0);
  out.push_back({"gather and normalise 784", 0, 5.0 * kPixels * batch, [=, keeps = images] {
                   const auto* of_batch = rows.data() + (*turn)++ % 64 * static_cast<std::size_t>(batch);
                   cpu::gather_images(shape, of_batch, &kScale, &kShift, x);
                 }});
}

/// What pools behind it leave of its output.
Conv2dShape with_read(Conv2dShape shape, const ImagePart& read) {
  shape.read = read;
  return shape;
}

std::vector<Case> all_cases(int n, Tensors& t) {
  std::vector<Case> out;
  add_input(n, t, out);
  add_conv2d("Net conv1 10@5x5 of 1x28x28", {n, 1, 28, 28, 10, 5, 5}, true, t, out);
  add_pool("Net max-pool 2 of 10x24x24", {n, 10, 24, 24}, true, t, out);
  add_conv2d("Net conv2 20@5x5 of 10x12x12", {n, 10, 12, 12, 20, 5, 5}, false, t, out);
  add_linear("Net fc1 320-50", {n, 320, 50}, t, out);
  add_linear("Net fc2 50-10", {n, 50, 10}, t, out);
  add_conv2d("LeNet conv1 20@3x3 of 1x28x28", with_read({n, 1, 28, 28, 20, 3, 3}, {24, 24}), true, t, out);
  add_pool("LeNet avg-pool 2 of 20x26x26", {n, 20, 26, 26}, false, t, out);
  add_conv2d("LeNet conv2 50@5x5 of 20x13x13", with_read({n, 20, 13, 13, 50, 5, 5}, {8, 8}), false, t, out);
  add_linear("LeNet fc1 800-128", {n, 800, 128}, t, out);
  add_conv2d("ResNet 16@3x3 of 16x28x28", {n, 16, 28, 28, 16, 3, 3, 1, 1}, false, t, out);
  add_conv2d("ResNet 64@3x3 of 64x7x7", {n, 64, 7, 7, 64, 3, 3, 1, 1}, false, t, out);
  add_conv2d("ResNet 128@3x3 stride 2 of 64x28x28", {n, 64, 28, 28, 128, 3, 3, 2, 1}, false, t, out);
  add_conv2d("ResNet 128@1x1 stride 2 of 64x28x28", {n, 64, 28, 28, 128, 1, 1, 2, 0}, false, t, out);
  add_elementwise(n, t, out);
  return out;
}

void print_case(const Case& c, double seconds, double peak) {
  const double microseconds = seconds * 1e6;
  if (c.flops > 0) {
    print("{:<44} {:>9.1f} {:>9.1f} {:>8.0f} %\n", c.name, microseconds, c.flops / seconds * 1e-9,
          100 * c.flops / seconds / peak);
  } else {
    print("{:<44} {:>9.1f} {:>22.1f}\n", c.name, microseconds, c.bytes / seconds * 1e-9);
  }
}

void print_json(const std::vector<Case>& cases, const std::vector<double>& seconds, double peak, int batch) {
  nlohmann::ordered_json ops = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    ops.push_back({{"op", cases[i].name},
                   {"seconds", seconds[i]},
                   {"flops", cases[i].flops},
                   {"bytes", cases[i].bytes}});
  }
  const nlohmann::ordered_json object = {
      {"format", kBenchFormat}, {"bench", "kernels"}, {"device", "cpu"}, {"simd", cpu::simd_name()},
      {"batch", batch},         {"peak_flops", peak}, {"ops", ops}};
  print("{}\n", json_text_in_ascii(object));
}

}  // namespace

void bench_kernels(const KernelsOptions& options) {
  Tensors tensors;
  auto cases = all_cases(options.batch, tensors);
  std::erase_if(cases, [&](const Case& c) { return c.name.find(options.filter) == std::string::npos; });

  std::vector<double> peaks;
  std::vector<std::function<void()>> runs;
  for (const Case& c : cases) runs.push_back(c.run);
  runs.emplace_back([&] { peaks.push_back(cpu::measure_fma_peak(kTurnSeconds)); });
  const auto seconds = interleaved_medians(runs, options.rounds, kTurnSeconds);
  const double peak = median(peaks);

  if (options.json) return print_json(cases, seconds, peak, options.batch);
  print(
      "One core, {}, {} samples a call; peak of fused multiply-adds, measured in turns with the ops: {:.1f} "
      "GFLOP/s\n\n",
      cpu::simd_name(), options.batch, peak * 1e-9);
  print("{:<44} {:>9} {:>9} {:>10} {:>9}\n", "op", "us", "GFLOP/s", "of peak", "GB/s");
  for (std::size_t i = 0; i < cases.size(); ++i) print_case(cases[i], seconds[i], peak);
}

}  // namespace lockstep::bench
