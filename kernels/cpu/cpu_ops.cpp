// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Ops on the CPU: every op is a free function of this folder, which picks its SIMD target at the first call.
#include "kernels/cpu/cpu_ops.hpp"

#include "kernels/cpu/activation.hpp"
#include "kernels/cpu/batch_norm.hpp"
#include "kernels/cpu/conv2d.hpp"
#include "kernels/cpu/gather.hpp"
#include "kernels/cpu/gradient_sum.hpp"
#include "kernels/cpu/linear.hpp"
#include "kernels/cpu/loss.hpp"
#include "kernels/cpu/pool.hpp"
#include "kernels/cpu/update.hpp"

namespace lockstep::cpu {
namespace {

class CpuOps final : public Ops {
 public:
  std::string_view name() const override { return "cpu"; }
  int batch_multiple() const override { return kLanes; }
  int channels_at_once(int batch) const override { return cpu::channels_at_once(batch); }

  void conv2d_forward(const Conv2dShape& shape, const float* x, const float* w, const float* b,
                      float* y) override {
    cpu::conv2d_forward(shape, x, w, b, y);
  }
  void conv2d_backward_data(const Conv2dShape& shape, const float* dy, const float* w, float* dx) override {
    cpu::conv2d_backward_data(shape, dy, w, dx);
  }
  void conv2d_backward_weights(const Conv2dShape& shape, const GradientSplit& split, const float* x,
                               const float* dy, const GradientOutput& to) override {
    cpu::conv2d_backward_weights(shape, split, x, dy, to);
  }

  void max_pool_forward(const Pool2dShape& shape, const float* x, float* y, std::uint8_t* argmax) override {
    cpu::max_pool_forward(shape, x, y, argmax);
  }
  void max_pool_backward(const Pool2dShape& shape, const float* dy, const std::uint8_t* argmax,
                         float* dx) override {
    cpu::max_pool_backward(shape, dy, argmax, dx);
  }
  void avg_pool_forward(const Pool2dShape& shape, const float* x, float* y) override {
    cpu::avg_pool_forward(shape, x, y);
  }
  void avg_pool_backward(const Pool2dShape& shape, const float* dy, float* dx) override {
    cpu::avg_pool_backward(shape, dy, dx);
  }

  void linear_forward(const LinearShape& shape, const float* x, const float* w, const float* b,
                      float* y) override {
    cpu::linear_forward(shape, x, w, b, y);
  }
  void linear_backward_data(const LinearShape& shape, const float* dy, const float* w, float* dx) override {
    cpu::linear_backward_data(shape, dy, w, dx);
  }
  void linear_backward_weights(const LinearShape& shape, const float* x, const float* dy, float* dw,
                               float* db) override {
    cpu::linear_backward_weights(shape, x, dy, dw, db);
  }

  void relu_forward(std::size_t size, const float* x, float* y, std::uint8_t* positive) override {
    cpu::relu_forward(size, x, y, positive);
  }
  void relu_backward(std::size_t size, const std::uint8_t* positive, const float* dy, float* dx) override {
    cpu::relu_backward(size, positive, dy, dx);
  }
  void dropout(const DropoutShape& shape, const DropoutKey& key, const float* x, float* y) override {
    cpu::dropout(shape, key, x, y);
  }

  void batch_norm_sums(const BatchNormShape& shape, const float* x, std::int64_t* sums) override {
    cpu::batch_norm_sums(shape, x, sums);
  }
  void batch_norm_forward(const BatchNormShape& shape, const float* x, const BatchNormChannel* channels,
                          const float* weight, const float* bias, float* y) override {
    cpu::batch_norm_forward(shape, x, channels, weight, bias, y);
  }
  void batch_norm_gradient_sums(const BatchNormShape& shape, const float* x, const float* dy,
                                const BatchNormChannel* channels, std::int64_t* sums) override {
    cpu::batch_norm_gradient_sums(shape, x, dy, channels, sums);
  }
  void batch_norm_backward(const BatchNormShape& shape, const float* x, const float* dy,
                           const BatchNormChannel* channels, const float* weight, float* dx) override {
    cpu::batch_norm_backward(shape, x, dy, channels, weight, dx);
  }

  void global_avg_pool_forward(const ImageShape& shape, int batch, const float* x, float* y) override {
    cpu::global_avg_pool_forward(shape, batch, x, y);
  }
  void global_avg_pool_backward(const ImageShape& shape, int batch, const float* dy, float* dx) override {
    cpu::global_avg_pool_backward(shape, batch, dy, dx);
  }
  void activation_forward(Activation kind, std::size_t size, const float* x, float* y) override {
    cpu::activation_forward(kind, size, x, y);
  }
  void activation_backward(Activation kind, std::size_t size, const float* saved, const float* dy,
                           float* dx) override {
    cpu::activation_backward(kind, size, saved, dy, dx);
  }
  void add(std::size_t size, const float* a, const float* b, float* y) override { cpu::add(size, a, b, y); }

  void log_softmax(const LossShape& shape, const float* logits, float* y) override {
    cpu::log_softmax(shape, logits, y);
  }
  void softmax_cross_entropy(const LossShape& shape, const float* logits, const std::int32_t* labels,
                             float* dlogits, LossSums* sums) override {
    cpu::softmax_cross_entropy(shape, logits, labels, dlogits, sums);
  }

  void gather_images(const GatherShape& shape, const std::uint8_t* images, const std::int32_t* index,
                     const float* scale, const float* shift, float* x) override {
    cpu::gather_images(shape, images, index, scale, shift, x);
  }
  void gather_features(const GatherShape& shape, const float* features, const std::int32_t* index,
                       float* x) override {
    cpu::gather_features(shape, features, index, x);
  }

  bool accumulate_exact(std::size_t size, const float* g, const ExactFormat& format,
                        std::int64_t* sum) override {
    return cpu::accumulate_exact(size, g, format, sum);
  }
  void mean_from_exact(std::size_t size, const std::int64_t* sum, double scale, std::int64_t count,
                       float* g) override {
    cpu::mean_from_exact(size, sum, scale, count, g);
  }
  void accumulate(std::size_t size, const float* g, float* sum) override { cpu::accumulate(size, g, sum); }
  void mean(std::size_t size, const float* sum, std::int64_t count, float* g) override {
    cpu::mean(size, sum, count, g);
  }
  void update(UpdateRule rule, const StepScalars& step, std::span<const UpdateTensor> tensors, const float* g,
              float* const* buffers, float* w) override {
    cpu::update(rule, step, tensors, g, buffers, w);
  }
};

}  // namespace

std::unique_ptr<Ops> make_ops() {
  return std::make_unique<CpuOps>();
}

}  // namespace lockstep::cpu
