// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Batch normalisation: its shapes, the order of its sums, and the numbers computed once for each channel. One
/// code for CPUs and GPUs, so that all devices round in one order.
///
/// Sums over the global batch are long sums (kernels/numerics/sums.hpp), whose terms are the sums of parts.
/// A part is a run of kBatchNormRun groups of one channel of one grain: group k is the k-th 16 samples of a
/// pixel, pixel after pixel. A group is added number by number to sums of 16 lanes of chain k % 4, in double,
/// where products of floats are exact; then the chains are (0 + 1) + (2 + 3), and the lanes in a tree that
/// halves their number. Columns after the samples count nothing.
#pragma once

#include "kernels/numerics/random.hpp"
#include "kernels/numerics/sums.hpp"

#include <cmath>
#include <cstdint>

namespace lockstep {

/// Sizes of one grain on a CPU, or of all grains of a rank on a GPU.
struct BatchNormShape {
  int batch = 0;    ///< columns
  int samples = 0;  ///< columns that are samples; on a GPU all of them
  int channels = 0;
  int pixels = 0;  ///< numbers of a channel in a sample
};

inline constexpr int kBatchNormLanes = 16, kBatchNormChains = 4, kBatchNormRun = 256;

/// Sums of each channel in each direction: of x and x x; of dy and dy xhat.
inline constexpr int kBatchNormSums = 2;
inline constexpr int kBatchNormWords = kBatchNormSums * kLongSumWords;  ///< words of a channel

/// Statistics of one channel over the global batch, for a step of training.
struct BatchNormChannel {
  float mean = 0;
  float rstd = 0;      ///< 1 / sqrt(variance + eps)
  float variance = 0;  ///< unbiased, that is with n - 1: for the running variance
  // Set by the backward pass:
  float mean_dy = 0, mean_dy_xhat = 0;  ///< over all numbers of the channel
  float dweight = 0, dbias = 0;         ///< sums
};

/// 1 / sqrt(variance + eps), rounded once from double.
LOCKSTEP_HOST_DEVICE inline float batch_norm_rstd(double variance, double eps) {
  return static_cast<float>(1 / sqrt(variance + eps));
}

/// @param sums   sums of x and x x, over `count` numbers
LOCKSTEP_HOST_DEVICE inline void set_batch_statistics(const std::int64_t* sums, std::int64_t count,
                                                      double eps, BatchNormChannel& channel) {
  const auto n = static_cast<double>(count);
  const double mean = long_sum_value(sums) / n, square = long_sum_value(sums + kLongSumWords) / n;
  const double difference = square - mean * mean;
  const double variance = difference < 0 ? 0 : difference;  // NaN stays NaN
  channel.mean = static_cast<float>(mean);
  channel.rstd = batch_norm_rstd(variance, eps);
  channel.variance = static_cast<float>(variance * n / (n - 1));
}

/// @param sums   sums of dy and dy xhat, over `count` numbers
LOCKSTEP_HOST_DEVICE inline void set_batch_gradients(const std::int64_t* sums, std::int64_t count,
                                                     BatchNormChannel& channel) {
  const auto n = static_cast<double>(count);
  const double dy = long_sum_value(sums), dy_xhat = long_sum_value(sums + kLongSumWords);
  channel.dbias = static_cast<float>(dy);
  channel.dweight = static_cast<float>(dy_xhat);
  channel.mean_dy = static_cast<float>(dy / n);
  channel.mean_dy_xhat = static_cast<float>(dy_xhat / n);
}

/// For evaluation.
LOCKSTEP_HOST_DEVICE inline void set_running_statistics(float running_mean, float running_var, double eps,
                                                        BatchNormChannel& channel) {
  channel.mean = running_mean;
  channel.rstd = batch_norm_rstd(running_var, eps);
}

/// Running statistics go part of the way to the batch's.
LOCKSTEP_HOST_DEVICE inline void move_running_statistics(const BatchNormChannel& channel, float momentum,
                                                         float& running_mean, float& running_var) {
  running_mean = fmaf(momentum, channel.mean - running_mean, running_mean);
  running_var = fmaf(momentum, channel.variance - running_var, running_var);
}

}  // namespace lockstep
