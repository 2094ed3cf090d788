// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Each layer by its kind.
#include "tests/models/random_networks/reference_layers.hpp"

#include "tests/models/random_networks/reference_activations.hpp"
#include "tests/models/random_networks/reference_batch_norm.hpp"
#include "tests/models/random_networks/reference_pools.hpp"
#include "tests/models/random_networks/reference_products.hpp"

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
          [&](const ActivationOp& activation) { return activation_backward(activation.kind, x, dy); },
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

}  // namespace lockstep::test
