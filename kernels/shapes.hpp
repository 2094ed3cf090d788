// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The sizes that an op is called with. Plain structs, shared by every backend and by GPU code.
///
/// `batch` is the number of columns of a tensor, the innermost dimension. It is the samples of one grain, padded up
/// to a multiple of cpu::kLanes. Columns beyond the real samples hold finite numbers that no result
/// looks at; loss_and_gradient gives them a zero gradient, so they add nothing to any parameter's
/// gradient.
#pragma once

#include "include/lockstep/shape.hpp"

#include <cstddef>
#include <cstdint>

namespace lockstep {

/// Rows and columns of an image, from the first on.
struct ImagePart {
  int height = 0, width = 0;

  friend constexpr bool operator==(const ImagePart&, const ImagePart&) = default;
};

/// x [in_channels, in_height, in_width, batch] → y [out_channels, out_height(), out_width(), batch],
/// filters [out_channels, group_inputs(), kernel_height, kernel_width]. Group g makes its share of y's channels, which
/// follow one another, of its share of x's.
struct Conv2dShape {
  int batch = 0;
  int in_channels = 0, in_height = 0, in_width = 0;
  int out_channels = 0;
  int kernel_height = 0, kernel_width = 0;
  int stride = 1;
  int padding = 0;   ///< zeros around the image, on each side
  int groups = 1;    ///< divides in_channels and out_channels
  int dilation = 1;  ///< pixels of x from one tap to the next
  /// Rows and columns of y that are read; 0 rows: all. A pool after y may drop the last ones. There dy is 0, and
  /// products with it are left out, which changes no bit, as x and the filters are finite. On a CPU no product of y is
  /// computed there either: y is the bias.
  ImagePart read = {};

  /// Pixels that the taps of a filter span.
  constexpr int reach_height() const { return (kernel_height - 1) * dilation + 1; }
  constexpr int reach_width() const { return (kernel_width - 1) * dilation + 1; }
  constexpr int out_height() const { return (in_height + 2 * padding - reach_height()) / stride + 1; }
  constexpr int out_width() const { return (in_width + 2 * padding - reach_width()) / stride + 1; }
  constexpr int read_height() const { return read.height > 0 ? read.height : out_height(); }
  constexpr int read_width() const { return read.height > 0 ? read.width : out_width(); }
  constexpr int group_inputs() const { return in_channels / groups; }
  constexpr int group_outputs() const { return out_channels / groups; }
  /// The common case, which has special kernels on GPUs.
  constexpr bool is_plain() const { return stride == 1 && groups == 1 && dilation == 1; }
  /// A group by itself.
  constexpr Conv2dShape group() const {
    Conv2dShape one = *this;
    one.in_channels = group_inputs();
    one.out_channels = group_outputs();
    one.groups = 1;
    return one;
  }
  constexpr std::size_t in_size() const {
    return std::size_t{1} * in_channels * in_height * in_width * batch;
  }
  constexpr std::size_t out_size() const {
    return std::size_t{1} * out_channels * out_height() * out_width() * batch;
  }
  constexpr std::size_t weight_size() const {
    return std::size_t{1} * out_channels * group_inputs() * kernel_height * kernel_width;
  }
  /// Multiplications and additions of one direction (forward, data gradient or weight gradient) for what is read of y,
  /// without padding.
  constexpr double flops() const {
    const double numbers = static_cast<double>(out_channels) * read_height() * read_width() * batch;
    return 2.0 * numbers * group_inputs() * kernel_height * kernel_width;
  }
};

/// x [channels, in_height, in_width, batch] → y [channels, out_height(), out_width(), batch]. Windows never
/// consist of padding alone: padding <= kernel / 2, as in PyTorch. Windows that would overrun are dropped.
struct Pool2dShape {
  int batch = 0;
  int channels = 0, in_height = 0, in_width = 0;
  int kernel = 2;
  int stride = 2;
  int padding = 0;  ///< max-pool: minus infinity; avg-pool: zeros that count in the average

