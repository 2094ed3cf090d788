// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Every layer by naive loops in double, with bounds on what fp32 may make of it. Tensors are
/// [channel][row][column][sample] without padding columns.
#pragma once

#include "kernels/numerics/random.hpp"
#include "models/layer_ops.hpp"
#include "models/network.hpp"
#include "tests/kernels/reference/layers.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::test {

// Numbers in double, each with how far a correct fp32 computation may be from it.

/// Two kinds of distance, which must not be mixed:
/// - rounding: the variance of the errors that fp32 adds, as if they were independent. Whoever compares
/// allows
///   kSigmas of its square root.
/// - tie: where relu or max-pool decide by a number that rounding may put on either side, the gradient may go
/// one
///   way or the other. This is how far the other way is; it adds up linearly. Zero where nothing was tied.
struct Bounded {
  std::vector<double> value, variance, tie;

  static constexpr double kSigmas = 8;
  static constexpr double kUnit = 1.0 / 16777216;  ///< 2^-24, the rounding error of fp32

  explicit Bounded(std::size_t size = 0) : value(size), variance(size), tie(size) {}
  std::size_t size() const { return value.size(); }
  /// How far fp32 may be from value[i].
  double allowed(std::size_t i) const { return kSigmas * std::sqrt(variance[i]) + tie[i]; }

  /// This sum of `terms` terms whose magnitudes add up to `magnitude` was rounded on the way. Each addition
  /// rounds a partial sum, and few of those are as large as all magnitudes together.
  void round(std::size_t i, double magnitude, double terms) {
    const double error = kUnit * magnitude * (1 + std::sqrt(terms) / 4);
    variance[i] += error * error;
  }
};

/// Inputs of a layer in both directions. Shapes of ops have the true batch.
struct LayerContext {
  std::span<const float> weights;  ///< the layer's own: weight, then bias if it has one
  std::span<const float> kept;     ///< running mean, then variance
  int batch = 0;
  bool training = false;
  DropoutKey dropout;               ///< without the layer
  int features = 1;                 ///< the input's, for one sample
  int channels = 1;                 ///< the input's
  const Bounded* branch = nullptr;  ///< the branch's output; null: the layer has none
};

/// y of x, and of the branch for layers that have one.
Bounded layer_forward(const LayerOp& op, const LayerContext& context, const Bounded& x);
/// The gradient of x from that of y; counts decisions that rounding may turn.
Bounded layer_backward(const LayerOp& op, const LayerContext& context, const Bounded& x, const Bounded& dy,
                       std::int64_t& ties);
/// The gradient of the branch.
Bounded branch_gradient(const LayerOp& op, const LayerContext& context, const Bounded& x, const Bounded& dy);
/// a + b, rounded.
Bounded sum(const Bounded& a, const Bounded& b);
/// The gradient of weight and bias, summed over samples; empty for layers without.
Bounded weight_gradient(const LayerOp& op, const LayerContext& context, const Bounded& x, const Bounded& dy);

// Layers that work number by number, in double, with bounds on the result in fp32.

Bounded relu_forward(const Bounded& x);
/// Counts numbers that rounding may put on the other side of zero.
Bounded relu_backward(const Bounded& x, const Bounded& dy, std::int64_t& ties);
Bounded activation_forward(const ActivationFunction& f, const Bounded& x);
/// Counts numbers that rounding may put on the other side of a bend.
Bounded activation_backward(const ActivationFunction& f, const Bounded& x, const Bounded& dy,
                            std::int64_t& ties);
/// Dropout in both directions.
Bounded dropout(const DropoutOp& op, const LayerContext& context, const Bounded& x);

// Adding up: tensors whose numbers are sums of products, and gradients that come from several places.

inline double square(double x) {
  return x * x;
}

/// Magnitudes and terms beside the numbers.
class SumsUnderWay {
 public:
  explicit SumsUnderWay(std::size_t size) : sums_(size), magnitude_(size), terms_(size) {}

  /// Adds a * b, where both may be off; rounding of a and of b is of different operations.
  void add(std::size_t i, double a, double a_variance, double a_tie, double b, double b_variance = 0) {
    sums_.value[i] += a * b;
    sums_.variance[i] += b * b * a_variance + a * a * b_variance;
    sums_.tie[i] += std::abs(b) * a_tie;
    magnitude_[i] += std::abs(a * b);
    terms_[i] += 1;
  }
  /// Adds a[from] * b.
  void add(std::size_t i, const Bounded& a, std::size_t from, double b, double b_variance = 0) {
    add(i, a.value[from], a.variance[from], a.tie[from], b, b_variance);
  }
  Bounded take() {
    for (std::size_t i = 0; i < sums_.size(); ++i) sums_.round(i, magnitude_[i], terms_[i]);
    return std::move(sums_);
  }

 private:
  Bounded sums_;
  std::vector<double> magnitude_, terms_;
};

/// dx[to] += factor * dy[from]
inline void add_gradient(Bounded& dx, std::size_t to, const Bounded& dy, std::size_t from, double factor) {
  const double sum = dx.value[to], term = factor * dy.value[from];
  dx.value[to] += term;
  dx.variance[to] += square(factor) * dy.variance[from];
  dx.tie[to] += std::abs(factor) * dy.tie[from];
  if (sum != 0 || factor != 1) dx.round(to, std::abs(sum) + std::abs(term), 1);
}

