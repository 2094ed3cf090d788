// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The contract of every op on a GPU. kernels/cuda implements it by hand, kernels/vendor with cuDNN and
/// cuBLAS.
///
/// It differs from kernels/cpu/ops.hpp, the contract on CPUs, where a GPU wants it different. Launches are dear,
/// so layers are fused (kernels/device_epilogue.hpp) and all grains of a rank go through an op together; and
/// nothing comes back to the host, so counts and flags stay on the device.
///
/// Conventions, stated once:
/// - Every op is queued on its stream and returns; nothing is synchronised. All pointers are device memory
///   and do not overlap unless an op says "in place". An op may be captured in a graph.
/// - Tensors are fp32, batch innermost, [channel][row][column][sample], like those of the CPU; `batch` is any
///   number from 1 on, without padding columns. (Vendor ops keep their tensors as [sample][channel][row]
///   [column], see batch_innermost(); masks and argmax likewise.)
/// - Outputs are overwritten, unless an op says "accumulates".
/// - The columns of a tensor are whole grains, one after another: columns [g * grain, (g + 1) * grain) are
///   grain g, the last one may be shorter. Gradients of parameters are summed within a grain (or a part of
///   one) in fp32 in a fixed order and then added as 64-bit fixed point (kernels/numerics/sums.hpp),
///   which is exact; so the bits depend on grain, shape and data alone: not on how many grains a rank has, on
///   the device's number of multiprocessors, or on which block is first.
/// - A grain adds at most kPartialSums terms to an element of an exact sum.
/// - Shapes were validated by the caller; an op only asserts (LOCKSTEP_CHECK).
#pragma once

#include "kernels/device.hpp"
#include "kernels/device_epilogue.hpp"
#include "kernels/device_fingerprints.hpp"
#include "kernels/device_samples.hpp"
#include "kernels/device_sums.hpp"
#include "kernels/device_update.hpp"
#include "kernels/shapes.hpp"
#include "kernels/step_state.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lockstep {

struct BatchNormShape;  // kernels/batch_norm.hpp
struct BatchNormChannel;

class DeviceOps {
 public:
  virtual ~DeviceOps() = default;
  /// "native" or "vendor".
  virtual std::string_view name() const = 0;
  virtual bool batch_innermost() const { return true; }

  /// x [features, batch] and labels [batch] of the samples selected; of mixed ones the label of the larger part.
  virtual void gather(Stream&, int batch, const DeviceDataset&, const SampleSelection&, float* x,
                      std::int32_t* labels) = 0;

  /// y = epilogue(conv(x, w) + b).  x [C,H,W,N]  w [K,C,R,S]  b [K]  y [K, P / pool, Q / pool, N]
  /// @param state  its `step` keys dropout; may be null if the epilogue has none
  /// @param mask   [size of y] bytes, see Epilogue; null: not wanted
  virtual void conv2d_forward(Stream&, const Conv2dShape&, const float* x, const float* w, const float* b,
                              const Epilogue&, const StepState* state, float* y, std::uint8_t* mask) = 0;
  /// dx from dy [K,P,Q,N]: [C,H,W,N]. With `expand` (then C, H, W are the epilogue's output) it is the
  /// gradient before that epilogue, [channels, height, width, N].
  /// @param b  [C], added to dx: the forward pass of a transposed convolution, not with `expand`; null: none
  virtual void conv2d_backward_data(Stream&, const Conv2dShape&, const float* dy, const float* w,
                                    const float* b, const EpilogueBackward* expand, float* dx) = 0;
  /// Accumulates dw [K,C,R,S] and db [K].
  virtual void conv2d_backward_weights(Stream&, const Conv2dShape&, int grain, const float* x,
                                       const float* dy, const ExactGradient&) = 0;

