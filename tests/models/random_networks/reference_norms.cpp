// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Normalisation in double, with bounds on what fp32 may make of it.
#include "tests/models/random_networks/reference_layers.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::test {

// Each y and dx depends on all numbers of its channel. Errors of the others arrive by way of mean, variance
// and the means of dy and dy xhat, to first order.

namespace {

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
    squares += square(x.value[i] - channel.mean);
  channel.rstd = 1 / std::sqrt(squares / static_cast<double>(channel.size) + op.eps);
  return channel;
}

/// Effect of errors in all numbers of a channel on the normalised value h. It is through the mean and the
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
  const double h = channel.xhat(x, i), own = square(channel.rstd) * (x.variance[i] + shared.of(h));
  return own + square(Bounded::kUnit * (std::abs(channel.mean) * channel.rstd + 3 * std::abs(h)));
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
      y.variance[i] = square(channel.weight) * xhat_variance(channel, x, shared, i);
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
      product_error += square(dy.value[i] / n) * xhat_variance(channel, x, of_x, i);
      tie += dy.tie[i] / n;
      tie_product += dy.tie[i] * std::abs(channel.xhat(x, i)) / n;
    }
    const double rstd_error = square(channel.rstd) * of_x.square + square(2 * Bounded::kUnit);
    for (std::size_t i = channel.first; i < channel.first + channel.size; ++i) {
      const double h = channel.xhat(x, i);
      dx.value[i] = scale * (dy.value[i] - mean - h * product);
      dx.variance[i] = square(scale) * (dy.variance[i] + of_dy.of(h) + square(h) * product_error +
                                        square(product) * xhat_variance(channel, x, of_x, i)) +
                       square(dx.value[i]) * rstd_error;
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
      dw.variance[c] += h * h * dy.variance[i] + square(dy.value[i]) * xhat_variance(channel, x, of_x, i);
      dw.tie[c] += std::abs(h) * dy.tie[i];
      common += dy.value[i];
      dw.value[channels + c] += dy.value[i];
      dw.variance[channels + c] += dy.variance[i];
      dw.tie[channels + c] += dy.tie[i];
    }
    dw.variance[c] += square(common * channel.rstd) * (square(Bounded::kUnit * channel.mean) + of_x.plain) +
                      square(dw.value[c]) * square(channel.rstd) * of_x.square;
    dw.round(c, std::abs(dw.value[c]), 2);
    dw.round(channels + c, std::abs(dw.value[channels + c]), 1);
  });
  return dw;
}

// The numbers of a group, one behind the other, are the channel of a batch_norm without weights.

namespace {

/// Position of number i of [channels, pixels, batch] among [groups, batch, numbers].
std::size_t grouped(const GroupNormOp& op, std::size_t batch, std::size_t i) {
  const auto size = static_cast<std::size_t>(op.shape.group_size());
  const std::size_t feature = i / batch, sample = i % batch;
  return (feature / size * batch + sample) * size + feature % size;
}

Bounded into_groups(const GroupNormOp& op, int batch, const Bounded& x, bool back = false) {
  Bounded y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::size_t from = i, to = grouped(op, static_cast<std::size_t>(batch), i);
    if (back) std::swap(from, to);
    for (const auto part : {&Bounded::value, &Bounded::variance, &Bounded::tie})
      (y.*part)[to] = (x.*part)[from];
  }
  return y;
}

Bounded out_of_groups(const GroupNormOp& op, int batch, const Bounded& x) {
  return into_groups(op, batch, x, true);
}

BatchNormOp norm_of_groups(const GroupNormOp& op, int batch) {
  return {.input = {op.shape.groups * batch, 1, 1}, .eps = op.eps, .affine = false};
}

LayerContext in_training(LayerContext context) {
  context.training = true;
  return context;
}

Bounded normalised(const GroupNormOp& op, const LayerContext& context, const Bounded& x) {
  return out_of_groups(op, context.batch,
                       batch_norm_forward(norm_of_groups(op, context.batch), in_training(context),
                                          into_groups(op, context.batch, x)));
}

std::size_t channel_of(const GroupNormOp& op, const LayerContext& context, std::size_t i) {
  return i / static_cast<std::size_t>(context.batch * op.shape.pixels);
}

}  // namespace

Bounded group_norm_forward(const GroupNormOp& op, const LayerContext& context, const Bounded& x) {
  Bounded y = normalised(op, context, x);
  const auto channels = static_cast<std::size_t>(op.shape.channels);
  for (std::size_t i = 0; op.affine && i < y.size(); ++i) {
    const std::size_t c = channel_of(op, context, i);
    const double product = y.value[i] * context.weights[c];
    y.value[i] = product + context.weights[channels + c];
    y.variance[i] *= square(context.weights[c]);
    y.round(i, std::abs(product) + std::abs(y.value[i]), 1);
  }
  return y;
}

Bounded group_norm_backward(const GroupNormOp& op, const LayerContext& context, const Bounded& x,
                            const Bounded& dy) {
  Bounded g = dy;
  for (std::size_t i = 0; op.affine && i < g.size(); ++i) {
    const double weight = context.weights[channel_of(op, context, i)];
    g.value[i] *= weight;
    g.variance[i] *= square(weight);
    g.tie[i] *= std::abs(weight);
    g.round(i, std::abs(g.value[i]), 1);
  }
  return out_of_groups(
      op, context.batch,
      batch_norm_backward(norm_of_groups(op, context.batch), in_training(context),
                          into_groups(op, context.batch, x), into_groups(op, context.batch, g)));
}

/// Rounding may affect all numbers of a group alike: such errors add up.
Bounded group_norm_weights(const GroupNormOp& op, const LayerContext& context, const Bounded& x,
                           const Bounded& dy) {
  const auto channels = static_cast<std::size_t>(op.shape.channels);
  Bounded dw(op.affine ? 2 * channels : 0);
  if (!op.affine) return dw;
  const Bounded h = normalised(op, context, x);
  std::vector<double> error(channels);
  for (std::size_t i = 0; i < dy.size(); ++i) {
    const std::size_t c = channel_of(op, context, i), bias = channels + c;
    dw.value[c] += dy.value[i] * h.value[i];
    dw.variance[c] += square(h.value[i]) * dy.variance[i];
    dw.tie[c] += std::abs(h.value[i]) * dy.tie[i];
    error[c] += std::abs(dy.value[i]) * std::sqrt(h.variance[i]);
    dw.value[bias] += dy.value[i];
    dw.variance[bias] += dy.variance[i];
    dw.tie[bias] += dy.tie[i];
  }
  for (std::size_t c = 0; c < channels; ++c) {
    dw.variance[c] += square(error[c]);
    dw.round(c, std::abs(dw.value[c]), 1);
    dw.round(channels + c, std::abs(dw.value[channels + c]), 1);
  }
  return dw;
}

}  // namespace lockstep::test
