// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Each layer by its kind.
#include "tests/models/random_networks/reference_layers.hpp"

#include "tests/support/prelude.hpp"

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
TransposedShape with_columns(const ConvTransposeOp& op, int batch) {
  return {with_columns(op.convolution, batch)};
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

namespace {

/// x times the scale of its channel and sample.
Bounded scaled(const ScaleShape& s, const Bounded& x, const Bounded& scale) {
  SumsUnderWay y(x.size());
  const auto batch = static_cast<std::size_t>(s.batch), channel = batch * static_cast<std::size_t>(s.pixels);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t of_scale = i / channel * batch + i % batch;
    y.add(i, x, i, scale.value[of_scale], scale.variance[of_scale]);
  }
  return y.take();
}

/// The sums of a times b over the pixels of each channel.
Bounded summed_products(const ScaleShape& s, const Bounded& a, const Bounded& b) {
  const auto batch = static_cast<std::size_t>(s.batch), channel = batch * static_cast<std::size_t>(s.pixels);
  SumsUnderWay y(a.size() / static_cast<std::size_t>(s.pixels));
  for (std::size_t i = 0; i < a.size(); ++i)
    y.add(i / channel * batch + i % batch, a, i, b.value[i], b.variance[i]);
  return y.take();
}

Bounded joined(const Bounded& a, const Bounded& b) {
  Bounded y(a.size() + b.size());
  for (const auto part : {&Bounded::value, &Bounded::variance, &Bounded::tie})
    std::copy((b.*part).begin(), (b.*part).end(),
              std::copy((a.*part).begin(), (a.*part).end(), (y.*part).begin()));
  return y;
}

Bounded part_of(const Bounded& a, std::size_t first, std::size_t size) {
  Bounded y(size);
  for (const auto part : {&Bounded::value, &Bounded::variance, &Bounded::tie})
    std::copy_n((a.*part).begin() + static_cast<std::ptrdiff_t>(first), size, (y.*part).begin());
  return y;
}

}  // namespace

Bounded layer_forward(const LayerOp& op, const LayerContext& context, const Bounded& x) {
  const auto product = [&](const auto& shape) {
    return product_forward(with_columns(shape, context.batch), context.weights, x);
  };
  return std::visit(
      Overloaded{
          [&](const Conv2dShape& shape) { return product(shape); },
          [&](const ConvTransposeOp& transposed) { return product(transposed); },
          [&](const LinearShape& shape) { return product(shape); },
          [&](const MaxPoolOp& pool) { return max_pool_forward(with_columns(pool.shape, context.batch), x); },
          [&](const AvgPoolOp& pool) { return avg_pool_forward(with_columns(pool.shape, context.batch), x); },
          [&](const ReluOp&) { return relu_forward(x); },
          [&](const DropoutOp& drop) { return dropout(drop, context, x); },
          [&](const ActivationOp& activation) { return activation_forward(activation.function, x); },
          [&](const GlobalAvgPoolOp& pool) {
            return adaptive_avg_pool_forward(whole_channels(pool, context.batch), x);
          },
          [&](const AdaptiveAvgPoolOp& pool) {
            return adaptive_avg_pool_forward(with_columns(pool.shape, context.batch), x);
          },
          [&](const BatchNormOp& norm) { return batch_norm_forward(norm, context, x); },
          [&](const GroupNormOp& norm) { return group_norm_forward(norm, context, x); },
          [&](const AddOp&) { return sum(x, *context.branch); },
          [&](const MultiplyOp& gate) {
            const ScaleShape shape = with_columns(gate.shape, context.batch);
            return gate.input_scales ? scaled(shape, *context.branch, x) : scaled(shape, x, *context.branch);
          },
          [&](const ConcatOp&) { return joined(*context.branch, x); },
          [&](const RouteOp&) { return *context.branch; }, [&](const ViewOp&) { return x; },
          [](const OwnOp&) -> Bounded { throw std::logic_error("only the layer knows"); }},
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
          [&](const ConvTransposeOp& transposed) { return product(transposed); },
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
            return activation_backward(activation.function, x, dy, ties);
          },
          [&](const GlobalAvgPoolOp& pool) { return global_avg_pool_backward(pool, context.batch, x, dy); },
          [&](const AdaptiveAvgPoolOp& pool) {
            return adaptive_avg_pool_backward(with_columns(pool.shape, context.batch), x, dy);
          },
          [&](const BatchNormOp& norm) { return batch_norm_backward(norm, context, x, dy); },
          [&](const GroupNormOp& norm) { return group_norm_backward(norm, context, x, dy); },
          [&](const AddOp&) { return dy; },
          [&](const MultiplyOp& gate) {
            const ScaleShape shape = with_columns(gate.shape, context.batch);
            return gate.input_scales ? summed_products(shape, dy, *context.branch)
                                     : scaled(shape, dy, *context.branch);
          },
          [&](const ConcatOp&) { return part_of(dy, context.branch->size(), x.size()); },
          [&](const RouteOp&) { return Bounded(x.size()); }, [&](const ViewOp&) { return dy; },
          [](const OwnOp&) -> Bounded { throw std::logic_error("only the layer knows"); }},
      op);
}