// Layers that multiply with weights: convolutions and fully connected ones. The loops over all products are those of
// tests/kernels/reference.

using reference::output_size, reference::outputs_of, reference::for_each_product;

/// A transposed convolution has the products of the convolution from y to x.
struct TransposedShape {
  Conv2dShape convolution;

  std::size_t weight_size() const { return convolution.weight_size(); }
};
inline std::size_t output_size(const TransposedShape& s) {
  return s.convolution.in_size();
}
inline std::size_t outputs_of(const TransposedShape& s) {
  return static_cast<std::size_t>(s.convolution.in_channels);
}
template <class F>
void for_each_product(const TransposedShape& s, F f) {
  for_each_product(s.convolution, [&](std::size_t yi, std::size_t wi, std::size_t xi) { f(xi, wi, yi); });
}

/// @param weights  of the layer: weight, then bias if it has one
template <typename Shape>
Bounded product_forward(const Shape& s, std::span<const float> weights, const Bounded& x) {
  SumsUnderWay y(output_size(s));
  const std::size_t plane = output_size(s) / outputs_of(s);
  const bool has_bias = weights.size() > s.weight_size();
  for (std::size_t i = 0; has_bias && i < output_size(s); ++i)
    y.add(i, weights[s.weight_size() + i / plane], 0, 0, 1);
  for_each_product(s, [&](std::size_t xi, std::size_t wi, std::size_t yi) { y.add(yi, x, xi, weights[wi]); });
  return y.take();
}

template <typename Shape>
Bounded product_backward(const Shape& s, std::span<const float> weights, const Bounded& x,
                         const Bounded& dy) {
  SumsUnderWay dx(x.size());
  for_each_product(s,
                   [&](std::size_t xi, std::size_t wi, std::size_t yi) { dx.add(xi, dy, yi, weights[wi]); });
  return dx.take();
}

template <typename Shape>
Bounded product_weights(const Shape& s, std::span<const float> weights, const Bounded& x, const Bounded& dy) {
  SumsUnderWay dw(weights.size());
  for_each_product(s, [&](std::size_t xi, std::size_t wi, std::size_t yi) {
    dw.add(wi, dy, yi, x.value[xi], x.variance[xi]);
  });
  const std::size_t plane = dy.size() / outputs_of(s);
  const bool has_bias = weights.size() > s.weight_size();
  for (std::size_t i = 0; has_bias && i < dy.size(); ++i) dw.add(s.weight_size() + i / plane, dy, i, 1);
  return dw.take();
}

// Pools in double, with bounds on what fp32 may make of them.

Bounded max_pool_forward(const Pool2dShape& s, const Bounded& x);
/// Counts windows in which rounding may turn who wins.
Bounded max_pool_backward(const Pool2dShape& s, const Bounded& x, const Bounded& dy, std::int64_t& ties);
Bounded avg_pool_forward(const Pool2dShape& s, const Bounded& x);
Bounded avg_pool_backward(const Pool2dShape& s, const Bounded& x, const Bounded& dy);
Bounded adaptive_avg_pool_forward(const AdaptivePoolShape& s, const Bounded& x);
Bounded adaptive_avg_pool_backward(const AdaptivePoolShape& s, const Bounded& x, const Bounded& dy);
/// The mean of a channel is an adaptive pool.
AdaptivePoolShape whole_channels(const GlobalAvgPoolOp& pool, int batch);
Bounded global_avg_pool_backward(const GlobalAvgPoolOp& pool, int batch, const Bounded& x, const Bounded& dy);

// layer_norm and group_norm in double: a group of a sample is what a channel is to batch normalisation.

Bounded group_norm_forward(const GroupNormOp& op, const LayerContext& context, const Bounded& x);
Bounded group_norm_backward(const GroupNormOp& op, const LayerContext& context, const Bounded& x,
                            const Bounded& dy);
/// Gradient of weight, then bias.
Bounded group_norm_weights(const GroupNormOp& op, const LayerContext& context, const Bounded& x,
                           const Bounded& dy);

// Batch normalisation in double, with bounds on what fp32 may make of it.

Bounded batch_norm_forward(const BatchNormOp& op, const LayerContext& context, const Bounded& x);
Bounded batch_norm_backward(const BatchNormOp& op, const LayerContext& context, const Bounded& x,
                            const Bounded& dy);
/// Gradient of weight, then bias.
Bounded batch_norm_weights(const BatchNormOp& op, const LayerContext& context, const Bounded& x,
                           const Bounded& dy);

// A whole network on one batch in double: loss, correct answers and gradients, and how far fp32 may be off.

/// Samples as the network sees them.
struct Batch {
  std::vector<double> x;  ///< [features][samples]
  std::vector<std::int32_t> labels;

  int samples() const { return static_cast<int>(labels.size()); }
};

struct ReferenceStep {
  double loss = 0, loss_allowed = 0;                 ///< sum over the samples
  std::int64_t least_correct = 0, most_correct = 0;  ///< they differ where two logits are tied
  Bounded gradients;                                 ///< sums over the samples, arena order; training only
  std::int64_t ties = 0;  ///< decisions of relu and max-pool that rounding may turn
};

/// @param key  of dropout; sample 0 is position 0 of the global batch
ReferenceStep reference_training(const Network& network, std::span<const float> weights, const Batch& batch,
                                 const PassKey& key);
ReferenceStep reference_evaluation(const Network& network, std::span<const float> weights,
                                   const Batch& batch);

}  // namespace lockstep::test
