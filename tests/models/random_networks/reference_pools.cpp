// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/models/random_networks/reference_layers.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace lockstep::test {

namespace {

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

Pool2dShape whole_channels(const GlobalAvgPoolOp& pool, int batch) {
  const int pixels = pool.input.height * pool.input.width;
  return {
      .batch = batch, .channels = pool.input.channels, .in_height = pixels, .in_width = 1, .kernel = pixels};
}

}  // namespace

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

// Each y and dx depends on all numbers of its channel: errors of the others arrive by way of mean, variance
// and the means of dy and dy xhat, to first order.

namespace {

double squared(double x) {
  return x * x;
}

/// One channel, with its normalised numbers.
struct Channel {
  std::size_t first = 0, size = 0;
  double mean = 0, rstd = 0, weight = 1, bias = 0;
  bool of_batch = true;

  double xhat(const Bounded& x, std::size_t i) const { return (x.value[i] - mean) * rstd; }
};

Channel channel_of(const BatchNormOp& op, const LayerContext& context, const Bounded& x, std::size_t c) {
  const auto channels = static_cast<std::size_t>(op.input.channels);
  Channel channel{.first = c * (x.size() / channels), .size = x.size() / channels};
  if (op.affine) {
    channel.weight = context.weights[c];
    channel.bias = context.weights[channels + c];
  }
  channel.of_batch = context.training;
  if (!context.training) {
    channel.mean = context.kept[c];
    channel.rstd = 1 / std::sqrt(context.kept[channels + c] + op.eps);
    return channel;
  }
  double sum = 0, squares = 0;
  for (std::size_t i = channel.first; i < channel.first + channel.size; ++i) sum += x.value[i];
  channel.mean = sum / static_cast<double>(channel.size);
  for (std::size_t i = channel.first; i < channel.first + channel.size; ++i)
    squares += squared(x.value[i] - channel.mean);
  channel.rstd = 1 / std::sqrt(squares / static_cast<double>(channel.size) + op.eps);
  return channel;
}

/// What errors of all numbers of a channel do to one with the normalised value h, through the mean and the
/// part of h: the variance of sum_j (1 + h h_j) e_j / n.
struct Shared {
  double plain = 0, mixed = 0, square = 0;
  double of(double h) const { return plain + 2 * h * mixed + h * h * square; }
};

Shared shared_errors(const Channel& channel, const Bounded& x, const std::vector<double>& variance) {
  Shared shared;
  if (!channel.of_batch) return shared;
  const double n = static_cast<double>(channel.size);
  for (std::size_t i = channel.first; i < channel.first + channel.size; ++i) {
    const double h = channel.xhat(x, i), share = variance[i] / (n * n);
    shared.plain += share;
    shared.mixed += h * share;
    shared.square += h * h * share;
  }
  return shared;
}

/// The variance of xhat: its own x, the others', and the rounding of mean, difference and rstd.
double xhat_variance(const Channel& channel, const Bounded& x, const Shared& shared, std::size_t i) {
  const double h = channel.xhat(x, i), own = squared(channel.rstd) * (x.variance[i] + shared.of(h));
  return own + squared(Bounded::kUnit * (std::abs(channel.mean) * channel.rstd + 3 * std::abs(h)));
}

template <class Use>
void for_each_channel(const BatchNormOp& op, const LayerContext& context, const Bounded& x, const Use& use) {
  for (std::size_t c = 0; c < static_cast<std::size_t>(op.input.channels); ++c)
    use(channel_of(op, context, x, c), c);
}

}  // namespace

Bounded batch_norm_forward(const BatchNormOp& op, const LayerContext& context, const Bounded& x) {
  Bounded y(x.size());
  for_each_channel(op, context, x, [&](const Channel& channel, std::size_t) {
    const Shared shared = shared_errors(channel, x, x.variance);
    for (std::size_t i = channel.first; i < channel.first + channel.size; ++i) {
      y.value[i] = channel.xhat(x, i) * channel.weight + channel.bias;
      y.variance[i] = squared(channel.weight) * xhat_variance(channel, x, shared, i);
      y.round(i, std::abs(y.value[i]) + std::abs(channel.xhat(x, i) * channel.weight), 2);
    }
  });
  return y;
}

Bounded batch_norm_backward(const BatchNormOp& op, const LayerContext& context, const Bounded& x,
                            const Bounded& dy) {
  Bounded dx(x.size());
  for_each_channel(op, context, x, [&](const Channel& channel, std::size_t) {
    const double n = static_cast<double>(channel.size), scale = channel.rstd * channel.weight;
    const Shared of_x = shared_errors(channel, x, x.variance), of_dy = shared_errors(channel, x, dy.variance);
    double mean = 0, product = 0, product_error = 0, tie = 0, tie_product = 0;
    for (std::size_t i = channel.first; i < channel.first + channel.size; ++i) {
      mean += dy.value[i] / n;
      product += dy.value[i] * channel.xhat(x, i) / n;
      product_error += squared(dy.value[i] / n) * xhat_variance(channel, x, of_x, i);
      tie += dy.tie[i] / n;
      tie_product += dy.tie[i] * std::abs(channel.xhat(x, i)) / n;
    }
    const double rstd_error = squared(channel.rstd) * of_x.square + squared(2 * Bounded::kUnit);
    for (std::size_t i = channel.first; i < channel.first + channel.size; ++i) {
      const double h = channel.xhat(x, i);
      dx.value[i] = scale * (dy.value[i] - mean - h * product);
      dx.variance[i] = squared(scale) * (dy.variance[i] + of_dy.of(h) + squared(h) * product_error +
                                         squared(product) * xhat_variance(channel, x, of_x, i)) +
                       squared(dx.value[i]) * rstd_error;
      dx.tie[i] = std::abs(scale) * (dy.tie[i] + tie + std::abs(h) * tie_product);
      dx.round(i, std::abs(scale) * (std::abs(dy.value[i]) + std::abs(mean) + std::abs(h * product)), 4);
    }
  });
  return dx;
}

Bounded batch_norm_weights(const BatchNormOp& op, const LayerContext& context, const Bounded& x,
                           const Bounded& dy) {
  const auto channels = static_cast<std::size_t>(op.input.channels);
  Bounded dw(op.affine ? 2 * channels : 0);
  if (!op.affine) return dw;
  for_each_channel(op, context, x, [&](const Channel& channel, std::size_t c) {
    const Shared of_x = shared_errors(channel, x, x.variance);
    double common = 0;  // errors that all xhat have alike: the rounding of the mean, and of rstd
    for (std::size_t i = channel.first; i < channel.first + channel.size; ++i) {
      const double h = channel.xhat(x, i);
      dw.value[c] += dy.value[i] * h;
      dw.variance[c] += h * h * dy.variance[i] + squared(dy.value[i]) * xhat_variance(channel, x, of_x, i);
      dw.tie[c] += std::abs(h) * dy.tie[i];
      common += dy.value[i];
      dw.value[channels + c] += dy.value[i];
      dw.variance[channels + c] += dy.variance[i];
      dw.tie[channels + c] += dy.tie[i];
    }
    dw.variance[c] += squared(common * channel.rstd) * (squared(Bounded::kUnit * channel.mean) + of_x.plain) +
                      squared(dw.value[c]) * squared(channel.rstd) * of_x.square;
    dw.round(c, std::abs(dw.value[c]), 2);
    dw.round(channels + c, std::abs(dw.value[channels + c]), 1);
  });
  return dw;
}

}  // namespace lockstep::test
