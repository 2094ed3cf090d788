// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// VendorOps: the calls of cuDNN and cuBLAS, around them the layouts that they want.
#include "kernels/batch_norm.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/vendor/library.hpp"
#include "kernels/vendor/vendor.hpp"

#include <algorithm>

namespace lockstep::vendor {
namespace {

/// The hand-written kernels, compiled for the same device.
namespace native = LOCKSTEP_GPU;

native::TensorLayout sample_outermost(int features) {
  return {1, static_cast<std::size_t>(features)};
}

std::size_t size_of(const ImageShape& image, int batch) {
  return static_cast<std::size_t>(image.features()) * static_cast<std::size_t>(batch);
}

/// [sample][channel] is one dimension for a pool, and a batch of one has nothing inside of it. So the
/// hand-written pools accept this layout too.
template <typename Shape>
Shape samples_as_channels(Shape shape) {
  shape.channels *= shape.batch;
  shape.batch = 1;
  return shape;
}

class Ops final : public VendorOps {
 public:
  Ops(Device& device, VendorAlgorithms algorithms) : library_(device, algorithms) {}

  void gather(Stream& stream, int batch, const DeviceDataset& dataset, const SampleSelection& selection,
              float* x, std::int32_t* labels) override {
    native::gather(on(stream), batch, dataset, selection, sample_outermost(dataset.features), x, labels);
  }

  void conv2d_forward(Stream& stream, const Conv2dShape& shape, const float* x, const float* w,
                      const float* b, const Epilogue& epilogue, const StepState* state, float* y,
                      std::uint8_t* mask) override {
    forward(stream, shape, x, w, b, epilogue, state, y, mask);
  }
  void conv2d_backward_data(Stream& stream, const Conv2dShape& shape, const float* dy, const float* w,
                            const float* b, const EpilogueBackward* expand, float* dx) override {
    backward_data(stream, shape, dy, w, expand, dx);
    if (b == nullptr) return;
    const ImageShape x = {shape.in_channels, shape.in_height, shape.in_width};
    native::add_channel_bias(on(stream), x, shape.batch, b, dx);
  }
  void conv2d_backward_weights(Stream& stream, const Conv2dShape& shape, int grain, const float* x,
                               const float* dy, const ExactGradient& gradient) override {
    backward_weights(stream, shape, grain, x, dy, gradient);
  }

  void linear_forward(Stream& stream, const LinearShape& shape, const float* x, const float* w,
                      const float* b, const Epilogue& epilogue, const StepState* state, float* y,
                      std::uint8_t* mask) override {
    forward(stream, shape, x, w, b, epilogue, state, y, mask);
  }
  void linear_backward_data(Stream& stream, const LinearShape& shape, const float* dy, const float* w,
                            const EpilogueBackward* expand, float* dx) override {
    backward_data(stream, shape, dy, w, expand, dx);
  }
  void linear_backward_weights(Stream& stream, const LinearShape& shape, int grain, const float* x,
                               const float* dy, const ExactGradient& gradient) override {
    backward_weights(stream, shape, grain, x, dy, gradient);
  }

  void epilogue_forward(Stream& stream, const ImageShape& image, int batch, const float* x,
                        const Epilogue& epilogue, const StepState* state, float* y,
                        std::uint8_t* mask) override {
    native::epilogue_forward(on(stream), image, batch, false, x, epilogue, state, y, mask);
  }
  void epilogue_backward(Stream& stream, const EpilogueBackward& expand, int batch, const float* dy,
                         float* dx) override {
    native::epilogue_backward(on(stream), expand, batch, false, dy, dx);
  }

  void max_pool_forward(Stream& stream, const Pool2dShape& shape, const float* x, float* y,
                        std::uint8_t* argmax) override {
    native::max_pool_forward(on(stream), samples_as_channels(shape), x, y, argmax);
  }
  void max_pool_backward(Stream& stream, const Pool2dShape& shape, const float* dy,
                         const std::uint8_t* argmax, float* dx) override {
    native::max_pool_backward(on(stream), samples_as_channels(shape), dy, argmax, dx);
  }
  void avg_pool_forward(Stream& stream, const Pool2dShape& shape, const float* x, float* y) override {
    library_.pool(shape, kAveragePool).forward(library_.on(stream), x, y);
  }
  void avg_pool_backward(Stream& stream, const Pool2dShape& shape, const float* dy, float* dx) override {
    library_.pool(shape, kAveragePool).backward(library_.on(stream), dx, dy, dy, dx);
  }

