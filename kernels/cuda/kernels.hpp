// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The ops of a device by the hand-written kernels; each source of this folder has some of them. Compiled for GPUs and
/// for the emulator.
#pragma once

#include "kernels/device_ops.hpp"

#include <gpu/launch.cuh>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

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

/// Each op queues one launch on the stream, or as many as it says. conv2d_*, linear_forward, linear_backward_* and
/// avg_pool_* are for tensors with the batch innermost; the others are for both layouts, as batch_innermost() says.
class NativeOps : public virtual DeviceOps {
 public:
  /// Uses that device's streams only.
  explicit NativeOps(const DeviceProperties& device)
      : device_(device.index), chip_{device.multiprocessors, device.max_shared_bytes_per_block} {}
  std::string_view name() const override { return "native"; }

  // gather.cu
  void gather(Stream&, int batch, const DeviceDataset&, const SampleSelection&, float* x,
              std::int32_t* labels) override;

  // conv2d.cu, conv2d_backward_data.cu
  void conv2d_forward(Stream&, const Conv2dShape&, const float* x, const float* w, const float* b,
                      const Epilogue&, const StepState* state, float* y, std::uint8_t* mask) override;
  void conv2d_backward_data(Stream&, const Conv2dShape&, const float* dy, const float* w, const float* b,
                            const EpilogueBackward* expand, float* dx) override;
  void conv2d_backward_weights(Stream&, const Conv2dShape&, int grain, const float* x, const float* dy,
                               const ExactGradient&) override;

  // linear_forward.cu, linear_backward_data.cu, linear_backward_weights.cu
  void linear_forward(Stream&, const LinearShape&, const float* x, const float* w, const float* b,
                      const Epilogue&, const StepState* state, float* y, std::uint8_t* mask) override;
  void linear_backward_data(Stream&, const LinearShape&, const float* dy, const float* w,
                            const EpilogueBackward* expand, float* dx) override;
  void linear_backward_weights(Stream&, const LinearShape&, int grain, const float* x, const float* dy,
                               const ExactGradient&) override;

  // epilogue.cu
  void epilogue_forward(Stream&, const ImageShape&, int batch, const float* x, const Epilogue&,
                        const StepState* state, float* y, std::uint8_t* mask) override;
  void epilogue_backward(Stream&, const EpilogueBackward&, int batch, const float* dy, float* dx) override;

  // max_pool.cu, avg_pool.cu
  void max_pool_forward(Stream&, const Pool2dShape&, const float* x, float* y, std::uint8_t* argmax) override;
  void max_pool_backward(Stream&, const Pool2dShape&, const float* dy, const std::uint8_t* argmax,
                         float* dx) override;
  void avg_pool_forward(Stream&, const Pool2dShape&, const float* x, float* y) override;
  void avg_pool_backward(Stream&, const Pool2dShape&, const float* dy, float* dx) override;
  void adaptive_avg_pool_forward(Stream&, const AdaptivePoolShape&, const float* x, float* y) override;
  void adaptive_avg_pool_backward(Stream&, const AdaptivePoolShape&, const float* dy, float* dx) override;
  void global_avg_pool_forward(Stream&, const ImageShape&, int batch, const float* x, float* y) override;
  void global_avg_pool_backward(Stream&, const ImageShape&, int batch, const float* dy, float* dx) override;

  // activation.cu
  void activation_forward(Stream&, const ActivationFunction&, std::size_t size, const float* x,
                          float* y) override;
  void activation_backward(Stream&, const ActivationFunction&, std::size_t size, const float* saved,
                           const float* dy, float* dx) override;
  void add(Stream&, std::size_t size, const float* a, const float* b, float* y) override;
  void scale_channels(Stream&, const ScaleShape&, const float* x, const float* scale, bool adds,
                      float* y) override;
  void sum_products(Stream&, const ScaleShape&, const float* a, const float* b, bool adds, float* y) override;
  void copy_features(Stream&, const FeatureCopy&, const float* from, bool adds, float* to) override;

