// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The ops of a CPU, one core, 64 samples a call; and the program itself.
#include "common/buffers.hpp"
#include "common/machine.hpp"
#include "kernels/cpu/int16/ops.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_choice.hpp"
#include "kernels/optimizers/rule_steps.hpp"
#include "kernels/optimizers/update_rule.hpp"
#include "kernels/sum_cuts.hpp"
#include "tests/bench/kernels/bench.hpp"
#include "tests/support/prelude.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <ctime>
#include <exception>
#include <type_traits>

namespace lockstep::bench {
namespace {

constexpr int kBatch = 64;
constexpr float kScale = 0.01F, kShift = -0.4F;  // normalise pixels
bool has_failed = false;

double bytes_of(std::size_t floats) {
  return static_cast<double>(floats * sizeof(float));
}

/// Memory that is there as long as the benchmarks: zeros, or numbers between -0.5 and 0.5.
template <typename T = float>
T* make(std::size_t size) {
  static std::deque<AlignedBuffer<T>> buffers;
  AlignedBuffer<T>& made = buffers.emplace_back(size);
  for (std::size_t i = 0; std::is_same_v<T, float> && i < size; ++i)
    made[i] = static_cast<T>(i * 7919 % 1009) / 1009 - static_cast<T>(0.5);
  return made.data();
}

/// By processor time, beside the peak of fused multiply-adds, which is measured just before.
void add(const std::string& name, double flops, double bytes, const std::function<void()>& call) {
  const auto run = [=](benchmark::State& state) {
    const double peak = cpu::measure_fma_peak(0.01);
    const std::clock_t start = std::clock();
    while (state.KeepRunning()) call();
    const double seconds =
        static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC / static_cast<double>(state.iterations());
    count_work(state, flops, bytes, seconds);
    if (flops > 0) state.counters["of_peak"] = flops / seconds / peak;
  };
  benchmark::RegisterBenchmark(("cpu/" + name).c_str(), run)->Unit(benchmark::kMicrosecond);
}

/// Adds the layer in 16-bit integers, on each engine.
void add_int16(const std::string& name, const Conv2dShape& s, bool first) {
  float *x = make(s.in_size()), *y = make(s.out_size()), *dx = make(s.in_size());
  float *w = make(s.weight_size()), *dw = make(s.weight_size()), *b = make(s.out_channels);
  const double flops = cpu::conv2d_flops(s), bytes = bytes_of(s.in_size() + s.out_size() + s.weight_size());
  for (const std::string& engine : cpu::int16::engine_choices()) {
    const auto add_op = [&](const char* op, const std::function<void()>& call) {
      add(fmt::format("int16 {} {} {}", engine, name, op), flops, bytes, [=] {
        cpu::int16::choose_engine(engine);
        call();
      });
    };
    add_op("forward", [=] { cpu::int16::conv2d_forward(s, s.batch, x, w, b, y); });
    add_op("weight gradient", [=] { cpu::int16::conv2d_backward_weights(s, s.batch, x, y, dw); });
    if (first) continue;
    add_op("data gradient", [=] { cpu::int16::conv2d_backward_data(s, s.batch, y, w, nullptr, dx); });
  }
}

void add_conv2d(const std::string& name, const Conv2dShape& s, bool first = false) {
  add_int16(name, s, first);
  const auto outputs = static_cast<std::size_t>(s.out_channels), gradients = s.weight_size() + outputs;
  float *x = make(s.in_size()), *y = make(s.out_size()), *w = make(s.weight_size()), *b = make(outputs);
  float* dw = make(static_cast<std::size_t>(GradientSplit(s, s.batch).terms) * gradients);
  const GradientOutput to{dw, dw + s.weight_size(), gradients};
  const double flops = cpu::conv2d_flops(s), bytes = bytes_of(s.in_size() + s.out_size() + s.weight_size());
  add(name + " forward", flops, bytes, [=] { cpu::conv2d_forward(s, x, w, b, y); });
  add(name + " weight gradient", flops, bytes,
      [=] { cpu::conv2d_backward_weights(s, GradientSplit(s, s.batch), x, y, to); });
  if (first) return;
  float* dx = make(s.in_size());
  add(name + " data gradient", flops, bytes, [=] { cpu::conv2d_backward_data(s, y, w, nullptr, dx); });
}

void add_linear(const std::string& name, const LinearShape& s) {
  add_int16(name, cpu::int16::as_convolution(s), false);
  const auto in = static_cast<std::size_t>(s.in_features * s.batch),
             out = static_cast<std::size_t>(s.out_features * s.batch);
  float *x = make(in), *dx = make(in), *y = make(out);
  float *w = make(s.weight_size()), *dw = make(s.weight_size()), *b = make(out);
  const double bytes = bytes_of(in + out + s.weight_size());
  add(name + " forward", s.flops(), bytes, [=] { cpu::linear_forward(s, x, w, b, y); });
  add(name + " weight gradient", s.flops(), bytes, [=] { cpu::linear_backward_weights(s, x, y, dw, b); });
  add(name + " data gradient", s.flops(), bytes, [=] { cpu::linear_backward_data(s, y, w, dx); });
}

void add_layers() {
  constexpr int n = kBatch;
  const auto read = [](Conv2dShape shape, const ImagePart& part) {
    shape.read = part;  // the part of its output that the pool after it reads
    return shape;
  };
  add_conv2d("Net conv1 10@5x5 of 1x28x28", {n, 1, 28, 28, 10, 5, 5}, true);
  add_conv2d("Net conv2 20@5x5 of 10x12x12", {n, 10, 12, 12, 20, 5, 5});
  add_linear("Net fc1 320-50", {n, 320, 50});
  add_linear("Net fc2 50-10", {n, 50, 10});
  add_conv2d("LeNet conv1 20@3x3 of 1x28x28", read({n, 1, 28, 28, 20, 3, 3}, {24, 24}), true);
  add_conv2d("LeNet conv2 50@5x5 of 20x13x13", read({n, 20, 13, 13, 50, 5, 5}, {8, 8}));
  add_linear("LeNet fc1 800-128", {n, 800, 128});
  add_conv2d("ResNet 16@3x3 of 1x28x28", {n, 1, 28, 28, 16, 3, 3, 1, 1}, true);
  add_conv2d("ResNet 16@3x3 of 16x28x28", {n, 16, 28, 28, 16, 3, 3, 1, 1});
  add_conv2d("ResNet 32@3x3 stride 2 of 16x28x28", {n, 16, 28, 28, 32, 3, 3, 2, 1});
  add_conv2d("ResNet 32@3x3 of 32x14x14", {n, 32, 14, 14, 32, 3, 3, 1, 1});
  add_conv2d("ResNet 64@3x3 of 64x7x7", {n, 64, 7, 7, 64, 3, 3, 1, 1});
  add_conv2d("ResNet18 64@7x7 stride 2 of 3x56x56", {16, 3, 56, 56, 64, 7, 7, 2, 3}, true);
  add_conv2d("ResNet18 256@3x3 of 256x14x14", {16, 256, 14, 14, 256, 3, 3, 1, 1});
  add_conv2d("ResNet 128@3x3 stride 2 of 64x28x28", {n, 64, 28, 28, 128, 3, 3, 2, 1});
  add_conv2d("ResNet 128@1x1 stride 2 of 64x28x28", {n, 64, 28, 28, 128, 1, 1, 2, 0});
}

void add_pools() {
  const Pool2dShape max{kBatch, 10, 24, 24}, average{kBatch, 20, 26, 26};
  float *x = make(average.in_size()), *y = make(average.out_size());
  auto* argmax = make<std::uint8_t>(max.out_size());
  const double max_bytes = bytes_of(max.in_size() + max.out_size()) + static_cast<double>(max.out_size());
  const double average_bytes = bytes_of(average.in_size() + average.out_size());
  add("max_pool 10x24x24 forward", 0, max_bytes, [=] { cpu::max_pool_forward(max, x, y, argmax); });
  add("max_pool 10x24x24 backward", 0, max_bytes, [=] { cpu::max_pool_backward(max, y, argmax, x); });
  add("avg_pool 20x26x26 forward", 0, average_bytes, [=] { cpu::avg_pool_forward(average, x, y); });
  add("avg_pool 20x26x26 backward", 0, average_bytes, [=] { cpu::avg_pool_backward(average, y, x); });
}

void add_elementwise() {
  constexpr std::size_t size = std::size_t{1440} * kBatch;
  float *x = make(size), *y = make(size), *z = make(size);
  auto* positive = make<std::uint8_t>(sign_bytes(size));
  add("relu 10x12x12 forward", 0, bytes_of(2 * size), [=] { cpu::relu_forward(size, x, y, positive); });
  for (const auto& [function, name] : {std::pair{ActivationFunction(Activation::kTanh), "tanh"},
                                       {Activation::kSigmoid, "sigmoid"},
                                       {Activation::kGelu, "gelu"},
                                       {{Activation::kLeakyRelu, 0.01F}, "leaky_relu"},
                                       {{Activation::kElu, 1}, "elu"},
                                       {Activation::kSilu, "silu"},
                                       {Activation::kHardSwish, "hardswish"}}) {
    const ActivationFunction f = function;
    const std::string what = std::string(name) + " 10x12x12 ";
    add(what + "forward", 0, bytes_of(2 * size), [=] { cpu::activation_forward(f, size, x, y); });
    add(what + "backward", 0, bytes_of(3 * size), [=] { cpu::activation_backward(f, size, x, y, z); });
  }
  add("add 10x12x12", 0, bytes_of(3 * size), [=] { cpu::add(size, x, y, z); });
  const ImageShape image{10, 12, 12};
  add("global_avg_pool 10x12x12 forward", 0, bytes_of(size + size / 144),
      [=] { cpu::global_avg_pool_forward(image, kBatch, x, y); });
  add("global_avg_pool 10x12x12 backward", 0, bytes_of(size + size / 144),
      [=] { cpu::global_avg_pool_backward(image, kBatch, x, z); });
  const DropoutShape drop{.batch = kBatch, .units = 20, .unit_size = 64};
  add("dropout2d 20x8x8", 0, bytes_of(2 * std::size_t{1280} * kBatch),
      [=] { cpu::dropout(drop, {.seed = 1}, x, y); });
}

void add_ends_of_a_step() {
  constexpr std::size_t images = 60000, pixels = 784, parameters = 21840;
  auto* bytes = make<std::uint8_t>(images * pixels);
  std::vector<const std::uint8_t*> rows(64 * kBatch);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = bytes + i * 7919 % images * pixels;
  float *x = make(pixels * kBatch), *w = make(parameters), *g = make(parameters), *m = make(parameters);
  const GatherShape shape{.batch = kBatch, .samples = kBatch, .features = static_cast<int>(pixels)};
  add("gather and normalise 784", 0, 5.0 * pixels * kBatch, [=, turn = std::size_t{0}]() mutable {
    cpu::gather_images(shape, rows.data() + turn++ % 64 * kBatch, &kScale, &kShift, x);
  });
  auto* sums = make<std::int64_t>(parameters);
  add("exact sum 21,840", 0, bytes_of(5 * parameters),
      [=] { cpu::accumulate_exact(parameters, g, {.limit = 1e4F}, sums); });
  add("sgd momentum 21,840", 0, bytes_of(5 * parameters), [=]() mutable {
    const UpdateTensor all{.size = parameters};
    cpu::update(UpdateRule::kSgdMomentum, pack_scalars(SgdStep{.momentum = 0.5F}), {&all, 1}, g, &m, w);
  });
}

}  // namespace

void count_work(benchmark::State& state, double flops, double bytes, double seconds) {
  if (flops > 0) state.counters["GFLOP/s"] = flops / seconds * 1e-9;
  state.counters["GB/s"] = bytes / seconds * 1e-9;
}

void fail(benchmark::State& state, const std::string& why) {
  state.SkipWithError(why.c_str());
  has_failed = true;
}

void register_cpu_kernels() {
  benchmark::AddCustomContext("simd", cpu::simd_name());
  add_layers();
  add_pools();
  add_elementwise();
  add_ends_of_a_step();
}

int run_benchmarks(int argc, char** argv, const GpuUnderTest& gpu) try {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  cpu::choose_simd(environment_variable(cpu::kSimdVariable));
  register_cpu_kernels();
  const auto used = register_gpu_kernels(gpu);
  const std::size_t run = benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return run == 0 || has_failed ? 1 : 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "kernels_bench: %s\n", error.what());
  return 1;
}

}  // namespace lockstep::bench
