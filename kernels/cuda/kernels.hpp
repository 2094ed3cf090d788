// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The hand-written kernels as functions, one for each op of kernels/device_ops.hpp, whose contract
/// they have. Each queues one launch (or as many as it says) on the stream. Compiled for GPUs and for the
/// emulator.
#pragma once

#include "kernels/device_epilogue.hpp"
#include "kernels/device_fingerprints.hpp"
#include "kernels/device_samples.hpp"
#include "kernels/device_sums.hpp"
#include "kernels/device_update.hpp"
#include "kernels/shapes.hpp"

#include <gpu/launch.cuh>

#include <cstddef>
#include <cstdint>

namespace lockstep {

struct BatchNormShape;  // kernels/batch_norm.hpp
struct BatchNormChannel;

}  // namespace lockstep

namespace lockstep::LOCKSTEP_GPU {

/// Facts of the GPU that a launch may adapt to. They never change the bits of a result.
struct Chip {
  int multiprocessors = 1;
  std::size_t shared_bytes = 64 * 1024;  ///< that a block may have: at least as a T4 has
};

/// Layout of the numbers of one sample: element f of sample n at f * feature_stride + n * sample_stride.
/// Batch innermost: {batch, 1}. Sample outermost, for vendor libraries: {1, features}.
struct TensorLayout {
  std::size_t feature_stride = 1, sample_stride = 1;
};

// gather.cu
void gather(cudaStream_t, int batch, const DeviceDataset&, const SampleSelection&, TensorLayout layout,
            float* x, std::int32_t* labels);

// conv2d.cu
void conv2d_forward(cudaStream_t, const Chip&, const Conv2dShape&, const float* x, const float* w,
                    const float* b, const Epilogue&, const StepState* state, float* y, std::uint8_t* mask);
// conv2d_backward_data.cu
void conv2d_backward_data(cudaStream_t, const Chip&, const Conv2dShape&, const float* dy, const float* w,
                          const float* b, const EpilogueBackward* expand, float* dx);
// conv2d.cu
void conv2d_backward_weights(cudaStream_t, const Chip&, const Conv2dShape&, int grain, const float* x,
                             const float* dy, const ExactGradient&);

// linear_forward.cu
void linear_forward(cudaStream_t, const Chip&, const LinearShape&, const float* x, const float* w,
                    const float* b, const Epilogue&, const StepState* state, float* y, std::uint8_t* mask);
// linear_backward_data.cu
void linear_backward_data(cudaStream_t, const Chip&, const LinearShape&, const float* dy, const float* w,
                          const EpilogueBackward* expand, float* dx);
// linear_backward_weights.cu
void linear_backward_weights(cudaStream_t, const Chip&, const LinearShape&, int grain, const float* x,
                             const float* dy, const ExactGradient&);

// epilogue.cu. Both layouts, for the vendor ops too: [channel][row][column][sample] or, with batch_innermost
// false, [sample][channel][row][column]; masks likewise.
void epilogue_forward(cudaStream_t, const ImageShape&, int batch, bool batch_innermost, const float* x,
                      const Epilogue&, const StepState* state, float* y, std::uint8_t* mask);
void epilogue_backward(cudaStream_t, const EpilogueBackward&, int batch, bool batch_innermost,
                       const float* dy, float* dx);

// activation.cu: y[n][k][p][q] += b[k], samples outermost.
void add_channel_bias(cudaStream_t, const ImageShape& output, int batch, const float* b, float* y);

// max_pool.cu, avg_pool.cu
void max_pool_forward(cudaStream_t, const Pool2dShape&, const float* x, float* y, std::uint8_t* argmax);
void max_pool_backward(cudaStream_t, const Pool2dShape&, const float* dy, const std::uint8_t* argmax,
                       float* dx);
void avg_pool_forward(cudaStream_t, const Pool2dShape&, const float* x, float* y);
void avg_pool_backward(cudaStream_t, const Pool2dShape&, const float* dy, float* dx);

// avg_pool.cu
void global_avg_pool_forward(cudaStream_t, const ImageShape&, int batch, const float* x, float* y);
void global_avg_pool_backward(cudaStream_t, const ImageShape&, int batch, const float* dy, float* dx);

// avg_pool.cu. Samples outermost are channels of a batch of one.
void adaptive_avg_pool_forward(cudaStream_t, const AdaptivePoolShape&, const float* x, float* y);
void adaptive_avg_pool_backward(cudaStream_t, const AdaptivePoolShape&, const float* dy, float* dx);

// group_norm.cu
void group_norm_forward(cudaStream_t, const GroupNormShape&, TensorLayout, double eps, const float* x,
                        const float* weight, const float* bias, float* statistics, float* y);
void group_norm_backward(cudaStream_t, const GroupNormShape&, TensorLayout, const float* x, const float* dy,
                         const float* weight, const float* statistics, float* dx);
void group_norm_weight_gradients(cudaStream_t, const GroupNormShape&, TensorLayout, int grain, const float* x,
                                 const float* dy, const float* statistics, const ExactGradient&);

// batch_norm.cu
void batch_norm_sums(cudaStream_t, const BatchNormShape&, TensorLayout, int grain, const float* x,
                     std::int64_t* words);
void batch_norm_gradient_sums(cudaStream_t, const BatchNormShape&, TensorLayout, int grain, const float* x,
                              const float* dy, const BatchNormChannel* channels, std::int64_t* words);
void batch_norm_statistics(cudaStream_t, int channels, std::int64_t numbers, double eps,
                           const std::int64_t* words, BatchNormChannel* to);
void batch_norm_gradients(cudaStream_t, int channels, std::int64_t numbers, const std::int64_t* words,
                          BatchNormChannel* to);
void batch_norm_running(cudaStream_t, int channels, double eps, const float* running, BatchNormChannel* to);
void batch_norm_move(cudaStream_t, int channels, float momentum, const BatchNormChannel* from,
                     const StepState* state, float* running);
void batch_norm_weight_gradients(cudaStream_t, int channels, const BatchNormChannel* from,
                                 const ExactGradient&);
void batch_norm_forward(cudaStream_t, const BatchNormShape&, TensorLayout, const float* x,
                        const BatchNormChannel* channels, const float* weight, const float* bias, float* y);
void batch_norm_backward(cudaStream_t, const BatchNormShape&, TensorLayout, const float* x, const float* dy,
                         const BatchNormChannel* channels, const float* weight, float* dx);

// activation.cu
void activation_forward(cudaStream_t, const ActivationFunction&, std::size_t size, const float* x, float* y);
void activation_backward(cudaStream_t, const ActivationFunction&, std::size_t size, const float* saved,
                         const float* dy, float* dx);
void add(cudaStream_t, std::size_t size, const float* a, const float* b, float* y);

// activation.cu. Samples outermost are channels of a batch of one.
void scale_channels(cudaStream_t, const ScaleShape&, const float* x, const float* scale, bool adds, float* y);
void sum_products(cudaStream_t, const ScaleShape&, const float* a, const float* b, bool adds, float* y);
void copy_features(cudaStream_t, const FeatureCopy&, bool batch_innermost, const float* from, bool adds,
                   float* to);

// loss.cu
void loss_and_gradient(cudaStream_t, const LossShape&, TensorLayout layout, const float* logits,
                       const LossTarget&, float* dlogits);

// linear_loss.cu
bool linear_loss(cudaStream_t, const Chip&, const LinearShape&, const float* x, const float* w,
                 const float* b, const LossShape&, const LossTarget&, float* dlogits,
                 const EpilogueBackward* expand, float* dx);

// exact_sum.cu
void accumulate_exact(cudaStream_t, std::size_t size, const float* g, const ExactTarget&);
void exact_to_fp32(cudaStream_t, std::size_t size, const std::int64_t* sum, const std::int16_t* exponents,
                   float* g);

// update.cu. A launch, and one before it where the rule looks at norms.
void update(cudaStream_t, const UpdateArgs&);
void average(cudaStream_t, const AverageArgs&);
// gradient_norms.cu. Factors of each tensor, for a rule that looks at norms.
void adapt_factors(cudaStream_t, const UpdateArgs&);
// Two launches.
void gradient_norm(cudaStream_t, const UpdateArgs&, const GradientNorm&);

// exact_sum.cu
void fingerprint_kept(cudaStream_t, const KeptFingerprintArgs&);
void fingerprint_sums(cudaStream_t, const SumFingerprintArgs&);

}  // namespace lockstep::LOCKSTEP_GPU