  /// y = epilogue(w x + b).  x [I,N]  w [O,I]  b [O]  y [O,N]. The epilogue has no pool.
  virtual void linear_forward(Stream&, const LinearShape&, const float* x, const float* w, const float* b,
                              const Epilogue&, const StepState* state, float* y, std::uint8_t* mask) = 0;
  /// dx [I,N] from dy [O,N]. With `expand` (then I is the size of the epilogue's output) it is the gradient
  /// before that epilogue.
  virtual void linear_backward_data(Stream&, const LinearShape&, const float* dy, const float* w,
                                    const EpilogueBackward* expand, float* dx) = 0;
  virtual void linear_backward_weights(Stream&, const LinearShape&, int grain, const float* x,
                                       const float* dy, const ExactGradient&) = 0;

  /// The epilogue alone, on x [channels, height, width, N]; and its way back.
  virtual void epilogue_forward(Stream&, const ImageShape&, int batch, const float* x, const Epilogue&,
                                const StepState* state, float* y, std::uint8_t* mask) = 0;
  virtual void epilogue_backward(Stream&, const EpilogueBackward&, int batch, const float* dy, float* dx) = 0;

  /// Pools of any window, stride and padding; argmax [size of y] as kernels/cpu/ops.hpp says.
  virtual void max_pool_forward(Stream&, const Pool2dShape&, const float* x, float* y,
                                std::uint8_t* argmax) = 0;
  virtual void max_pool_backward(Stream&, const Pool2dShape&, const float* dy, const std::uint8_t* argmax,
                                 float* dx) = 0;
  virtual void avg_pool_forward(Stream&, const Pool2dShape&, const float* x, float* y) = 0;
  virtual void avg_pool_backward(Stream&, const Pool2dShape&, const float* dy, float* dx) = 0;

  // The ops of kernels/cpu/ops.hpp, with the same bits.
  virtual void adaptive_avg_pool_forward(Stream&, const AdaptivePoolShape&, const float* x, float* y) = 0;
  virtual void adaptive_avg_pool_backward(Stream&, const AdaptivePoolShape&, const float* dy, float* dx) = 0;
  virtual void global_avg_pool_forward(Stream&, const ImageShape&, int batch, const float* x, float* y) = 0;
  virtual void global_avg_pool_backward(Stream&, const ImageShape&, int batch, const float* dy,
                                        float* dx) = 0;
  virtual void activation_forward(Stream&, const ActivationFunction&, std::size_t size, const float* x,
                                  float* y) = 0;
  virtual void activation_backward(Stream&, const ActivationFunction&, std::size_t size, const float* saved,
                                   const float* dy, float* dx) = 0;
  virtual void add(Stream&, std::size_t size, const float* a, const float* b, float* y) = 0;
  virtual void scale_channels(Stream&, const ScaleShape&, const float* x, const float* scale, bool adds,
                              float* y) = 0;
  virtual void sum_products(Stream&, const ScaleShape&, const float* a, const float* b, bool adds,
                            float* y) = 0;
  /// Overwrites these features of `to`, or adds to them.
  virtual void copy_features(Stream&, const FeatureCopy&, const float* from, bool adds, float* to) = 0;

  // Batch normalisation, as kernels/cpu/ops.hpp and kernels/batch_norm.hpp say, with the same bits. All columns are
  // samples; those of a grain follow one another.
  virtual void batch_norm_sums(Stream&, const BatchNormShape&, int grain, const float* x,
                               std::int64_t* words) = 0;
  virtual void batch_norm_gradient_sums(Stream&, const BatchNormShape&, int grain, const float* x,
                                        const float* dy, const BatchNormChannel* channels,
                                        std::int64_t* words) = 0;
  /// Statistics from sums over `numbers` numbers of each channel. `running`: running_mean, then running_var.
  virtual void batch_norm_statistics(Stream&, int channels, std::int64_t numbers, double eps,
                                     const std::int64_t* words, BatchNormChannel* to) = 0;
  virtual void batch_norm_gradients(Stream&, int channels, std::int64_t numbers, const std::int64_t* words,
                                    BatchNormChannel* to) = 0;
  virtual void batch_norm_running(Stream&, int channels, double eps, const float* running,
                                  BatchNormChannel* to) = 0;
  /// Behind the update of a step: moves running_mean and running_var, unless the state is halted.
  virtual void batch_norm_move(Stream&, int channels, float momentum, const BatchNormChannel* from,
                               const StepState* state, float* running) = 0;
  /// Accumulates dweight and dbias.
  virtual void batch_norm_weight_gradients(Stream&, int channels, const BatchNormChannel* from,
                                           const ExactGradient&) = 0;
  virtual void batch_norm_forward(Stream&, const BatchNormShape&, const float* x,
                                  const BatchNormChannel* channels, const float* weight, const float* bias,
                                  float* y) = 0;
  virtual void batch_norm_backward(Stream&, const BatchNormShape&, const float* x, const float* dy,
                                   const BatchNormChannel* channels, const float* weight, float* dx) = 0;