Bounded branch_gradient(const LayerOp& op, const LayerContext& context, const Bounded& x, const Bounded& dy) {
  if (std::holds_alternative<ConcatOp>(op)) return part_of(dy, 0, context.branch->size());
  const auto* product = std::get_if<MultiplyOp>(&op);
  if (product == nullptr) return dy;
  const ScaleShape shape = with_columns(product->shape, context.batch);
  return product->input_scales ? scaled(shape, dy, x) : summed_products(shape, dy, x);
}

Bounded weight_gradient(const LayerOp& op, const LayerContext& context, const Bounded& x, const Bounded& dy) {
  const auto product = [&](const auto& shape) {
    return product_weights(with_columns(shape, context.batch), context.weights, x, dy);
  };
  return std::visit(
      Overloaded{[&](const Conv2dShape& shape) { return product(shape); },
                 [&](const ConvTransposeOp& transposed) { return product(transposed); },
                 [&](const LinearShape& shape) { return product(shape); },
                 [&](const BatchNormOp& norm) { return batch_norm_weights(norm, context, x, dy); },
                 [&](const GroupNormOp& norm) { return group_norm_weights(norm, context, x, dy); },
                 [](const auto& /*without parameters*/) { return Bounded(); }},
      op);
}

namespace {

/// Rounding errors of an activation or its derivative, in units of the last place of the larger of both.
constexpr double kActivationUnits = 4;

/// The second derivative.
double bend_of(const ActivationFunction& f, double x) {
  const reference::Curve curve = reference::curve_of(f, x);
  switch (f.kind) {
    case Activation::kTanh:
      return -2 * curve.value * curve.slope;
    case Activation::kSigmoid:
      return curve.slope * (1 - 2 * curve.value);
    case Activation::kGelu:
      return (2 - x * x) * std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
    case Activation::kGeluTanh: {
      const double a = 2 * std::sqrt(2 / M_PI), b = 0.044715 * a, u = a * x + b * x * x * x;
      const double inner = a + 3 * b * x * x, slope = reference::curve_of(Activation::kSigmoid, u).slope;
      return 2 * slope * inner + x * (bend_of(Activation::kSigmoid, u) * inner * inner + slope * 6 * b * x);
    }
    case Activation::kElu:
      return x > 0 ? 0 : f.number * std::exp(x);
    case Activation::kSilu:
      return 2 * reference::curve_of(Activation::kSigmoid, x).slope + x * bend_of(Activation::kSigmoid, x);
    case Activation::kHardSwish:
      return std::abs(x) < 3 ? 1.0 / 3 : 0;
    default:
      return 0;
  }
}

/// By how much the slope may jump because rounding puts x on the other side of a bend.
double jump_near(const ActivationFunction& f, const Bounded& x, std::size_t i) {
  const double reach = Bounded::kSigmas * std::sqrt(x.variance[i]);
  const auto is_near = [&](double bend) { return reach > 0 && std::abs(x.value[i] - bend) <= reach; };
  const bool near_ends = is_near(-3) || is_near(3);
  switch (f.kind) {
    case Activation::kLeakyRelu:
    case Activation::kElu:
      return is_near(0) ? std::abs(1.0 - f.number) : 0;
    case Activation::kHardSigmoid:
      return near_ends ? 1.0 / 6 : 0;
    case Activation::kHardSwish:
      return near_ends ? 0.5 : 0;
    case Activation::kRelu6:
      return is_near(0) || is_near(6) ? 1 : 0;
    default:
      return 0;
  }
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

Bounded activation_forward(const ActivationFunction& f, const Bounded& x) {
  Bounded y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const reference::Curve curve = reference::curve_of(f, x.value[i]);
    const double bend = bend_of(f, x.value[i]);
    y.value[i] = curve.value;
    // Bend: where the slope vanishes, rounding still moves y by it.
    const double slope = std::abs(curve.slope) + jump_near(f, x, i);
    y.variance[i] = square(slope) * x.variance[i] + square(bend * x.variance[i]);
    y.round(i, kActivationUnits * std::max(std::abs(curve.value), std::abs(x.value[i] * curve.slope)), 1);
  }
  return y;
}

/// Error of the derivative: by the bend where x is off, and by the rounding of 1.
Bounded activation_backward(const ActivationFunction& f, const Bounded& x, const Bounded& dy,
                            std::int64_t& ties) {
  Bounded dx(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const reference::Curve curve = reference::curve_of(f, x.value[i]);
    const double bend = bend_of(f, x.value[i]);
    dx.value[i] = dy.value[i] * curve.slope;
    dx.variance[i] = square(curve.slope) * dy.variance[i] +
                     square(dy.value[i]) * (square(bend) * x.variance[i] + square(x.variance[i]));
    dx.tie[i] = std::abs(curve.slope) * dy.tie[i];
    dx.round(i, kActivationUnits * std::abs(dy.value[i]) * std::max(1.0F, f.number), 1);
    const double jump = jump_near(f, x, i);
    if (jump == 0) continue;
    dx.tie[i] += jump * (std::abs(dy.value[i]) + dy.allowed(i));
    ++ties;
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