  // batch_norm.cu
  void batch_norm_sums(Stream&, const BatchNormShape&, int grain, const float* x,
                       std::int64_t* words) override;
  void batch_norm_gradient_sums(Stream&, const BatchNormShape&, int grain, const float* x, const float* dy,
                                const BatchNormChannel* channels, std::int64_t* words) override;
  void batch_norm_statistics(Stream&, int channels, std::int64_t numbers, double eps,
                             const std::int64_t* words, BatchNormChannel* to) override;
  void batch_norm_gradients(Stream&, int channels, std::int64_t numbers, const std::int64_t* words,
                            BatchNormChannel* to) override;
  void batch_norm_running(Stream&, int channels, double eps, const float* running,
                          BatchNormChannel* to) override;
  void batch_norm_move(Stream&, int channels, float momentum, const BatchNormChannel* from,
                       const StepState* state, float* running) override;
  void batch_norm_weight_gradients(Stream&, int channels, const BatchNormChannel* from,
                                   const ExactGradient&) override;
  void batch_norm_forward(Stream&, const BatchNormShape&, const float* x, const BatchNormChannel* channels,
                          const float* weight, const float* bias, float* y) override;
  void batch_norm_backward(Stream&, const BatchNormShape&, const float* x, const float* dy,
                           const BatchNormChannel* channels, const float* weight, float* dx) override;

  // group_norm.cu
  void group_norm_forward(Stream&, const GroupNormShape&, double eps, const float* x, const float* weight,
                          const float* bias, float* statistics, float* y) override;
  void group_norm_backward(Stream&, const GroupNormShape&, const float* x, const float* dy,
                           const float* weight, const float* statistics, float* dx) override;
  void group_norm_weight_gradients(Stream&, const GroupNormShape&, int grain, const float* x, const float* dy,
                                   const float* statistics, const ExactGradient&) override;

  // loss.cu, linear_loss.cu
  void loss_and_gradient(Stream&, const LossShape&, const float* logits, const LossTarget&,
                         float* dlogits) override;
  bool linear_loss(Stream&, const LinearShape&, const float* x, const float* w, const float* b,
                   const LossShape&, const LossTarget&, float* dlogits, const EpilogueBackward* expand,
                   float* dx) override;

  // exact_sum.cu
  void accumulate_exact(Stream&, std::size_t size, const float* g, const ExactTarget&) override;
  void exact_to_fp32(Stream&, std::size_t size, const std::int64_t* sum, const std::int16_t* exponents,
                     float* g) override;
  void fingerprint_kept(Stream&, const KeptFingerprintArgs&) override;
  void fingerprint_sums(Stream&, const SumFingerprintArgs&) override;

  // update.cu: a launch, and one before it where the rule looks at norms.
  void update(Stream&, const UpdateArgs&) override;
  void average(Stream&, const AverageArgs&) override;
  // gradient_norms.cu: two launches.
  void gradient_norm(Stream&, const UpdateArgs&, const GradientNorm&) override;

 protected:
  /// Kernels start on the calling thread's current device, which must be the stream's.
  cudaStream_t on(Stream& stream) const {
    LOCKSTEP_CUDA(cudaSetDevice(device_));
    return static_cast<cudaStream_t>(stream.native_handle());
  }

 private:
  TensorLayout layout(int batch, int features) const {
    if (batch_innermost()) return {static_cast<std::size_t>(batch), 1};
    return {1, static_cast<std::size_t>(features)};
  }
  /// For ops that treat all channels alike. Of samples outermost, [sample][channel] is one dimension, and a batch of
  /// one has nothing inside of it.
  template <typename Shape>
  Shape as_channels(Shape shape) const {
    if (batch_innermost()) return shape;
    shape.channels *= shape.batch;
    shape.batch = 1;
    return shape;
  }

  int device_;
  Chip chip_;
};

/// activation.cu: y[n][k][p][q] += b[k], samples outermost.
void add_channel_bias(cudaStream_t, const ImageShape& output, int batch, const float* b, float* y);

/// stream.cu
std::unique_ptr<Stream> make_stream(int device, Device::Priority priority);
std::unique_ptr<Event> make_event(int device, Device::Timing timing);

/// gradient_norms.cu: factors of each tensor, for a rule that looks at norms.
void adapt_factors(cudaStream_t, const UpdateArgs&);

}  // namespace lockstep::LOCKSTEP_GPU