  void adaptive_avg_pool_forward(Stream& stream, const AdaptivePoolShape& shape, const float* x,
                                 float* y) override {
    native::adaptive_avg_pool_forward(on(stream), samples_as_channels(shape), x, y);
  }
  void adaptive_avg_pool_backward(Stream& stream, const AdaptivePoolShape& shape, const float* dy,
                                  float* dx) override {
    native::adaptive_avg_pool_backward(on(stream), samples_as_channels(shape), dy, dx);
  }
  void group_norm_forward(Stream& stream, const GroupNormShape& shape, double eps, const float* x,
                          const float* weight, const float* bias, float* statistics, float* y) override {
    native::group_norm_forward(on(stream), shape, sample_outermost(shape.channels * shape.pixels), eps, x,
                               weight, bias, statistics, y);
  }
  void group_norm_backward(Stream& stream, const GroupNormShape& shape, const float* x, const float* dy,
                           const float* weight, const float* statistics, float* dx) override {
    native::group_norm_backward(on(stream), shape, sample_outermost(shape.channels * shape.pixels), x, dy,
                                weight, statistics, dx);
  }
  void group_norm_weight_gradients(Stream& stream, const GroupNormShape& shape, int grain, const float* x,
                                   const float* dy, const float* statistics,
                                   const ExactGradient& gradient) override {
    native::group_norm_weight_gradients(on(stream), shape, sample_outermost(shape.channels * shape.pixels),
                                        grain, x, dy, statistics, gradient);
  }
  void global_avg_pool_forward(Stream& stream, const ImageShape& shape, int batch, const float* x,
                               float* y) override {
    native::global_avg_pool_forward(on(stream), {shape.channels * batch, shape.height, shape.width}, 1, x, y);
  }
  void global_avg_pool_backward(Stream& stream, const ImageShape& shape, int batch, const float* dy,
                                float* dx) override {
    native::global_avg_pool_backward(on(stream), {shape.channels * batch, shape.height, shape.width}, 1, dy,
                                     dx);
  }
  void activation_forward(Stream& stream, const ActivationFunction& f, std::size_t size, const float* x,
                          float* y) override {
    native::activation_forward(on(stream), f, size, x, y);
  }
  void activation_backward(Stream& stream, const ActivationFunction& f, std::size_t size, const float* saved,
                           const float* dy, float* dx) override {
    native::activation_backward(on(stream), f, size, saved, dy, dx);
  }
  void add(Stream& stream, std::size_t size, const float* a, const float* b, float* y) override {
    native::add(on(stream), size, a, b, y);
  }
  void scale_channels(Stream& stream, const ScaleShape& shape, const float* x, const float* scale, bool adds,
                      float* y) override {
    native::scale_channels(on(stream), samples_as_channels(shape), x, scale, adds, y);
  }
  void sum_products(Stream& stream, const ScaleShape& shape, const float* a, const float* b, bool adds,
                    float* y) override {
    native::sum_products(on(stream), samples_as_channels(shape), a, b, adds, y);
  }
  void copy_features(Stream& stream, const FeatureCopy& copy, const float* from, bool adds,
                     float* to) override {
    native::copy_features(on(stream), copy, false, from, adds, to);
  }

