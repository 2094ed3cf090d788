// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Small tensors for kernel tests: random numbers from a seed, double copies, comparison that names the worst
/// element.
#pragma once

#include "common/buffers.hpp"
#include "common/safetensors.hpp"
#include "gtest/gtest.h"

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace lockstep::reference {

/// Normal numbers.
inline AlignedBuffer<float> random_tensor(std::size_t size, unsigned seed, float scale = 1.0F) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0F, scale);
  AlignedBuffer<float> tensor(size);
  for (float& value : tensor.span()) value = normal(generator);
  return tensor;
}

inline std::vector<double> widen(std::span<const float> values) {
  return {values.begin(), values.end()};
}

/// |actual - expected| <= tolerance * (1 + |expected|) everywhere; NaN is never near.
inline ::testing::AssertionResult all_near(std::span<const float> actual, std::span<const double> expected,
                                           double tolerance) {
  if (actual.size() != expected.size()) {
    return ::testing::AssertionFailure() << "sizes differ: " << actual.size() << " and " << expected.size();
  }
  double worst = 0;
  std::size_t worst_index = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double error = std::abs(static_cast<double>(actual[i]) - expected[i]) / (1 + std::abs(expected[i]));
    if (error <= worst) continue;
    worst_index = i;
    worst = error;
    if (std::isnan(error)) break;
  }
  if (worst <= tolerance) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "worst at index " << worst_index << ": " << actual[worst_index] << " instead of "
         << expected[worst_index] << ", error " << worst << ", allowed " << tolerance;
}

/// Central differences of a function of many numbers: d f(x) / d x[i].
template <class Function>
std::vector<double> finite_differences(std::vector<double> x, const Function& f, double step = 1e-5) {
  std::vector<double> gradient(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double at = x[i];
    x[i] = at + step;
    const double above = f(x);
    x[i] = at - step;
    gradient[i] = (above - f(x)) / (2 * step);
    x[i] = at;
  }
  return gradient;
}

// Reads tests/golden/kernels.safetensors and turns PyTorch's layout [sample, ...] into ours [..., column]
// and back.

/// One tensor of the file, in PyTorch's order.
template <class T>
struct GoldenTensor {
  std::vector<T> values;
  std::vector<int> shape;

  int samples() const { return shape.at(0); }
  /// Numbers in one sample.
  int features() const { return static_cast<int>(values.size()) / samples(); }
};

/// All tensors that PyTorch computed for one case, such as "conv2d.0".
class GoldenCase {
 public:
  GoldenCase(const SafetensorsFile& file, std::string name) : file_(file), name_(std::move(name)) {}

  static SafetensorsFile open() {
    const char* root = std::getenv("LOCKSTEP_SOURCE_DIR");
    if (root == nullptr)
      throw std::runtime_error("set LOCKSTEP_SOURCE_DIR to the root of the project, as ctest does");
    return SafetensorsFile::read(std::string(root) + "/tests/golden/kernels.safetensors");
  }

  bool has(const std::string& tensor) const { return file_.find(name_ + "." + tensor) != nullptr; }

  GoldenTensor<float> floats(const std::string& tensor) const { return load<float>(tensor, "F32"); }
  GoldenTensor<std::int32_t> integers(const std::string& tensor) const {
    return load<std::int32_t>(tensor, "I32");
  }

 private:
  template <class T>
  GoldenTensor<T> load(const std::string& tensor, const std::string& dtype) const {
    const TensorView* view = file_.find(name_ + "." + tensor);
    if (view == nullptr || view->dtype != dtype) {
      throw std::runtime_error("kernels.safetensors has no " + dtype + " tensor " + name_ + "." + tensor +
                               "; run tests/golden/make_kernel_golden.py");
    }
    GoldenTensor<T> golden{std::vector<T>(view->bytes.size() / sizeof(T)), {}};
    std::memcpy(golden.values.data(), view->bytes.data(), view->bytes.size());
    for (const std::size_t dimension : view->shape) golden.shape.push_back(static_cast<int>(dimension));
    return golden;
  }

  const SafetensorsFile& file_;
  std::string name_;
};

/// The number of columns that hold this many samples.
constexpr int padded_batch(int samples) {
  return (samples + 15) / 16 * 16;
}

/// [samples, features] → [features, batch], padding columns zero.
inline AlignedBuffer<float> to_columns(const GoldenTensor<float>& tensor) {
  const auto samples = static_cast<std::size_t>(tensor.samples());
  const auto features = static_cast<std::size_t>(tensor.features());
  const auto batch = static_cast<std::size_t>(padded_batch(tensor.samples()));
  AlignedBuffer<float> columns(features * batch);
  for (std::size_t n = 0; n < samples; ++n) {
    for (std::size_t f = 0; f < features; ++f) columns[f * batch + n] = tensor.values[n * features + f];
  }
  return columns;
}

/// The reverse, without the padding columns.
inline std::vector<float> from_columns(const AlignedBuffer<float>& columns, int sample_count) {
  const auto samples = static_cast<std::size_t>(sample_count);
  const auto batch = static_cast<std::size_t>(padded_batch(sample_count));
  const std::size_t features = columns.size() / batch;
  std::vector<float> values(samples * features);
  for (std::size_t n = 0; n < samples; ++n) {
    for (std::size_t f = 0; f < features; ++f) values[n * features + f] = columns[f * batch + n];
  }
  return values;
}

}  // namespace lockstep::reference
