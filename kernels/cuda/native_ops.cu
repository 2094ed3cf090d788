// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// NativeOps: each op is the launch of its kernel.
#include "kernels/batch_norm.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/runtime.hpp"

namespace lockstep::LOCKSTEP_GPU {

namespace {

TensorLayout batch_innermost_layout(int batch) {
  return {static_cast<std::size_t>(batch), 1};
}

/// Each op is one function of kernels.hpp, which has its name.
class NativeOps final : public DeviceOps {
 public:
  explicit NativeOps(const DeviceProperties& properties)
      : index_(properties.index), chip_{properties.multiprocessors, properties.max_shared_bytes_per_block} {}

  std::string_view name() const override { return "native"; }

  void gather(Stream& stream, int batch, const DeviceDataset& dataset, const SampleSelection& selection,
              float* x, std::int32_t* labels) override {
    LOCKSTEP_GPU::gather(on(stream), batch, dataset, selection, batch_innermost_layout(batch), x, labels);
  }

  void conv2d_forward(Stream& stream, const Conv2dShape& shape, const float* x, const float* w,
                      const float* b, const Epilogue& epilogue, const StepState* state, float* y,
                      std::uint8_t* mask) override {
    LOCKSTEP_GPU::conv2d_forward(on(stream), chip_, shape, x, w, b, epilogue, state, y, mask);
  }
  void conv2d_backward_data(Stream& stream, const Conv2dShape& shape, const float* dy, const float* w,
                            const float* b, const EpilogueBackward* expand, float* dx) override {
    LOCKSTEP_GPU::conv2d_backward_data(on(stream), chip_, shape, dy, w, b, expand, dx);
  }
  void conv2d_backward_weights(Stream& stream, const Conv2dShape& shape, int grain, const float* x,
                               const float* dy, const ExactGradient& gradient) override {
    LOCKSTEP_GPU::conv2d_backward_weights(on(stream), chip_, shape, grain, x, dy, gradient);
  }

  void linear_forward(Stream& stream, const LinearShape& shape, const float* x, const float* w,
                      const float* b, const Epilogue& epilogue, const StepState* state, float* y,
                      std::uint8_t* mask) override {
    LOCKSTEP_GPU::linear_forward(on(stream), chip_, shape, x, w, b, epilogue, state, y, mask);
  }
  void linear_backward_data(Stream& stream, const LinearShape& shape, const float* dy, const float* w,
                            const EpilogueBackward* expand, float* dx) override {
    LOCKSTEP_GPU::linear_backward_data(on(stream), chip_, shape, dy, w, expand, dx);
  }
  void linear_backward_weights(Stream& stream, const LinearShape& shape, int grain, const float* x,
                               const float* dy, const ExactGradient& gradient) override {
    LOCKSTEP_GPU::linear_backward_weights(on(stream), chip_, shape, grain, x, dy, gradient);
  }

  void epilogue_forward(Stream& stream, const ImageShape& image, int batch, const float* x,
                        const Epilogue& epilogue, const StepState* state, float* y,
                        std::uint8_t* mask) override {
    LOCKSTEP_GPU::epilogue_forward(on(stream), image, batch, true, x, epilogue, state, y, mask);
  }
  void epilogue_backward(Stream& stream, const EpilogueBackward& expand, int batch, const float* dy,
                         float* dx) override {
    LOCKSTEP_GPU::epilogue_backward(on(stream), expand, batch, true, dy, dx);
  }

  void max_pool_forward(Stream& stream, const Pool2dShape& shape, const float* x, float* y,
                        std::uint8_t* argmax) override {
    LOCKSTEP_GPU::max_pool_forward(on(stream), shape, x, y, argmax);
  }
  void max_pool_backward(Stream& stream, const Pool2dShape& shape, const float* dy,
                         const std::uint8_t* argmax, float* dx) override {
    LOCKSTEP_GPU::max_pool_backward(on(stream), shape, dy, argmax, dx);
  }
  void avg_pool_forward(Stream& stream, const Pool2dShape& shape, const float* x, float* y) override {
    LOCKSTEP_GPU::avg_pool_forward(on(stream), shape, x, y);
  }
  void avg_pool_backward(Stream& stream, const Pool2dShape& shape, const float* dy, float* dx) override {
    LOCKSTEP_GPU::avg_pool_backward(on(stream), shape, dy, dx);
  }