  void batch_norm_sums(Stream& stream, const BatchNormShape& shape, int grain, const float* x,
                       std::int64_t* words) override {
    native::batch_norm_sums(on(stream), shape, sample_outermost(shape.channels * shape.pixels), grain, x,
                            words);
  }
  void batch_norm_gradient_sums(Stream& stream, const BatchNormShape& shape, int grain, const float* x,
                                const float* dy, const BatchNormChannel* channels,
                                std::int64_t* words) override {
    native::batch_norm_gradient_sums(on(stream), shape, sample_outermost(shape.channels * shape.pixels),
                                     grain, x, dy, channels, words);
  }
  void batch_norm_statistics(Stream& stream, int channels, std::int64_t numbers, double eps,
                             const std::int64_t* words, BatchNormChannel* to) override {
    native::batch_norm_statistics(on(stream), channels, numbers, eps, words, to);
  }
  void batch_norm_gradients(Stream& stream, int channels, std::int64_t numbers, const std::int64_t* words,
                            BatchNormChannel* to) override {
    native::batch_norm_gradients(on(stream), channels, numbers, words, to);
  }
  void batch_norm_running(Stream& stream, int channels, double eps, const float* running,
                          BatchNormChannel* to) override {
    native::batch_norm_running(on(stream), channels, eps, running, to);
  }
  void batch_norm_move(Stream& stream, int channels, float momentum, const BatchNormChannel* from,
                       const StepState* state, float* running) override {
    native::batch_norm_move(on(stream), channels, momentum, from, state, running);
  }
  void batch_norm_weight_gradients(Stream& stream, int channels, const BatchNormChannel* from,
                                   const ExactGradient& gradient) override {
    native::batch_norm_weight_gradients(on(stream), channels, from, gradient);
  }
  void batch_norm_forward(Stream& stream, const BatchNormShape& shape, const float* x,
                          const BatchNormChannel* channels, const float* weight, const float* bias,
                          float* y) override {
    native::batch_norm_forward(on(stream), shape, sample_outermost(shape.channels * shape.pixels), x,
                               channels, weight, bias, y);
  }
  void batch_norm_backward(Stream& stream, const BatchNormShape& shape, const float* x, const float* dy,
                           const BatchNormChannel* channels, const float* weight, float* dx) override {
    native::batch_norm_backward(on(stream), shape, sample_outermost(shape.channels * shape.pixels), x, dy,
                                channels, weight, dx);
  }

  void loss_and_gradient(Stream& stream, const LossShape& shape, const float* logits,
                         const LossTarget& target, float* dlogits) override {
    native::loss_and_gradient(on(stream), shape, sample_outermost(shape.classes), logits, target, dlogits);
  }

  void accumulate_exact(Stream& stream, std::size_t size, const float* g,
                        const ExactTarget& target) override {
    native::accumulate_exact(on(stream), size, g, target);
  }
  void exact_to_fp32(Stream& stream, std::size_t size, const std::int64_t* sum, const std::int16_t* exponents,
                     float* g) override {
    native::exact_to_fp32(on(stream), size, sum, exponents, g);
  }
  void update(Stream& stream, const UpdateArgs& args) override { native::update(on(stream), args); }
  void gradient_norm(Stream& stream, const UpdateArgs& args, const GradientNorm& norm) override {
    native::gradient_norm(on(stream), args, norm);
  }
  void average(Stream& stream, const AverageArgs& args) override { native::average(on(stream), args); }
  void fingerprint_kept(Stream& stream, const KeptFingerprintArgs& args) override {
    native::fingerprint_kept(on(stream), args);
  }
  void fingerprint_sums(Stream& stream, const SumFingerprintArgs& args) override {
    native::fingerprint_sums(on(stream), args);
  }

  void conv2d_forward_alone(Stream& stream, const Conv2dShape& shape, const float* x, const float* w,
                            float* y) override {
    library_.layer(shape).forward(library_.on(stream), x, w, y);
  }
  void conv2d_backward_weights_alone(Stream& stream, const Conv2dShape& shape, const float* x,
                                     const float* dy, float* dw) override {
    library_.layer(shape).backward_weights(library_.on(stream), x, dy, dw);
  }
  void linear_forward_alone(Stream& stream, const LinearShape& shape, const float* x, const float* w,
                            float* y) override {
    library_.layer(shape).forward(library_.on(stream), x, w, y);
  }
  void linear_backward_weights_alone(Stream& stream, const LinearShape& shape, const float* x,
                                     const float* dy, float* dw) override {
    library_.layer(shape).backward_weights(library_.on(stream), x, dy, dw);
  }
  void max_pool_forward_alone(Stream& stream, const Pool2dShape& shape, const float* x, float* y) override {
    library_.pool(shape, CUDNN_POOLING_MAX).forward(library_.on(stream), x, y);
  }
  void max_pool_backward_alone(Stream& stream, const Pool2dShape& shape, const float* x, const float* y,
                               const float* dy, float* dx) override {
    library_.pool(shape, CUDNN_POOLING_MAX).backward(library_.on(stream), x, y, dy, dx);
  }
  void softmax_alone(Stream& stream, const LossShape& shape, const float* logits,
                     float* probabilities) override {
    constexpr float kOne = 1, kZero = 0;
    const TensorDescriptor rows = describe_tensor(shape.batch, {shape.classes, 1, 1});
    LOCKSTEP_CUDNN(cudnnSoftmaxForward(library_.on(stream).cudnn(), CUDNN_SOFTMAX_ACCURATE,
                                       CUDNN_SOFTMAX_MODE_CHANNEL, &kOne, rows.get(), logits, &kZero,
                                       rows.get(), probabilities));
  }

