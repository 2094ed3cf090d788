// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The contract of every op of a CPU: kernels/cpu implements this class. (The ops of GPUs work on whole batches
/// and have a contract of their own, kernels/device_ops.hpp.)
///
/// Conventions, stated once:
/// - Tensors are fp32 and *batch innermost*: [channel][row][column][sample]. A SIMD register holds the same
///   pixel of different samples. `batch` in a shape is a multiple of batch_multiple(); see kernels/shapes.hpp.
/// - Pointers are 64-byte aligned where they start a tensor (weights and gradients inside an arena only
///   4-byte), and do not overlap unless an op says "in place".
/// - Outputs are overwritten, unless an op says "accumulates".
/// - Gradients are *sums* over the samples; no kernel divides before the reduction over all ranks.
/// - An Ops object is one execution context: a thread with its scratch. Not thread-safe; use one object per
///   thread.
/// - Bits depend only on arguments: not on the SIMD width of the machine (with fused multiply-add), nor on
///   `batch` padding, nor on earlier calls. They are those of every other device (docs/arithmetic.md).
/// - Shapes were validated by the caller (models/); an op only asserts.
#pragma once

#include "kernels/numerics/random.hpp"
#include "kernels/numerics/sums.hpp"
#include "kernels/optimizers/update_rule.hpp"
#include "kernels/shapes.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace lockstep {

enum class Activation : std::uint8_t;  // kernels/shapes.hpp
struct BatchNormShape;                 // kernels/batch_norm.hpp
struct BatchNormChannel;
struct GradientSplit;  // kernels/sum_cuts.hpp

/// What one grain contributes to the statistics of a step.
struct LossSums {
  /// Sum over the samples whose loss is finite, each rounded to 2^-32 nats: exact below 2^21.
  double loss = 0;
  std::int64_t correct = 0;     ///< samples whose largest logit (first one among equals) is their label
  std::int64_t not_finite = 0;  ///< samples whose loss is NaN or infinite
};

/// What a relu remembers of `size` numbers.
constexpr std::size_t sign_bytes(std::size_t size) {
  return (size + 7) / 8;
}

class Ops {
 public:
  virtual ~Ops() = default;

  /// "cpu", "cuda", ...
  virtual std::string_view name() const = 0;
  /// Every `batch` is a multiple of this. 16 on CPUs: one cache line of samples.
  virtual int batch_multiple() const = 0;
  /// How many channels of a convolution's output are computed at a time: fewer in a call are slower.
  virtual int channels_at_once(int batch) const = 0;

  /// y = conv(x, w) + b: cross-correlation, as everywhere in deep learning.
  /// x [C,H,W,N]  w [K,C,R,S]  b [K]  y [K,P,Q,N]
  virtual void conv2d_forward(const Conv2dShape&, const float* x, const float* w, const float* b,
                              float* y) = 0;
  /// dx [C,H,W,N] from dy [K,P,Q,N].
  virtual void conv2d_backward_data(const Conv2dShape&, const float* dy, const float* w, float* dx) = 0;
  /// dw [K,C,R,S] and db [K], summed over samples and pixels, in as many terms as the split says.
  /// @param split  of the layer, of whose output channels the shape may have a part, and of a full grain, of which this
  ///               may be a smaller one
  virtual void conv2d_backward_weights(const Conv2dShape&, const GradientSplit& split, const float* x,
                                       const float* dy, const GradientOutput& to) = 0;

  /// y = max over each window; argmax [C,P,Q,N]: position in the window (row * kernel + column) of the first
  /// maximum (NaN wins, as in PyTorch).
  virtual void max_pool_forward(const Pool2dShape&, const float* x, float* y, std::uint8_t* argmax) = 0;
  virtual void max_pool_backward(const Pool2dShape&, const float* dy, const std::uint8_t* argmax,
                                 float* dx) = 0;
  /// y = mean over each window; the divisor is always kernel * kernel.
  virtual void avg_pool_forward(const Pool2dShape&, const float* x, float* y) = 0;
  virtual void avg_pool_backward(const Pool2dShape&, const float* dy, float* dx) = 0;

  /// y [C,N] = mean over each channel of x [C,H,W,N]: pixel k, row by row, is added to sum k % 4; then
  /// (sum 0 + sum 1) + (sum 2 + sum 3), times the rounded 1 / (H W).
  virtual void global_avg_pool_forward(const ImageShape&, int batch, const float* x, float* y) = 0;
  virtual void global_avg_pool_backward(const ImageShape&, int batch, const float* dy, float* dx) = 0;