  void adaptive_avg_pool_forward(Stream& stream, const AdaptivePoolShape& shape, const float* x,
                                 float* y) override {
    LOCKSTEP_GPU::adaptive_avg_pool_forward(on(stream), shape, x, y);
  }
  void adaptive_avg_pool_backward(Stream& stream, const AdaptivePoolShape& shape, const float* dy,
                                  float* dx) override {
    LOCKSTEP_GPU::adaptive_avg_pool_backward(on(stream), shape, dy, dx);
  }
  void group_norm_forward(Stream& stream, const GroupNormShape& shape, double eps, const float* x,
                          const float* weight, const float* bias, float* statistics, float* y) override {
    LOCKSTEP_GPU::group_norm_forward(on(stream), shape, batch_innermost_layout(shape.batch), eps, x, weight,
                                     bias, statistics, y);
  }
  void group_norm_backward(Stream& stream, const GroupNormShape& shape, const float* x, const float* dy,
                           const float* weight, const float* statistics, float* dx) override {
    LOCKSTEP_GPU::group_norm_backward(on(stream), shape, batch_innermost_layout(shape.batch), x, dy, weight,
                                      statistics, dx);
  }
  void group_norm_weight_gradients(Stream& stream, const GroupNormShape& shape, int grain, const float* x,
                                   const float* dy, const float* statistics,
                                   const ExactGradient& gradient) override {
    LOCKSTEP_GPU::group_norm_weight_gradients(on(stream), shape, batch_innermost_layout(shape.batch), grain,
                                              x, dy, statistics, gradient);
  }
  void global_avg_pool_forward(Stream& stream, const ImageShape& shape, int batch, const float* x,
                               float* y) override {
    LOCKSTEP_GPU::global_avg_pool_forward(on(stream), shape, batch, x, y);
  }
  void global_avg_pool_backward(Stream& stream, const ImageShape& shape, int batch, const float* dy,
                                float* dx) override {
    LOCKSTEP_GPU::global_avg_pool_backward(on(stream), shape, batch, dy, dx);
  }
  void activation_forward(Stream& stream, const ActivationFunction& f, std::size_t size, const float* x,
                          float* y) override {
    LOCKSTEP_GPU::activation_forward(on(stream), f, size, x, y);
  }
  void activation_backward(Stream& stream, const ActivationFunction& f, std::size_t size, const float* saved,
                           const float* dy, float* dx) override {
    LOCKSTEP_GPU::activation_backward(on(stream), f, size, saved, dy, dx);
  }
  void add(Stream& stream, std::size_t size, const float* a, const float* b, float* y) override {
    LOCKSTEP_GPU::add(on(stream), size, a, b, y);
  }
  void scale_channels(Stream& stream, const ScaleShape& shape, const float* x, const float* scale, bool adds,
                      float* y) override {
    LOCKSTEP_GPU::scale_channels(on(stream), shape, x, scale, adds, y);
  }
  void sum_products(Stream& stream, const ScaleShape& shape, const float* a, const float* b, bool adds,
                    float* y) override {
    LOCKSTEP_GPU::sum_products(on(stream), shape, a, b, adds, y);
  }
  void copy_features(Stream& stream, const FeatureCopy& copy, const float* from, bool adds,
                     float* to) override {
    LOCKSTEP_GPU::copy_features(on(stream), copy, true, from, adds, to);
  }

