// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Each layer by its kind.
#include "tests/models/random_networks/reference_layers.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

namespace lockstep::test {

namespace {

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <typename... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

template <typename Shape>
Shape with_columns(Shape shape, int batch) {
  shape.batch = batch;
  return shape;
}

}  // namespace

Bounded sum(const Bounded& a, const Bounded& b) {
  Bounded y(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    y.value[i] = a.value[i] + b.value[i];
    y.variance[i] = a.variance[i] + b.variance[i];
    y.tie[i] = a.tie[i] + b.tie[i];
    y.round(i, std::abs(a.value[i]) + std::abs(b.value[i]), 1);
  }
  return y;
}

Bounded layer_forward(const LayerOp& op, const LayerContext& context, const Bounded& x,
                      const Bounded* branch) {
  const auto product = [&](const auto& shape) {
    return product_forward(with_columns(shape, context.batch), context.weights, x);
  };
  return std::visit(
      Overloaded{
          [&](const Conv2dShape& shape) { return product(shape); },
          [&](const LinearShape& shape) { return product(shape); },
          [&](const MaxPoolOp& pool) { return max_pool_forward(with_columns(pool.shape, context.batch), x); },
          [&](const AvgPoolOp& pool) { return avg_pool_forward(with_columns(pool.shape, context.batch), x); },
          [&](const ReluOp&) { return relu_forward(x); },
          [&](const DropoutOp& drop) { return dropout(drop, context, x); },
          [&](const ActivationOp& activation) { return activation_forward(activation.kind, x); },
          [&](const GlobalAvgPoolOp& pool) { return global_avg_pool_forward(pool, context.batch, x); },
          [&](const BatchNormOp& norm) { return batch_norm_forward(norm, context, x); },
          [&](const AddOp&) { return sum(x, *branch); }, [&](const RouteOp&) { return *branch; },
          [&](const ViewOp&) { return x; }},
      op);
}

Bounded layer_backward(const LayerOp& op, const LayerContext& context, const Bounded& x, const Bounded& dy,
                       std::int64_t& ties) {
  const auto product = [&](const auto& shape) {
    return product_backward(with_columns(shape, context.batch), context.weights, x, dy);
  };
  return std::visit(
      Overloaded{
          [&](const Conv2dShape& shape) { return product(shape); },
          [&](const LinearShape& shape) { return product(shape); },
          [&](const MaxPoolOp& pool) {
            return max_pool_backward(with_columns(pool.shape, context.batch), x, dy, ties);
          },
          [&](const AvgPoolOp& pool) {
            return avg_pool_backward(with_columns(pool.shape, context.batch), x, dy);
          },
          [&](const ReluOp&) { return relu_backward(x, dy, ties); },
          [&](const DropoutOp& drop) { return dropout(drop, context, dy); },
          [&](const ActivationOp& activation) {
            return activation.kind == Activation::kRelu6 ? relu6_backward(x, dy, ties)
                                                         : activation_backward(activation.kind, x, dy);
          },
          [&](const GlobalAvgPoolOp& pool) { return global_avg_pool_backward(pool, context.batch, x, dy); },
          [&](const BatchNormOp& norm) { return batch_norm_backward(norm, context, x, dy); },
          [&](const AddOp&) { return dy; }, [&](const RouteOp&) { return Bounded(x.size()); },
          [&](const ViewOp&) { return dy; }},
      op);
}

Bounded weight_gradient(const LayerOp& op, const LayerContext& context, const Bounded& x, const Bounded& dy) {
  const auto product = [&](const auto& shape) {
    return product_weights(with_columns(shape, context.batch), context.weights, x, dy);
  };
  return std::visit(
      Overloaded{[&](const Conv2dShape& shape) { return product(shape); },
                 [&](const LinearShape& shape) { return product(shape); },
                 [&](const BatchNormOp& norm) { return batch_norm_weights(norm, context, x, dy); },
                 [](const auto& /*without parameters*/) { return Bounded(); }},
      op);
}

namespace {

/// Rounding errors of an activation or its derivative, in units of the last place of the larger of both.
constexpr double kActivationUnits = 4;

/// A function of one number with its first two derivatives.
struct Curve {
  double value, slope, bend;
};

Curve curve_at(Activation kind, double x) {
  switch (kind) {
    case Activation::kTanh: {
      const double y = std::tanh(x), slope = 1 - y * y;
      return {y, slope, -2 * y * slope};
    }
    case Activation::kSigmoid: {
      const double y = 1 / (1 + std::exp(-x)), slope = y * (1 - y);
      return {y, slope, slope * (1 - 2 * y)};
    }
    case Activation::kRelu6:
      return {std::clamp(x, 0.0, 6.0), x > 0 && x < 6 ? 1.0 : 0.0, 0};
    case Activation::kGelu: {
      const double below = std::erfc(-x / std::sqrt(2.0)) / 2,
                   density = std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
      return {x * below, below + x * density, (2 - x * x) * density};
    }
    case Activation::kGeluTanh: {
      const double a = 2 * std::sqrt(2 / M_PI), b = 0.044715 * a;
      const Curve logistic = curve_at(Activation::kSigmoid, a * x + b * x * x * x);
      const double inner = a + 3 * b * x * x;
      const double slope = logistic.slope * inner,
                   bend = logistic.bend * inner * inner + logistic.slope * 6 * b * x;
      return {x * logistic.value, logistic.value + x * slope, 2 * slope + x * bend};
    }
  }
  return {};
}

}  // namespace

Bounded relu_forward(const Bounded& x) {
  Bounded y = x;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const bool may_be_positive = y.value[i] + Bounded::kSigmas * std::sqrt(y.variance[i]) > 0;
    y.value[i] = std::max(y.value[i], 0.0);
    if (!may_be_positive) y.variance[i] = 0;
  }
  return y;
}

