// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Every op of a CPU: free functions, written by hand with Google Highway, one file an op. (The ops of GPUs work on
/// whole batches and have another contract, kernels/device_ops.hpp.)
///
/// Conventions, stated once:
/// - Tensors are fp32 and *batch innermost*: [channel][row][column][sample]. A SIMD register holds the same
///   pixel of different samples. `batch` in a shape is a multiple of kLanes; see kernels/shapes.hpp.
/// - Pointers are 64-byte aligned where they start a tensor (weights and gradients inside an arena only
///   4-byte), and do not overlap unless an op says "in place".
/// - Outputs are overwritten, unless an op says "accumulates".
/// - Gradients are *sums* over the samples; no kernel divides before the reduction over all ranks.
/// - Any thread may call an op, at the same time as others: scratch memory belongs to the calling thread and is kept.
/// - Bits depend only on arguments: not on the SIMD width of the machine (with fused multiply-add), nor on
///   `batch` padding, nor on earlier calls. They are those of every other device (docs/arithmetic.md); the order of
///   sums is that of kernels/sum_cuts.hpp.
/// - Shapes were validated by the caller (models/); an op only asserts.
/// - The first call of an op picks the widest instruction set of the machine (kernels/cpu/simd_choice.hpp).
#pragma once

#include "kernels/batch_norm.hpp"
#include "kernels/numerics/random.hpp"
#include "kernels/numerics/sums.hpp"
#include "kernels/optimizers/update_rule.hpp"
#include "kernels/shapes.hpp"
#include "kernels/sum_cuts.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {
struct AugmentPlan;  // kernels/numerics/augment.hpp
struct SampleMix;    // kernels/mix.hpp

/// A loss that a program brings along (LossRule::own). Called by several threads at once.
class HostLoss {
 public:
  virtual ~HostLoss() = default;
  /// As cpu::loss_and_gradient; `dlogits` may be `logits`, or null.
  virtual void compute(const LossShape& shape, const float* logits, const std::int32_t* labels,
                       float* dlogits, LossSums* sums) const = 0;
};

}  // namespace lockstep