  // layer_norm and group_norm, as kernels/cpu/ops.hpp says, with the same bits.
  virtual void group_norm_forward(Stream&, const GroupNormShape&, double eps, const float* x,
                                  const float* weight, const float* bias, float* statistics, float* y) = 0;
  virtual void group_norm_backward(Stream&, const GroupNormShape&, const float* x, const float* dy,
                                   const float* weight, const float* statistics, float* dx) = 0;
  /// Accumulates dweight and dbias.
  virtual void group_norm_weight_gradients(Stream&, const GroupNormShape&, int grain, const float* x,
                                           const float* dy, const float* statistics,
                                           const ExactGradient&) = 0;

  /// The loss of the samples by shape.rule, see kernels/cpu/ops.hpp, with the same bits. Adds samples, loss (each
  /// sample's rounded to 2^-32, so that sums are exact) and correct answers to the counters. dlogits [classes, batch];
  /// null: not wanted. In place when dlogits == logits. LossShape::samples equals batch.
  virtual void loss_and_gradient(Stream&, const LossShape&, const float* logits, const LossTarget&,
                                 float* dlogits) = 0;
  /// The last layer of a network in one launch, with the bits of each op. These are linear_forward without an epilogue,
  /// loss_and_gradient of what that gives, dlogits [O,N], and linear_backward_data. The logits are stored nowhere.
  /// @param expand  without a pool; or null
  /// @param dx      null: not wanted
  /// @returns false, and nothing is queued, where this layer, batch or loss needs one op after the other
  virtual bool linear_loss(Stream&, const LinearShape&, const float* x, const float* w, const float* b,
                           const LossShape&, const LossTarget&, float* dlogits,
                           const EpilogueBackward* expand, float* dx) = 0;

  /// Accumulates: sums[i] += round(g[i] * scale), half to even.
  virtual void accumulate_exact(Stream&, std::size_t size, const float* g, const ExactTarget&) = 0;
  /// g[i] = float(sum[i] * 2^exponents[i]); null: kExactExponent for all of them.
  virtual void exact_to_fp32(Stream&, std::size_t size, const std::int64_t* sum,
                             const std::int16_t* exponents, float* g) = 0;

  /// One optimiser step (as cpu::update) with the mean gradient: each sum divided by the counter kSamples, in
  /// double. It zeroes the sums and advances the state: step, step_in_epoch, steps_done, last, sums,
  /// scalars. If kRefused is set, weights and buffers stay as they are and the state is only marked halted; a
  /// halted state is never advanced. It computes the fingerprints of what it reads before it moves that.
  virtual void update(Stream&, const UpdateArgs&) = 0;
  virtual void average(Stream&, const AverageArgs&) = 0;
  /// Before the update of a step: measures the mean gradient as it is before it is clipped. It reads the arguments that
  /// the mean follows from.
  virtual void gradient_norm(Stream&, const UpdateArgs&, const GradientNorm&) = 0;
  /// Before the update of a step: the fingerprints of what that does not read.
  virtual void fingerprint_kept(Stream&, const KeptFingerprintArgs&) = 0;
  virtual void fingerprint_sums(Stream&, const SumFingerprintArgs&) = 0;
};

}  // namespace lockstep
