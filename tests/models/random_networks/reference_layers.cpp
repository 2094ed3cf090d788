// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The layers: sums of products share one loop each, found in tests/kernels/reference.
#include "tests/models/random_networks/reference_layers.hpp"

#include "tests/kernels/reference/conv2d.hpp"
#include "tests/kernels/reference/linear.hpp"
#include "tests/models/random_networks/reference_batch_norm.hpp"

#include <algorithm>

namespace lockstep::test {
namespace {

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <typename... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

/// Rounding errors of an activation or its derivative, in units of the last place of the larger of both.
constexpr double kActivationUnits = 4;

double square(double x) {
  return x * x;
}

template <typename Shape>
Shape with_columns(Shape shape, int batch) {
  shape.batch = batch;
  return shape;
}

std::size_t out_size(const Conv2dShape& s) {
  return s.out_size();
}
std::size_t out_size(const LinearShape& s) {
  return std::size_t{1} * static_cast<std::size_t>(s.out_features) * static_cast<std::size_t>(s.batch);
}
int outputs(const Conv2dShape& s) {
  return s.out_channels;
}
int outputs(const LinearShape& s) {
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

/// A tensor of sums under way: magnitudes and terms beside the numbers.
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
  Bounded take() {
    for (std::size_t i = 0; i < sums_.size(); ++i) sums_.round(i, magnitude_[i], terms_[i]);
    return std::move(sums_);
  }

 private:
  Bounded sums_;
  std::vector<double> magnitude_, terms_;
};

template <typename Shape>
Bounded product_forward(const Shape& s, std::span<const float> weights, const Bounded& x) {
  SumsUnderWay y(out_size(s));
  const std::size_t plane = out_size(s) / static_cast<std::size_t>(outputs(s));
  for (std::size_t i = 0; i < out_size(s); ++i) y.add(i, weights[s.weight_size() + i / plane], 0, 0, 1);
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
Bounded product_weights(const Shape& s, const Bounded& x, const Bounded& dy) {
  const auto biases = static_cast<std::size_t>(outputs(s));
  SumsUnderWay dw(s.weight_size() + biases);
  for_each_product(s, [&](std::size_t xi, std::size_t wi, std::size_t yi) {
    dw.add(wi, dy.value[yi], dy.variance[yi], dy.tie[yi], x.value[xi], x.variance[xi]);
  });
  const std::size_t plane = dy.size() / biases;
  for (std::size_t i = 0; i < dy.size(); ++i)
    dw.add(s.weight_size() + i / plane, dy.value[i], dy.variance[i], dy.tie[i], 1);
  return dw.take();
}

/// Calls f(y index, x indices of the window in row-major order) for each window of each sample.
template <class F>
void for_each_window(const Pool2dShape& s, F f) {
  std::vector<std::size_t> window;
  std::size_t y = 0;
  for (int c = 0; c < s.channels; ++c)
    for (int p = 0; p < s.out_height(); ++p)
      for (int q = 0; q < s.out_width(); ++q)
        for (int n = 0; n < s.batch; ++n, ++y) {
          window.clear();
          for (int r = 0; r < s.kernel; ++r)
            for (int t = 0; t < s.kernel; ++t) {
              const int h = p * s.stride - s.padding + r, w = q * s.stride - s.padding + t;
              if (h < 0 || h >= s.in_height || w < 0 || w >= s.in_width) continue;
              window.push_back(
                  static_cast<std::size_t>(((c * s.in_height + h) * s.in_width + w) * s.batch + n));
            }
          f(y, window);
        }
}

std::size_t first_largest(const Bounded& x, const std::vector<std::size_t>& window) {
  return *std::max_element(window.begin(), window.end(),
                           [&](std::size_t a, std::size_t b) { return x.value[a] < x.value[b]; });
}

/// Rounding may make i larger than the largest. Equal numbers that fp32 has exactly are no tie: the first
/// wins.
bool may_win(const Bounded& x, std::size_t i, std::size_t largest) {
  const double sigma = std::sqrt(x.variance[i]) + std::sqrt(x.variance[largest]);
  return i != largest && sigma > 0 && x.value[largest] - x.value[i] <= Bounded::kSigmas * sigma;
}

Bounded max_pool_forward(const Pool2dShape& s, const Bounded& x) {
  Bounded y(s.out_size());
  for_each_window(s, [&](std::size_t to, const std::vector<std::size_t>& window) {
    const std::size_t largest = first_largest(x, window);
    y.value[to] = x.value[largest];
    y.variance[to] = x.variance[largest];
    for (const std::size_t i : window) {
      if (may_win(x, i, largest)) y.variance[to] = std::max(y.variance[to], x.variance[i]);
    }
  });
  return y;
}

void add_gradient(Bounded& dx, std::size_t to, const Bounded& dy, std::size_t from, double factor) {
  const double sum = dx.value[to], term = factor * dy.value[from];
  dx.value[to] += term;
  dx.variance[to] += square(factor) * dy.variance[from];
  dx.tie[to] += std::abs(factor) * dy.tie[from];
  if (sum != 0 || factor != 1) dx.round(to, std::abs(sum) + std::abs(term), 1);
}

Bounded max_pool_backward(const Pool2dShape& s, const Bounded& x, const Bounded& dy, std::int64_t& ties) {
  Bounded dx(x.size());
  for_each_window(s, [&](std::size_t from, const std::vector<std::size_t>& window) {
    const std::size_t largest = first_largest(x, window);
    bool tied = false;
    for (const std::size_t i : window) {
      if (!may_win(x, i, largest)) continue;
      tied = true;
      dx.tie[i] += std::abs(dy.value[from]) + dy.allowed(from);
    }
    add_gradient(dx, largest, dy, from, 1);
    if (tied) dx.tie[largest] += std::abs(dy.value[from]) + dy.allowed(from);
    ties += tied ? 1 : 0;
  });
  return dx;
}

Bounded avg_pool_forward(const Pool2dShape& s, const Bounded& x) {
  SumsUnderWay y(s.out_size());
  for_each_window(s, [&](std::size_t to, const std::vector<std::size_t>& window) {
    for (const std::size_t i : window) y.add(to, x.value[i], x.variance[i], 0, 1.0 / (s.kernel * s.kernel));
  });
  return y.take();
}

Bounded avg_pool_backward(const Pool2dShape& s, const Bounded& x, const Bounded& dy) {
  SumsUnderWay dx(x.size());
  for_each_window(s, [&](std::size_t from, const std::vector<std::size_t>& window) {
    for (const std::size_t i : window)
      dx.add(i, dy.value[from], dy.variance[from], dy.tie[from], 1.0 / (s.kernel * s.kernel));
  });
  return dx.take();
}

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

Pool2dShape whole_channels(const GlobalAvgPoolOp& pool, int batch) {
  const int pixels = pool.input.height * pool.input.width;
  return {
      .batch = batch, .channels = pool.input.channels, .in_height = pixels, .in_width = 1, .kernel = pixels};
}

Bounded global_avg_pool_forward(const GlobalAvgPoolOp& pool, int batch, const Bounded& x) {
  const Pool2dShape s = whole_channels(pool, batch);
  const auto columns = static_cast<std::size_t>(batch), pixels = static_cast<std::size_t>(s.kernel);
  SumsUnderWay y(x.size() / pixels);
  for (std::size_t i = 0; i < x.size(); ++i)
    y.add(i / (pixels * columns) * columns + i % columns, x.value[i], x.variance[i], 0, 1.0 / s.kernel);
  return y.take();
}

Bounded global_avg_pool_backward(const GlobalAvgPoolOp& pool, int batch, const Bounded& x,
                                 const Bounded& dy) {
  const Pool2dShape s = whole_channels(pool, batch);
  const auto columns = static_cast<std::size_t>(batch), pixels = static_cast<std::size_t>(s.kernel);
  Bounded dx(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    add_gradient(dx, i, dy, i / (pixels * columns) * columns + i % columns, 1.0 / s.kernel);
  return dx;
}

/// The same in both directions.
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
    return product_weights(with_columns(shape, context.batch), x, dy);
  };
  return std::visit(
      Overloaded{[&](const Conv2dShape& shape) { return product(shape); },
                 [&](const LinearShape& shape) { return product(shape); },
                 [&](const BatchNormOp& norm) { return batch_norm_weights(norm, context, x, dy); },
                 [](const auto& /*without parameters*/) { return Bounded(); }},
      op);
}

}  // namespace lockstep::test