  void batch_norm_sums(Stream& stream, const BatchNormShape& shape, int grain, const float* x,
                       std::int64_t* words) override {
    LOCKSTEP_GPU::batch_norm_sums(on(stream), shape, batch_innermost_layout(shape.batch), grain, x, words);
  }
  void batch_norm_gradient_sums(Stream& stream, const BatchNormShape& shape, int grain, const float* x,
                                const float* dy, const BatchNormChannel* channels,
                                std::int64_t* words) override {
    LOCKSTEP_GPU::batch_norm_gradient_sums(on(stream), shape, batch_innermost_layout(shape.batch), grain, x,
                                           dy, channels, words);
  }
  void batch_norm_statistics(Stream& stream, int channels, std::int64_t numbers, double eps,
                             const std::int64_t* words, BatchNormChannel* to) override {
    LOCKSTEP_GPU::batch_norm_statistics(on(stream), channels, numbers, eps, words, to);
  }
  void batch_norm_gradients(Stream& stream, int channels, std::int64_t numbers, const std::int64_t* words,
                            BatchNormChannel* to) override {
    LOCKSTEP_GPU::batch_norm_gradients(on(stream), channels, numbers, words, to);
  }
  void batch_norm_running(Stream& stream, int channels, double eps, const float* running,
                          BatchNormChannel* to) override {
    LOCKSTEP_GPU::batch_norm_running(on(stream), channels, eps, running, to);
  }
  void batch_norm_move(Stream& stream, int channels, float momentum, const BatchNormChannel* from,
                       const StepState* state, float* running) override {
    LOCKSTEP_GPU::batch_norm_move(on(stream), channels, momentum, from, state, running);
  }
  void batch_norm_weight_gradients(Stream& stream, int channels, const BatchNormChannel* from,
                                   const ExactGradient& gradient) override {
    LOCKSTEP_GPU::batch_norm_weight_gradients(on(stream), channels, from, gradient);
  }
  void batch_norm_forward(Stream& stream, const BatchNormShape& shape, const float* x,
                          const BatchNormChannel* channels, const float* weight, const float* bias,
                          float* y) override {
    LOCKSTEP_GPU::batch_norm_forward(on(stream), shape, batch_innermost_layout(shape.batch), x, channels,
                                     weight, bias, y);
  }
  void batch_norm_backward(Stream& stream, const BatchNormShape& shape, const float* x, const float* dy,
                           const BatchNormChannel* channels, const float* weight, float* dx) override {
    LOCKSTEP_GPU::batch_norm_backward(on(stream), shape, batch_innermost_layout(shape.batch), x, dy, channels,
                                      weight, dx);
  }

  void loss_and_gradient(Stream& stream, const LossShape& shape, const float* logits,
                         const LossTarget& target, float* dlogits) override {
    const TensorLayout layout = batch_innermost_layout(shape.batch);
    LOCKSTEP_GPU::loss_and_gradient(on(stream), shape, layout, logits, target, dlogits);
  }
  bool linear_loss(Stream& stream, const LinearShape& shape, const float* x, const float* w, const float* b,
                   const LossShape& loss, const LossTarget& target, float* dlogits,
                   const EpilogueBackward* expand, float* dx) override {
    return LOCKSTEP_GPU::linear_loss(on(stream), chip_, shape, x, w, b, loss, target, dlogits, expand, dx);
  }

  void accumulate_exact(Stream& stream, std::size_t size, const float* g,
                        const ExactTarget& target) override {
    LOCKSTEP_GPU::accumulate_exact(on(stream), size, g, target);
  }
  void exact_to_fp32(Stream& stream, std::size_t size, const std::int64_t* sum, const std::int16_t* exponents,
                     float* g) override {
    LOCKSTEP_GPU::exact_to_fp32(on(stream), size, sum, exponents, g);
  }
  void update(Stream& stream, const UpdateArgs& args) override { LOCKSTEP_GPU::update(on(stream), args); }
  void gradient_norm(Stream& stream, const UpdateArgs& args, const GradientNorm& norm) override {
    LOCKSTEP_GPU::gradient_norm(on(stream), args, norm);
  }
  void average(Stream& stream, const AverageArgs& args) override { LOCKSTEP_GPU::average(on(stream), args); }
  void fingerprint_kept(Stream& stream, const KeptFingerprintArgs& args) override {
    LOCKSTEP_GPU::fingerprint_kept(on(stream), args);
  }
  void fingerprint_sums(Stream& stream, const SumFingerprintArgs& args) override {
    LOCKSTEP_GPU::fingerprint_sums(on(stream), args);
  }

 private:
  /// Kernels start on the calling thread's current device, which must be the stream's.
  cudaStream_t on(Stream& stream) const {
    LOCKSTEP_CUDA(cudaSetDevice(index_));
    return static_cast<cudaStream_t>(stream.native_handle());
  }

  int index_;
  Chip chip_;
};

}  // namespace

std::unique_ptr<DeviceOps> make_native_ops(Device& device) {
  return std::make_unique<NativeOps>(device.properties());
}

}  // namespace lockstep::LOCKSTEP_GPU