  constexpr int out_height() const { return (in_height + 2 * padding - kernel) / stride + 1; }
  constexpr int out_width() const { return (in_width + 2 * padding - kernel) / stride + 1; }
  constexpr std::size_t in_size() const { return std::size_t{1} * channels * in_height * in_width * batch; }
  constexpr std::size_t out_size() const {
    return std::size_t{1} * channels * out_height() * out_width() * batch;
  }
  /// The common case, which has a special path on CPUs: four taps, no overlap, no padding.
  constexpr bool is_halving() const { return kernel == 2 && stride == 2 && padding == 0; }
};

/// x [channels, in_height, in_width, batch] → y [channels, out_height, out_width, batch]. Row i of y is made of the
/// rows from floor(i in / out) to ceil((i + 1) in / out) of x, columns likewise: neighbours may overlap.
struct AdaptivePoolShape {
  int batch = 0;
  int channels = 0, in_height = 0, in_width = 0;
  int out_height = 1, out_width = 1;

  constexpr std::size_t in_size() const { return std::size_t{1} * channels * in_height * in_width * batch; }
  constexpr std::size_t out_size() const {
    return std::size_t{1} * channels * out_height * out_width * batch;
  }
};

/// x [in_features, batch] → y [out_features, batch], weights [out_features, in_features] as in PyTorch.
struct LinearShape {
  int batch = 0;
  int in_features = 0;
  int out_features = 0;

  constexpr std::size_t weight_size() const { return std::size_t{1} * in_features * out_features; }
  constexpr double flops() const { return 2.0 * batch * static_cast<double>(weight_size()); }
};

/// x [units, unit_size, batch]. A unit is kept or dropped as a whole: unit_size is 1 for dropout and
/// height * width for dropout2d.
struct DropoutShape {
  int batch = 0;
  int units = 0;
  int unit_size = 1;
  float probability = 0.5F;  ///< probability of dropping a unit; in [0, 1)
};

/// x and y [channels, pixels, batch], a scale for each channel of each sample [channels, batch].
struct ScaleShape {
  int batch = 0;
  int channels = 0;
  int pixels = 1;
};

/// Neighbouring features of one tensor that become some of another.
struct FeatureCopy {
  int batch = 0;
  int count = 0;  ///< number of features
  int from_features = 0, from_first = 0;
  int to_features = 0, to_first = 0;
};

/// Kinds of loss. The cross-entropy is that of the softmax. The other two are means over the classes, of outputs
/// against targets; the binary one takes the logistic function of its outputs.
enum class LossKind : std::uint8_t { kCrossEntropy, kMeanSquares, kBinaryCrossEntropy };

class HostLoss;  // kernels/cpu/ops.hpp

/// The target of a sample is `spread` for each class, and `label_share` more for its label. docs/arithmetic.md has the
/// order of operations.
struct LossRule {
  LossKind kind = LossKind::kCrossEntropy;
  float label_share = 1, spread = 0;
  /// Class weights of the cross-entropy, [classes], in the memory of the logits. The target of a class times its weight
  /// is what counts. Null: all are 1.
  const float* class_weights = nullptr;
  float weight_sum = 0;  ///< sum of the class weights
  /// Labels of the binary cross-entropy, [rows, classes], in the memory of the logits. 1: the class is a label; else 0.
  /// Labels of samples are rows of it. Null: they are classes.
  const std::uint8_t* label_sets = nullptr;
  /// Factor of losses and gradients, with class_weights. On a GPU given a StepState, its loss_scales replace it.
  float scale = 1;
  const HostLoss* own = nullptr;  ///< on CPUs, in place of all of the above; borrowed

