// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Layers that multiply with weights: convolutions and fully connected ones. The loops over all products are those of
/// tests/kernels/reference.
#pragma once

#include "tests/kernels/reference/conv2d.hpp"
#include "tests/kernels/reference/linear.hpp"
#include "tests/models/random_networks/sums_under_way.hpp"

#include <cstddef>
#include <span>

namespace lockstep::test {

inline std::size_t out_size(const Conv2dShape& s) {
  return s.out_size();
}
inline std::size_t out_size(const LinearShape& s) {
  return std::size_t{1} * static_cast<std::size_t>(s.out_features) * static_cast<std::size_t>(s.batch);
}
inline int outputs(const Conv2dShape& s) {
  return s.out_channels;
}
inline int outputs(const LinearShape& s) {
  return s.out_features;
}
template <class F>
void for_each_product(const Conv2dShape& s, F f) {
  reference::for_each_conv2d_product(s, f);
}
template <class F>
void for_each_product(const LinearShape& s, F f) {
  reference::for_each_linear_product(s, f);
}

/// @param weights  of the layer: weight, then bias if it has one
template <typename Shape>
Bounded product_forward(const Shape& s, std::span<const float> weights, const Bounded& x) {
  SumsUnderWay y(out_size(s));
  const std::size_t plane = out_size(s) / static_cast<std::size_t>(outputs(s));
  const bool has_bias = weights.size() > s.weight_size();
  for (std::size_t i = 0; has_bias && i < out_size(s); ++i)
    y.add(i, weights[s.weight_size() + i / plane], 0, 0, 1);
  for_each_product(s, [&](std::size_t xi, std::size_t wi, std::size_t yi) {
    y.add(yi, x.value[xi], x.variance[xi], 0, weights[wi]);
  });
  return y.take();
}

template <typename Shape>
Bounded product_backward(const Shape& s, std::span<const float> weights, const Bounded& x,
                         const Bounded& dy) {
  SumsUnderWay dx(x.size());
  for_each_product(s, [&](std::size_t xi, std::size_t wi, std::size_t yi) {
    dx.add(xi, dy.value[yi], dy.variance[yi], dy.tie[yi], weights[wi]);
  });
  return dx.take();
}

template <typename Shape>
Bounded product_weights(const Shape& s, std::span<const float> weights, const Bounded& x, const Bounded& dy) {
  SumsUnderWay dw(weights.size());
  for_each_product(s, [&](std::size_t xi, std::size_t wi, std::size_t yi) {
    dw.add(wi, dy.value[yi], dy.variance[yi], dy.tie[yi], x.value[xi], x.variance[xi]);
  });
  const std::size_t plane = dy.size() / static_cast<std::size_t>(outputs(s));
  const bool has_bias = weights.size() > s.weight_size();
  for (std::size_t i = 0; has_bias && i < dy.size(); ++i)
    dw.add(s.weight_size() + i / plane, dy.value[i], dy.variance[i], dy.tie[i], 1);
  return dw.take();
}

}  // namespace lockstep::test