 private:
  static constexpr auto kAveragePool = CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING;

  cudaStream_t on(Stream& stream) { return library_.handle_of(stream); }

  // Shape is Conv2dShape or LinearShape.
  template <typename Shape>
  void forward(Stream& stream, const Shape& shape, const float* x, const float* w, const float* b,
               const Epilogue& epilogue, const StepState* state, float* y, std::uint8_t* mask) {
    StreamContext& context = library_.on(stream);
    auto& layer = library_.layer(shape);
    const bool straight = epilogue.count == 0 && mask == nullptr;
    const std::size_t size = size_of(layer.output(), shape.batch);
    float* sums = straight ? y : context.floats(VendorScratch::kBeforeEpilogue, size);
    layer.forward(context, x, w, sums);
    add_bias(context, layer, b, sums);
    if (straight) return;
    native::epilogue_forward(context.stream(), layer.output(), shape.batch, false, sums, epilogue, state, y,
                             mask);
  }

  /// An aligned copy for cuDNN would be a launch before the addition, which the race would
  /// hold against cuDNN.
  template <typename Layer>
  static void add_bias(StreamContext& context, const Layer& layer, const float* b, float* y) {
    if (is_aligned(b)) {
      layer.bias().add(context, b, y);
    } else {
      native::add_channel_bias(context.stream(), layer.output(), layer.batch(), b, y);
    }
  }

  template <typename Shape>
  void backward_data(Stream& stream, const Shape& shape, const float* dy, const float* w,
                     const EpilogueBackward* expand, float* dx) {
    StreamContext& context = library_.on(stream);
    auto& layer = library_.layer(shape);
    if (expand == nullptr) {
      layer.backward_data(context, dy, w, dx);
      return;
    }
    float* pooled = context.floats(VendorScratch::kBeforeEpilogue, size_of(layer.input(), shape.batch));
    layer.backward_data(context, dy, w, pooled);
    native::epilogue_backward(context.stream(), *expand, shape.batch, false, pooled, dx);
  }

  /// Samples are outermost, so a grain is a piece of each tensor.
  template <typename Shape>
  void backward_weights(Stream& stream, const Shape& shape, int grain, const float* x, const float* dy,
                        const ExactGradient& gradient) {
    for (int first = 0; first < shape.batch; first += grain) {
      Shape part = shape;
      part.batch = std::min(grain, shape.batch - first);
      auto& layer = library_.layer(part);
      add_grain(library_.on(stream), layer, x + size_of(layer.input(), first),
                dy + size_of(layer.output(), first), gradient);
    }
  }

  template <typename Layer>
  void add_grain(StreamContext& context, Layer& layer, const float* x, const float* dy,
                 const ExactGradient& gradient) {
    const std::size_t weights = layer.weight_size();
    const auto biases = static_cast<std::size_t>(layer.output().channels);
    float* dw = context.floats(VendorScratch::kWeightGradient, weights);
    float* db = context.floats(VendorScratch::kBiasGradient, biases);
    layer.backward_weights(context, x, dy, dw);
    layer.bias().gradient(context, dy, db);
    native::accumulate_exact(context.stream(), weights, dw, gradient.weight);
    native::accumulate_exact(context.stream(), biases, db, gradient.bias);
  }

  Library library_;
};

}  // namespace

std::unique_ptr<VendorOps> make_ops(Device& device, VendorAlgorithms algorithms) {
  return std::make_unique<Ops>(device, algorithms);
}

}  // namespace lockstep::vendor