namespace lockstep::cpu {

/// Samples that are processed together; every `batch` is a multiple. One 64-byte line: a vector of AVX-512,
/// two of AVX2.
inline constexpr int kLanes = 16;

/// Output channels of a convolution that are computed at a time, for this batch: fewer in a call are slower.
int channels_at_once(int batch);

/// Multiplications and additions that a direction of a convolution needs: of what is read of y, none with padding.
double conv2d_flops(const Conv2dShape& shape);
/// y = conv(x, w) + b: cross-correlation, as everywhere in deep learning.
/// x [C,H,W,N]  w [K,C,R,S]  b [K]; null: zeros  y [K,P,Q,N]
void conv2d_forward(const Conv2dShape& shape, const float* x, const float* w, const float* b, float* y);
/// dx [C,H,W,N] from dy [K,P,Q,N]; touches only the taps that lie inside dy. With b [C] it is the forward pass of a
/// transposed convolution; null: zeros.
void conv2d_backward_data(const Conv2dShape& shape, const float* dy, const float* w, const float* b,
                          float* dx);
/// dw [K,C,R,S] and db [K], summed over samples and pixels, in as many terms as the split says.
/// @param split  the layer's, for a full grain. The shape may have a part of the layer's output channels, and the grain
///               may be smaller
void conv2d_backward_weights(const Conv2dShape& shape, const GradientSplit& split, const float* x,
                             const float* dy, const GradientOutput& to);

/// y = max over each window; argmax [C,P,Q,N]: position (row * kernel + column) of the first maximum. (NaN
/// wins, as in PyTorch.) If windows overlap, a pixel's gradient is added up in row-major order of them.
/// @throws InternalError  the kernel is larger than 16 x 16: argmax is one byte
void max_pool_forward(const Pool2dShape& shape, const float* x, float* y, std::uint8_t* argmax);
void max_pool_backward(const Pool2dShape& shape, const float* dy, const std::uint8_t* argmax, float* dx);
/// y = mean over each window: its sum, in row-major order, times the rounded 1 / (kernel * kernel).
void avg_pool_forward(const Pool2dShape& shape, const float* x, float* y);
void avg_pool_backward(const Pool2dShape& shape, const float* dy, float* dx);

/// y = mean over each window, like avg_pool. If windows overlap, a pixel's gradient is added up in row-major order of
/// them.
void adaptive_avg_pool_forward(const AdaptivePoolShape& shape, const float* x, float* y);
void adaptive_avg_pool_backward(const AdaptivePoolShape& shape, const float* dy, float* dx);

/// y [C,N] = mean over each channel of x [C,H,W,N]. Pixel k, row by row, is added to sum k % 4; then
/// (sum 0 + sum 1) + (sum 2 + sum 3), times the rounded 1 / (H W).
void global_avg_pool_forward(const ImageShape& shape, int batch, const float* x, float* y);
void global_avg_pool_backward(const ImageShape& shape, int batch, const float* dy, float* dx);

// Batch normalisation: kernels/batch_norm.hpp has the order of the sums. x, y, dy, dx [channels, pixels, N].
/// Accumulates the sums of x and x x: long sums [channels][kBatchNormWords].
void batch_norm_sums(const BatchNormShape& shape, const float* x, std::int64_t* sums);
/// Layers after a batch norm that work on its output in place, computed with it. They cost no pass over memory.
struct NormSteps {
  const float* added = nullptr;  ///< first: y += added, or dy += added, as add(); null: nothing
  /// Second: y = max(y, 0), or the gradient of that, as relu_forward() and relu_backward().
  bool has_relu = false;
  std::uint8_t* positive = nullptr;  ///< for the backward pass of the relu; in evaluation null
};
/// y = (x - mean) (rstd weight) + bias, one rounding for the latter two; then the steps.
/// @param weight, bias  [channels]; null: 1 and 0
/// @param maxima        [N], overwritten with ColumnMaxima::bits of y; null: not wanted
void batch_norm_forward(const BatchNormShape& shape, const float* x, const BatchNormChannel* channels,
                        const float* weight, const float* bias, const NormSteps& steps, float* y,
                        std::uint32_t* maxima = nullptr);
/// Accumulates the sums of dy and dy xhat, where xhat = (x - mean) rstd. The steps, which change dy, come first.
void batch_norm_gradient_sums(const BatchNormShape& shape, const NormSteps& steps, const float* x, float* dy,
                              const BatchNormChannel* channels, std::int64_t* sums);
/// dx = (dy - mean_dy - xhat mean_dy_xhat) (rstd weight); 0 in padding columns.
/// @param maxima  [N], overwritten with ColumnMaxima::bits of dx; null: not wanted
void batch_norm_backward(const BatchNormShape& shape, const float* x, const float* dy,
                         const BatchNormChannel* channels, const float* weight, float* dx,
                         std::uint32_t* maxima = nullptr);

// layer_norm and group_norm: kernels/sum_cuts.hpp has the order of the sums. x, y, dy, dx [channels, pixels, N].
/// xhat = (x - mean) rstd; y = xhat weight + bias, one rounding for the latter two. mean, the sum over the group /
/// numbers, and rstd = 1 / sqrt(the sum of (x - mean)^2 / numbers + eps) are computed in double, then rounded.
/// @param weight, bias  [channels]; null: y = xhat
/// @param statistics    [shape.statistics_size()], overwritten
void group_norm_forward(const GroupNormShape& shape, double eps, const float* x, const float* weight,
                        const float* bias, float* statistics, float* y);
/// dx = (g - mean of g - xhat mean of g xhat) rstd, where g = dy weight. Means, over the group, are sums in double /
/// numbers, rounded. 0 in columns where dy is 0.
void group_norm_backward(const GroupNormShape& shape, const float* x, const float* dy, const float* weight,
                         const float* statistics, float* dx);
/// dweight and dbias [channels]: sums of dy xhat and of dy over pixels and samples.
void group_norm_weight_gradients(const GroupNormShape& shape, const float* x, const float* dy,
                                 const float* statistics, float* dweight, float* dbias);

/// y = w x + b.   x [I,N]  w [O,I]  b [O]  y [O,N]
void linear_forward(const LinearShape& shape, const float* x, const float* w, const float* b, float* y);
void linear_backward_data(const LinearShape& shape, const float* dy, const float* w, float* dx);
void linear_backward_weights(const LinearShape& shape, const float* x, const float* dy, float* dw, float* db);

/// y = max(x, 0) over `size` numbers (-0 and NaN stay as they are). In place when y == x.
/// @param positive  [sign_bytes(size)], a bit for each number: it is larger than 0. May be null
void relu_forward(std::size_t size, const float* x, float* y, std::uint8_t* positive);
/// dx = dy where forward found the number positive, else 0. In place when dx == dy.
void relu_backward(std::size_t size, const std::uint8_t* positive, const float* dy, float* dx);

/// y = f(x) over `size` numbers; kernels/numerics/activation_math.inc says how, and is the same on every
/// device. In place when y == x.
void activation_forward(const ActivationFunction& f, std::size_t size, const float* x, float* y);
/// dx = dy f'(x), computed of what the activation saves (kernels/shapes.hpp). In place when dx == dy.
void activation_backward(const ActivationFunction& f, std::size_t size, const float* saved, const float* dy,
                         float* dx);
/// y = a + b over `size` numbers. In place when y is a or b.
void add(std::size_t size, const float* a, const float* b, float* y);
/// y = x scale, or with `adds` y += x scale, where the product is rounded first. In place when y == x.
void scale_channels(const ScaleShape& shape, const float* x, const float* scale, bool adds, float* y);
/// y [C,N] = the sum over each channel of a b, both [C,pixels,N]. Pixel k goes to chain k % 4; then (sum 0 + sum 1) +
/// (sum 2 + sum 3). With `adds` y += that.
void sum_products(const ScaleShape& shape, const float* a, const float* b, bool adds, float* y);

/// y = x / (1 - p) for kept units, 0 for dropped ones (see DropoutKey). In place when y == x.
/// The gradient is the same op with the same key applied to dy.
void dropout(const DropoutShape& shape, const DropoutKey& key, const float* x, float* y);

/// logits [C,N] → natural logarithm of the softmax, y [C,N]. In place when y == x. The largest logit of a sample is
/// subtracted first, so no finite logit overflows.
void log_softmax(const LossShape& shape, const float* logits, float* y);
/// The samples' loss by shape.rule and shape.mixed, summed. `labels` [samples] in [0, classes), or rows of
/// shape.rule.label_sets: a sample is then right where the outputs above 0 are those of its labels. dlogits
/// [C,N], the gradient (of the plain cross-entropy softmax - onehot), for real columns, 0 for padding; may be null
/// (evaluation). In place when dlogits == logits. `sums` is overwritten. The loss of a sample is computed in float;
/// the samples are added in double, in their order. Logits with NaN or +infinity, or none but -infinity, give a NaN
/// loss and NaN gradients for that sample, which never counts as correct. Right is the answer in `labels`, also
/// where it is mixed. Losses that are not finite are counted, not added.
void loss_and_gradient(const LossShape& shape, const float* logits, const std::int32_t* labels,
                       float* dlogits, LossSums* sums);

/// Pixels [count][3] to three planes [count], which do not overlap.
void separate_rgb(std::size_t count, const std::uint8_t* pixels, std::uint8_t* red, std::uint8_t* green,
                  std::uint8_t* blue);

/// x[f][n] = images[n][f] * scale[c] + shift[c] (one fused multiply-add), 0 in padding columns; c is
/// the channel of f. images: [shape.samples] of uint8 [features], wherever each lies; scale, shift: [channels].
void gather_images(const GatherShape& shape, const std::uint8_t* const* images, const float* scale,
                   const float* shift, float* x);
/// Partners that samples are mixed with.
struct MixedImages {
  const SampleMix* mixes = nullptr;               ///< [shape.samples]; null: nothing is mixed
  const std::uint8_t* const* partners = nullptr;  ///< [shape.samples], images of those that are mixed
};
/// gather_images of images made by augment_image(), then by mix_images() of each and its partner.
/// @param index  [shape.samples] their numbers in the set
void gather_augmented(const GatherShape& shape, const std::uint8_t* const* images, const std::int32_t* index,
                      const float* scale, const float* shift, const AugmentPlan& plan, std::int64_t epoch,
                      const MixedImages& mixed, float* x);
/// Augments a sample for an epoch, by the definition in kernels/numerics/augment.hpp. image and to:
/// [channel][row][column] of the plan, not overlapping.
/// @param sample  its number in the set
void augment_image(const AugmentPlan& plan, std::int64_t epoch, std::uint32_t sample,
                   const std::uint8_t* image, std::uint8_t* to);
/// Mixes the image of a sample with its partner's, by the definition in kernels/mix.hpp. Both are augmented.
void mix_images(const AugmentPlan& plan, const SampleMix& mix, const std::uint8_t* partner,
                std::uint8_t* image);
/// x[f][n] = features[index[n]][f], 0 in padding columns. features: fp32 [sample][features].
void gather_features(const GatherShape& shape, const float* features, const std::int32_t* index, float* x);

/// Accumulates: sum[i] += round(g[i] * format.scale), half to even. Returns false, having added 0 for the
/// culprits, if some |g[i]| >= format.limit or is NaN. See kernels/numerics/sums.hpp.
bool accumulate_exact(std::size_t size, const float* g, const ExactFormat& format, std::int64_t* sum);
/// g[i] = float(sum[i] / (scale * count)), computed in double with one rounding to float. `scale` is the
/// power of two that the terms were multiplied by.
void mean_from_exact(std::size_t size, const std::int64_t* sum, double scale, std::int64_t count, float* g);
/// g[i] = sum[i] / count.
void mean(std::size_t size, const float* sum, std::int64_t count, float* g);

/// In double and in one order, that of kNormLanes.
double sum_of_squares(std::span<const float> numbers);
/// In place: what a rule sees of the mean gradient.
void clip(std::size_t size, const ClipStep& step, float* g);
/// One optimiser step: moves `w` and `buffers` by the rule (kernels/optimizers) along the mean gradient.
/// All pointers are arenas; `tensors` names the ranges of them that move.
/// @param buffers  buffers of the rule: as many as buffers_of(rule)
void update(UpdateRule rule, const StepScalars& step, std::span<const UpdateTensor> tensors, const float* g,
            float* const* buffers, float* w);

/// average[i] += share * (w[i] - average[i]), with one fused multiply-add. With a share of 1 an average of zeros
/// becomes w.
void average(float share, std::size_t size, const float* w, float* average);

/// Fingerprint (kernels/numerics/fingerprint.hpp) of words [first, first + words.size()) of a buffer. Fingerprints of
/// parts add up to that of the whole.
std::uint64_t fingerprint(std::uint32_t buffer, std::size_t first, std::span<const float> words);
std::uint64_t fingerprint(std::uint32_t buffer, std::size_t first, std::span<const std::int64_t> words);

}  // namespace lockstep::cpu
