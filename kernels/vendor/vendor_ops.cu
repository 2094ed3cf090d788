// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// VendorOps: the calls of cuDNN and cuBLAS, around them the layouts that they want.
#include "common/error.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/vendor/library.hpp"
#include "kernels/vendor/vendor.hpp"

#include <algorithm>

namespace lockstep::vendor {
namespace {

std::size_t size_of(const ImageShape& image, int batch) {
  return static_cast<std::size_t>(image.features()) * static_cast<std::size_t>(batch);
}

/// Inherits from the hand-written kernels what no library does.
class Ops final : public LOCKSTEP_GPU::NativeOps, public VendorOps {
 public:
  Ops(Device& device, VendorAlgorithms algorithms)
      : NativeOps(device.properties()), library_(device, algorithms) {}

  std::string_view name() const override { return "vendor"; }

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
    LOCKSTEP_GPU::add_channel_bias(on(stream), x, shape.batch, b, dx);
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

  void avg_pool_forward(Stream& stream, const Pool2dShape& shape, const float* x, float* y) override {
    library_.pool(shape, kAveragePool).forward(context(stream), x, y);
  }
  void avg_pool_backward(Stream& stream, const Pool2dShape& shape, const float* dy, float* dx) override {
    library_.pool(shape, kAveragePool).backward(context(stream), dx, dy, dy, dx);
  }

  void conv2d_forward_alone(Stream& stream, const Conv2dShape& shape, const float* x, const float* w,
                            float* y) override {
    library_.layer(shape).forward(context(stream), x, w, y);
  }
  void conv2d_backward_weights_alone(Stream& stream, const Conv2dShape& shape, const float* x,
                                     const float* dy, float* dw) override {
    library_.layer(shape).backward_weights(context(stream), x, dy, dw);
  }
  void linear_forward_alone(Stream& stream, const LinearShape& shape, const float* x, const float* w,
                            float* y) override {
    library_.layer(shape).forward(context(stream), x, w, y);
  }
  void linear_backward_weights_alone(Stream& stream, const LinearShape& shape, const float* x,
                                     const float* dy, float* dw) override {
    library_.layer(shape).backward_weights(context(stream), x, dy, dw);
  }
  void max_pool_forward_alone(Stream& stream, const Pool2dShape& shape, const float* x, float* y) override {
    library_.pool(shape, CUDNN_POOLING_MAX).forward(context(stream), x, y);
  }
  void max_pool_backward_alone(Stream& stream, const Pool2dShape& shape, const float* x, const float* y,
                               const float* dy, float* dx) override {
    library_.pool(shape, CUDNN_POOLING_MAX).backward(context(stream), x, y, dy, dx);
  }
  void softmax_alone(Stream& stream, const LossShape& shape, const float* logits,
                     float* probabilities) override {
    const TensorDescriptor rows = describe_tensor(shape.batch, {shape.classes, 1, 1});
    LOCKSTEP_CUDNN(cudnnSoftmaxForward(context(stream).cudnn(), CUDNN_SOFTMAX_ACCURATE,
                                       CUDNN_SOFTMAX_MODE_CHANNEL, &kOne, rows.get(), logits, &kZero,
                                       rows.get(), probabilities));
  }

 private:
  static constexpr auto kAveragePool = CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING;

  StreamContext& context(Stream& stream) { return library_.context(on(stream)); }

  // Shape is Conv2dShape or LinearShape.
  template <typename Shape>
  void forward(Stream& stream, const Shape& shape, const float* x, const float* w, const float* b,
               const Epilogue& epilogue, const StepState* state, float* y, std::uint8_t* mask) {
    StreamContext& with = context(stream);
    auto& layer = library_.layer(shape);
    const bool straight = epilogue.count == 0 && mask == nullptr;
    const std::size_t size = size_of(layer.output(), shape.batch);
    float* sums = straight ? y : with.floats(VendorScratch::kBeforeEpilogue, size);
    layer.forward(with, x, w, sums);
    // An aligned copy for cuDNN would be a launch before the addition, which the race would hold against cuDNN.
    if (is_aligned(b)) {
      layer.bias().add(with, b, sums);
    } else {
      LOCKSTEP_GPU::add_channel_bias(on(stream), layer.output(), shape.batch, b, sums);
    }
    if (!straight) epilogue_forward(stream, layer.output(), shape.batch, sums, epilogue, state, y, mask);
  }

  template <typename Shape>
  void backward_data(Stream& stream, const Shape& shape, const float* dy, const float* w,
                     const EpilogueBackward* expand, float* dx) {
    StreamContext& with = context(stream);
    auto& layer = library_.layer(shape);
    if (expand == nullptr) return layer.backward_data(with, dy, w, dx);
    float* pooled = with.floats(VendorScratch::kBeforeEpilogue, size_of(layer.input(), shape.batch));
    layer.backward_data(with, dy, w, pooled);
    epilogue_backward(stream, *expand, shape.batch, pooled, dx);
  }

  /// Samples are outermost, so a grain is a piece of each tensor.
  template <typename Shape>
  void backward_weights(Stream& stream, const Shape& shape, int grain, const float* x, const float* dy,
                        const ExactGradient& gradient) {
    for (int first = 0; first < shape.batch; first += grain) {
      Shape part = shape;
      part.batch = std::min(grain, shape.batch - first);
      auto& layer = library_.layer(part);
      add_grain(stream, layer, x + size_of(layer.input(), first), dy + size_of(layer.output(), first),
                gradient);
    }
  }

  template <typename Layer>
  void add_grain(Stream& stream, Layer& layer, const float* x, const float* dy,
                 const ExactGradient& gradient) {
    StreamContext& with = context(stream);
    const std::size_t weights = layer.weight_size();
    const auto biases = static_cast<std::size_t>(layer.output().channels);
    float* dw = with.floats(VendorScratch::kWeightGradient, weights);
    float* db = with.floats(VendorScratch::kBiasGradient, biases);
    layer.backward_weights(with, x, dy, dw);
    layer.bias().gradient(with, dy, db);
    accumulate_exact(stream, weights, dw, gradient.weight);
    accumulate_exact(stream, biases, db, gradient.bias);
  }

  Library library_;
};

}  // namespace
}  // namespace lockstep::vendor

LOCKSTEP_PLUGIN_TAKES_SPELLING

lockstep::VendorOps* lockstep_make_vendor_ops(lockstep::Device& device,
                                              lockstep::VendorAlgorithms algorithms) {
  return std::make_unique<lockstep::vendor::Ops>(device, algorithms).release();
}