  // Batch normalisation: kernels/batch_norm.hpp has the order of the sums. x, y, dy, dx [channels, pixels, N].
  /// Accumulates the sums of x and x x: long sums [channels][kBatchNormWords].
  virtual void batch_norm_sums(const BatchNormShape&, const float* x, std::int64_t* sums) = 0;
  /// y = (x - mean) (rstd weight) + bias, one rounding for the latter two.
  /// @param weight, bias  [channels]; null: 1 and 0
  virtual void batch_norm_forward(const BatchNormShape&, const float* x, const BatchNormChannel* channels,
                                  const float* weight, const float* bias, float* y) = 0;
  /// Accumulates the sums of dy and dy xhat, where xhat = (x - mean) rstd.
  virtual void batch_norm_gradient_sums(const BatchNormShape&, const float* x, const float* dy,
                                        const BatchNormChannel* channels, std::int64_t* sums) = 0;
  /// dx = (dy - mean_dy - xhat mean_dy_xhat) (rstd weight); 0 in padding columns.
  virtual void batch_norm_backward(const BatchNormShape&, const float* x, const float* dy,
                                   const BatchNormChannel* channels, const float* weight, float* dx) = 0;

  /// y = w x + b.   x [I,N]  w [O,I]  b [O]  y [O,N]
  virtual void linear_forward(const LinearShape&, const float* x, const float* w, const float* b,
                              float* y) = 0;
  virtual void linear_backward_data(const LinearShape&, const float* dy, const float* w, float* dx) = 0;
  virtual void linear_backward_weights(const LinearShape&, const float* x, const float* dy, float* dw,
                                       float* db) = 0;

  /// y = max(x, 0) over `size` numbers (NaN stays NaN). In place when y == x.
  /// @param positive  [sign_bytes(size)], a bit for each number: it is larger than 0. May be null
  virtual void relu_forward(std::size_t size, const float* x, float* y, std::uint8_t* positive) = 0;
  /// dx = dy where forward found the number positive, else 0. In place when dx == dy.
  virtual void relu_backward(std::size_t size, const std::uint8_t* positive, const float* dy, float* dx) = 0;

  /// y = f(x) over `size` numbers; kernels/numerics/activation_math.inc says how, and is the same on every
  /// device. In place when y == x.
  virtual void activation_forward(Activation, std::size_t size, const float* x, float* y) = 0;
  /// dx = dy f'(x), computed of what the activation saves (kernels/shapes.hpp). In place when dx == dy.
  virtual void activation_backward(Activation, std::size_t size, const float* saved, const float* dy,
                                   float* dx) = 0;
  /// y = a + b over `size` numbers. In place when y is a or b.
  virtual void add(std::size_t size, const float* a, const float* b, float* y) = 0;

  /// y = x / (1 - p) for kept units, 0 for dropped ones (see DropoutKey). In place when y == x.
  /// The gradient is the same op with the same key applied to dy.
  virtual void dropout(const DropoutShape&, const DropoutKey&, const float* x, float* y) = 0;

  /// logits [C,N] → natural logarithm of the softmax, y [C,N]. In place when y == x.
  virtual void log_softmax(const LossShape&, const float* logits, float* y) = 0;
  /// Cross-entropy of the softmax, summed over samples; `labels` [samples] in [0, classes).
  /// dlogits [C,N] = softmax - onehot for real columns, 0 for padding; may be null (evaluation). In place
  /// when dlogits == logits. `sums` is overwritten.
  virtual void softmax_cross_entropy(const LossShape&, const float* logits, const std::int32_t* labels,
                                     float* dlogits, LossSums* sums) = 0;

  /// x[f][n] = images[index[n]][f] * scale[c] + shift[c] (one fused multiply-add), 0 in padding columns; c is
  /// the channel of f. images: uint8 [sample][features]; scale, shift: [channels].
  virtual void gather_images(const GatherShape&, const std::uint8_t* images, const std::int32_t* index,
                             const float* scale, const float* shift, float* x) = 0;
  /// x[f][n] = features[index[n]][f], 0 in padding columns. features: fp32 [sample][features].
  virtual void gather_features(const GatherShape&, const float* features, const std::int32_t* index,
                               float* x) = 0;

  /// Accumulates: sum[i] += round(g[i] * format.scale), half to even. Returns false, having added 0 for the
  /// culprits, if some |g[i]| >= format.limit or is NaN. See kernels/numerics/sums.hpp.
  virtual bool accumulate_exact(std::size_t size, const float* g, const ExactFormat& format,
                                std::int64_t* sum) = 0;
  /// g[i] = float(sum[i] / (scale * count)), computed in double with one rounding to float; `scale` is the
  /// power of two that the terms were multiplied by.
  virtual void mean_from_exact(std::size_t size, const std::int64_t* sum, double scale, std::int64_t count,
                               float* g) = 0;
  /// Accumulates: sum[i] += g[i].
  virtual void accumulate(std::size_t size, const float* g, float* sum) = 0;
  /// g[i] = sum[i] / count.
  virtual void mean(std::size_t size, const float* sum, std::int64_t count, float* g) = 0;

  /// One optimiser step: moves `w` and `buffers` by the rule (kernels/optimizers) along the mean gradient.
  /// All pointers are arenas, of which `tensors` names the ranges that move.
  /// @param buffers  what the rule remembers: as many as buffers_of(rule)
  virtual void update(UpdateRule rule, const StepScalars& step, std::span<const UpdateTensor> tensors,
                      const float* g, float* const* buffers, float* w) = 0;
};

}  // namespace lockstep