Bounded relu_backward(const Bounded& x, const Bounded& dy, std::int64_t& ties) {
  Bounded dx(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x.value[i] > 0) add_gradient(dx, i, dy, i, 1);
    const double sigma = std::sqrt(x.variance[i]);
    if (sigma == 0 || std::abs(x.value[i]) > Bounded::kSigmas * sigma) continue;
    dx.tie[i] += std::abs(dy.value[i]) + dy.allowed(i);
    ++ties;
  }
  return dx;
}

Bounded relu6_backward(const Bounded& x, const Bounded& dy, std::int64_t& ties) {
  Bounded dx(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x.value[i] > 0 && x.value[i] < 6) add_gradient(dx, i, dy, i, 1);
    const double sigma = std::sqrt(x.variance[i]),
                 distance = std::min(std::abs(x.value[i]), std::abs(x.value[i] - 6));
    if (sigma == 0 || distance > Bounded::kSigmas * sigma) continue;
    dx.tie[i] += std::abs(dy.value[i]) + dy.allowed(i);
    ++ties;
  }
  return dx;
}

Bounded activation_forward(Activation kind, const Bounded& x) {
  Bounded y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Curve curve = curve_at(kind, x.value[i]);
    y.value[i] = curve.value;
    // Where the slope vanishes, rounding still moves y by the bend.
    y.variance[i] = square(curve.slope) * x.variance[i] + square(curve.bend * x.variance[i]);
    y.round(i, kActivationUnits * std::max(std::abs(curve.value), std::abs(x.value[i] * curve.slope)), 1);
  }
  return y;
}

/// The derivative is off by the bend where x is, and by the rounding of 1, of which it is the rest.
Bounded activation_backward(Activation kind, const Bounded& x, const Bounded& dy) {
  Bounded dx(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Curve curve = curve_at(kind, x.value[i]);
    dx.value[i] = dy.value[i] * curve.slope;
    dx.variance[i] = square(curve.slope) * dy.variance[i] +
                     square(dy.value[i]) * (square(curve.bend) * x.variance[i] + square(x.variance[i]));
    dx.tie[i] = std::abs(curve.slope) * dy.tie[i];
    dx.round(i, kActivationUnits * std::abs(dy.value[i]), 1);
  }
  return dx;
}

Bounded dropout(const DropoutOp& op, const LayerContext& context, const Bounded& x) {
  Bounded y = x;
  if (!context.training || op.probability == 0) return y;
  const auto batch = static_cast<std::size_t>(context.batch);
  const int units = op.whole_channels ? context.channels : context.features;
  const std::size_t unit_size = x.size() / batch / static_cast<std::size_t>(units);
  const std::uint32_t threshold = dropout_threshold(op.probability);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto unit = static_cast<std::uint32_t>(i / batch / unit_size);
    const auto sample = context.dropout.first_sample + static_cast<std::uint32_t>(i % batch);
    const Philox4 bits =
        philox(context.dropout.seed,
               {{unit / 4, sample, random_stream(RandomUse::kDropout, op.layer), context.dropout.step}});
    const double factor =
        bits.value[unit % 4] < threshold ? 0 : 1 / (1 - static_cast<double>(op.probability));
    y.value[i] *= factor;
    y.variance[i] *= square(factor);
    y.tie[i] *= factor;
    y.round(i, std::abs(y.value[i]), 4);
  }
  return y;
}

}  // namespace lockstep::test