  constexpr bool is_plain() const {
    return kind == LossKind::kCrossEntropy && spread == 0 && label_share == 1 && class_weights == nullptr &&
           own == nullptr;
  }
};

/// A second label of a sample, and what it counts: at most a half. The first one has the rest.
struct MixedLabel {
  std::int32_t label = 0;
  float share = 0;
};

/// logits [classes, batch]; of the `batch` columns the first `samples` are real.
struct LossShape {
  int batch = 0;
  int samples = 0;
  int classes = 0;
  LossRule rule = {};
  /// [samples], in the memory of the logits, for the cross-entropy: `label_share` of the rule is split between both
  /// labels. Null: samples have one label.
  const MixedLabel* mixed = nullptr;

  constexpr bool is_plain() const { return rule.is_plain() && mixed == nullptr; }

  constexpr float weight_sum() const {
    return rule.class_weights == nullptr ? static_cast<float>(classes) : rule.weight_sum;
  }
};

/// x and y [channels, pixels, batch]; a group of neighbouring channels of one sample is normalised together. Each
/// channel has a weight and a bias. Statistics are mean, then 1 / deviation, each [groups, batch].
struct GroupNormShape {
  int batch = 0;
  int groups = 1;  ///< divides the channels
  int channels = 0;
  int pixels = 1;

  constexpr int channels_of_group() const { return channels / groups; }
  constexpr int group_size() const { return channels_of_group() * pixels; }
  constexpr std::size_t statistics_size() const { return std::size_t{2} * groups * batch; }
};

/// From a data set [sample][features], take `samples` rows and lay them out as [features, batch]. In images,
/// the features of a channel are neighbours, features / channels of them.
struct GatherShape {
  int batch = 0;
  int samples = 0;
  int features = 0;
  int channels = 1;
};

// Functions of one number that layers apply to each number of a tensor.

/// kGeluTanh is the approximation of GELU by tanh.
enum class Activation : std::uint8_t {
  kTanh,
  kSigmoid,
  kGelu,
  kGeluTanh,
  kLeakyRelu,
  kElu,
  kSilu,
  kHardSigmoid,
  kHardSwish,
  kRelu6
};
inline constexpr Activation kLastActivation = Activation::kRelu6;

/// One of them with its number, which is not negative: kLeakyRelu's slope below 0, kElu's alpha; others have
/// none.
struct ActivationFunction {
  Activation kind = Activation::kTanh;
  float number = 0;

  constexpr ActivationFunction(Activation of_kind, float its_number = 0)
      : kind(of_kind), number(its_number) {}
  /// The derivative is computed of what ops call `saved`: of x, or else of y.
  constexpr bool saves_input() const {
    return kind == Activation::kGelu || kind == Activation::kGeluTanh || kind == Activation::kSilu ||
           kind == Activation::kHardSwish;
  }
};

// A grain's gradient as several terms, each of which is rounded to fixed point. (GradientSplit in
// kernels/sum_cuts.hpp says why and how many.)

/// Destination of the terms of a layer's gradients. Term t goes to dw + t * term_stride and db + t * term_stride.
struct GradientOutput {
  float* dw = nullptr;
  float* db = nullptr;
  std::size_t term_stride = 0;
};

/// Terms that the caller adds up: [count], one every `stride` elements.
struct GradientTerms {
  const float* first = nullptr;
  int count = 1;
  std::size_t stride = 0;

  const float* term(int t) const { return first + static_cast<std::size_t>(t) * stride; }
};

/// One grain's contribution to the statistics of a step.
struct LossSums {
  /// Sum over the samples whose loss is finite, each rounded to 2^-32 nats: exact below 2^21.
  double loss = 0;
  std::int64_t correct = 0;     ///< samples whose largest logit (first one among equals) is their label
  std::int64_t not_finite = 0;  ///< samples whose loss is NaN or infinite
};

/// Bytes that a relu remembers of `size` numbers.
constexpr std::size_t sign_bytes(std::size_t size) {
  return (size + 7) / 8;
}

}  // namespace lockstep
