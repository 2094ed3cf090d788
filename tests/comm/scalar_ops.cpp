// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/comm/scalar_ops.hpp"

#include "common/error.hpp"
#include "kernels/numerics/sums.hpp"

#include <cmath>

namespace lockstep::testing {
namespace {

[[noreturn]] void refuse() {
  throw InternalError("the reducer called an op that it has no use for");
}

using F = float*;
using CF = const float*;

class ScalarOps final : public Ops {
 public:
  std::string_view name() const override { return "scalar"; }
  int batch_multiple() const override { return 1; }
  int channels_at_once(int /*batch*/) const override { return 1; }

  bool accumulate_exact(std::size_t size, CF g, const ExactFormat& format, std::int64_t* sum) override {
    bool fits = true;
    for (std::size_t i = 0; i < size; ++i) {
      if (std::abs(g[i]) < format.limit) {
        sum[i] += std::llrint(static_cast<double>(g[i]) * format.scale);
      } else {
        fits = false;
      }
    }
    return fits;
  }
  void mean_from_exact(std::size_t size, const std::int64_t* sum, double scale, std::int64_t count,
                       F g) override {
    for (std::size_t i = 0; i < size; ++i)
      g[i] = static_cast<float>(static_cast<double>(sum[i]) / (scale * static_cast<double>(count)));
  }
  void accumulate(std::size_t size, CF g, F sum) override {
    for (std::size_t i = 0; i < size; ++i) sum[i] += g[i];
  }
  void mean(std::size_t size, CF sum, std::int64_t count, F g) override {
    for (std::size_t i = 0; i < size; ++i) g[i] = sum[i] / static_cast<float>(count);
  }

  void conv2d_forward(const Conv2dShape&, CF, CF, CF, F) override { refuse(); }
  void conv2d_backward_data(const Conv2dShape&, CF, CF, F) override { refuse(); }
  void conv2d_backward_weights(const Conv2dShape&, const GradientSplit&, CF, CF,
                               const GradientOutput&) override {
    refuse();
  }
  void max_pool_forward(const Pool2dShape&, CF, F, std::uint8_t*) override { refuse(); }
  void max_pool_backward(const Pool2dShape&, CF, const std::uint8_t*, F) override { refuse(); }
  void avg_pool_forward(const Pool2dShape&, CF, F) override { refuse(); }
  void avg_pool_backward(const Pool2dShape&, CF, F) override { refuse(); }
  void linear_forward(const LinearShape&, CF, CF, CF, F) override { refuse(); }
  void linear_backward_data(const LinearShape&, CF, CF, F) override { refuse(); }
  void linear_backward_weights(const LinearShape&, CF, CF, F, F) override { refuse(); }
  void relu_forward(std::size_t, CF, F, std::uint8_t*) override { refuse(); }
  void relu_backward(std::size_t, const std::uint8_t*, CF, F) override { refuse(); }
  void global_avg_pool_forward(const ImageShape&, int, CF, F) override { refuse(); }
  void global_avg_pool_backward(const ImageShape&, int, CF, F) override { refuse(); }
  void activation_forward(Activation, std::size_t, CF, F) override { refuse(); }
  void activation_backward(Activation, std::size_t, CF, CF, F) override { refuse(); }
  void add(std::size_t, CF, CF, F) override { refuse(); }
  void batch_norm_sums(const BatchNormShape&, CF, std::int64_t*) override { refuse(); }
  void batch_norm_forward(const BatchNormShape&, CF, const BatchNormChannel*, CF, CF, F) override {
    refuse();
  }
  void batch_norm_gradient_sums(const BatchNormShape&, CF, CF, const BatchNormChannel*,
                                std::int64_t*) override {
    refuse();
  }
  void batch_norm_backward(const BatchNormShape&, CF, CF, const BatchNormChannel*, CF, F) override {
    refuse();
  }
  void dropout(const DropoutShape&, const DropoutKey&, CF, F) override { refuse(); }
  void log_softmax(const LossShape&, CF, F) override { refuse(); }
  void softmax_cross_entropy(const LossShape&, CF, const std::int32_t*, F, LossSums*) override { refuse(); }
  void gather_images(const GatherShape&, const std::uint8_t*, const std::int32_t*, CF, CF, F) override {
    refuse();
  }
  void gather_features(const GatherShape&, CF, const std::int32_t*, F) override { refuse(); }
  void update(UpdateRule, const StepScalars&, std::span<const UpdateTensor>, CF, float* const*, F) override {
    refuse();
  }
};

}  // namespace

std::unique_ptr<Ops> make_scalar_ops() {
  return std::make_unique<ScalarOps>();
}

}  // namespace lockstep::testing
