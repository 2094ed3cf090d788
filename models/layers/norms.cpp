// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The layers that normalise. They have options, calls of ops, and use the sums of a batch.
#include "common/text_layout.hpp"
#include "kernels/batch_norm.hpp"
#include "kernels/device_ops.hpp"
#include "models/batch_layer.hpp"
#include "models/layers/layer_kinds.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lockstep {
namespace {

/// eps and affine of all kinds.
template <typename Op>
Op read_norm(const LayerOptions& options) {
  constexpr double kLeastEps = 1e-12;  // far above what sums lose
  Op chosen;
  chosen.eps = options.number("eps", {kLeastEps, 1}, 1e-5);
  chosen.affine = options.yes_or_no("affine", true);
  return chosen;
}

// The layer `batch_norm: {eps: 1e-5, momentum: 0.1, affine: true}`.

/// The channels in the block of bytes that an execution keeps for the layer.
BatchNormChannel* channels_in(std::byte* statistics) {
  return reinterpret_cast<BatchNormChannel*>(statistics);
}
const BatchNormChannel* channels_in(const std::byte* statistics) {
  return reinterpret_cast<const BatchNormChannel*>(statistics);
}

/// y = (x - mean) / sqrt(variance + eps) * weight + bias, channel by channel. Training uses mean and variance of the
/// global batch, evaluation the running ones. NAME.weight and NAME.bias [channels] are
/// trained, unless `affine: false`; NAME.running_mean and NAME.running_var [channels] are kept.
class BatchNormLayer final : public Layer, public BatchLayer {
 public:
  BatchNormLayer(const LayerPlace& place, const BatchNormOp& options, double momentum)
      : Layer(place, place.input), options_(options), momentum_(static_cast<float>(momentum)) {
    const int size = input().channels;
    if (options.affine) {
      add_parameter("weight", {size}, Parameter::Initial::kOnes);
      add_parameter("bias", {size}, Parameter::Initial::kZeros);
    }
    add_kept("running_mean", size, Parameter::Initial::kZeros);
    add_kept("running_var", size, Parameter::Initial::kOnes);
  }
  /// @throws ConfigError  if an option is wrong
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place) {
    auto chosen = read_norm<BatchNormOp>(options);
    chosen.input = place.input;
    return std::make_unique<BatchNormLayer>(place, chosen, options.number("momentum", {0, 1}, 0.1));
  }

  std::string describe() const override { return "batch_norm"; }
  LayerOp op() const override { return options_; }
  bool needs_input() const override { return true; }
  const BatchLayer* over_batch() const override { return this; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override {
    std::vector<BatchNormChannel> running;
    const BatchNormChannel* of_batch = channels_in(tensors.statistics);
    if (!pass.training) {
      running.resize(channels());
      for (std::size_t c = 0; c < channels(); ++c)
        set_running_statistics(tensors.kept[c], tensors.kept[channels() + c], options_.eps, running[c]);
      of_batch = running.data();
    }
    cpu::batch_norm_forward(shape_of(pass), tensors.x, of_batch, weight_of(tensors.weights),
                            bias_of(tensors.weights), tensors.steps, tensors.y,
                            cpu::to_find(tensors.maxima_of_y));
  }
  /// The sums are of the whole global batch, so its first grain brings them and no other brings anything.
  void backward_weights(const LayerPass& pass, const LayerTensors& tensors) const override {
    if (!options_.affine) return;
    const BatchNormChannel* of_batch = channels_in(tensors.statistics);
    const bool brings_them = pass.key.first_sample == 0;
    for (std::size_t c = 0; c < channels(); ++c) {
      tensors.gradients[c] = brings_them ? of_batch[c].dweight : 0;
      tensors.gradients[channels() + c] = brings_them ? of_batch[c].dbias : 0;
    }
  }
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override {
    cpu::batch_norm_backward(shape_of(pass), tensors.x, tensors.dy, channels_in(tensors.statistics),
                             weight_of(tensors.weights), tensors.dx, cpu::to_find(tensors.maxima_of_dx));
  }
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override {
    pass.ops.batch_norm_forward(pass.stream, shape_of(pass), tensors.x, channels_in(tensors.statistics),
                                weight_of(tensors.weights), bias_of(tensors.weights), tensors.y);
  }
  /// The rank with the first sample of the global batch brings the sums, as on a CPU.
  void device_backward_weights(const DeviceLayerPass& pass,
                               const DeviceLayerTensors& tensors) const override {
    if (!pass.has_first_sample) return;
    pass.ops.batch_norm_weight_gradients(pass.stream, input().channels, channels_in(tensors.statistics),
                                         {tensors.gradients[0], tensors.gradients[1]});
  }
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override {
    pass.ops.batch_norm_backward(pass.stream, shape_of(pass), tensors.x, tensors.dy,
                                 channels_in(tensors.statistics), weight_of(tensors.weights), tensors.dx);
  }

  std::size_t words() const override { return channels() * kBatchNormWords; }
  std::size_t statistics_bytes() const override { return channels() * sizeof(BatchNormChannel); }
  std::int64_t least_samples() const override { return pixels() > 1 ? 1 : 2; }
  void add_forward_sums(const LayerPass& pass, const LayerTensors& tensors,
                        std::int64_t* words) const override {
    cpu::batch_norm_sums(shape_of(pass), tensors.x, words);
  }
  void add_backward_sums(const LayerPass& pass, const LayerTensors& tensors,
                         std::int64_t* words) const override {
    cpu::batch_norm_gradient_sums(shape_of(pass), tensors.steps, tensors.x, tensors.stepped_dy,
                                  channels_in(tensors.statistics), words);
  }
  void finish_forward_sums(const std::int64_t* words, std::int64_t samples,
                           std::byte* statistics) const override {
    for (std::size_t c = 0; c < channels(); ++c)
      set_batch_statistics(words + c * kBatchNormWords, samples * pixels(), options_.eps,
                           channels_in(statistics)[c]);
  }
  void finish_backward_sums(const std::int64_t* words, std::int64_t samples,
                            std::byte* statistics) const override {
    for (std::size_t c = 0; c < channels(); ++c)
      set_batch_gradients(words + c * kBatchNormWords, samples * pixels(), channels_in(statistics)[c]);
  }
  void move_kept(const std::byte* statistics, float* kept) const override {
    for (std::size_t c = 0; c < channels(); ++c)
      move_running_statistics(channels_in(statistics)[c], momentum_, kept[c], kept[channels() + c]);
  }
  void device_forward_sums(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors,
                           std::int64_t* words) const override {
    pass.ops.batch_norm_sums(pass.stream, shape_of(pass), pass.grain, tensors.x, words);
  }
  void device_backward_sums(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors,
                            std::int64_t* words) const override {
    pass.ops.batch_norm_gradient_sums(pass.stream, shape_of(pass), pass.grain, tensors.x, tensors.dy,
                                      channels_in(tensors.statistics), words);
  }
  void finish_device_forward_sums(const DeviceLayerPass& pass, const std::int64_t* words,
                                  std::int64_t samples, std::byte* statistics) const override {
    pass.ops.batch_norm_statistics(pass.stream, input().channels, samples * pixels(), options_.eps, words,
                                   channels_in(statistics));
  }
  void finish_device_backward_sums(const DeviceLayerPass& pass, const std::int64_t* words,
                                   std::int64_t samples, std::byte* statistics) const override {
    pass.ops.batch_norm_gradients(pass.stream, input().channels, samples * pixels(), words,
                                  channels_in(statistics));
  }
  void device_use_kept(const DeviceLayerPass& pass, const float* kept, std::byte* statistics) const override {
    pass.ops.batch_norm_running(pass.stream, input().channels, options_.eps, kept, channels_in(statistics));
  }
  void device_move_kept(const DeviceLayerPass& pass, const std::byte* statistics, const StepState* state,
                        float* kept) const override {
    pass.ops.batch_norm_move(pass.stream, input().channels, momentum_, channels_in(statistics), state, kept);
  }

 private:
  std::size_t channels() const { return static_cast<std::size_t>(input().channels); }
  int pixels() const { return input().height * input().width; }
  BatchNormShape shape_of(const LayerPass& pass) const {
    return {pass.batch, pass.samples, input().channels, pixels()};
  }
  BatchNormShape shape_of(const DeviceLayerPass& pass) const {
    return {pass.batch, pass.batch, input().channels, pixels()};
  }
  const float* weight_of(const float* weights) const { return options_.affine ? weights : nullptr; }
  const float* bias_of(const float* weights) const {
    return options_.affine ? weights + channels() : nullptr;
  }

  BatchNormOp options_;
  float momentum_;
};

// The layers `layer_norm: {eps: 1e-5, affine: true}` and `group_norm: {groups: 8, eps: 1e-5, affine: true}`, also
// written `group_norm: 8`.

/// The memory between the passes as numbers.
float* statistics_in(std::uint8_t* saved) {
  return reinterpret_cast<float*>(saved);
}

/// y = (x - mean) / sqrt(variance + eps) weight + bias, with statistics of neighbouring channels of one sample.
/// So it is in training as in evaluation: as PyTorch's GroupNorm, or of all its numbers, as PyTorch's LayerNorm
/// over [channels, height, width]. NAME.weight and NAME.bias, of each channel or of each number, are trained,
/// unless `affine: false`. Kept between the passes are mean and 1 / deviation of each group.
class GroupNormLayer final : public Layer {
 public:
  GroupNormLayer(const LayerPlace& place, const GroupNormOp& options)
      : Layer(place, place.input), options_(options) {
    if (!options.affine) return;
    const std::vector<int> shape =
        options.whole_layer ? dimensions_of(input()) : std::vector{input().channels};
    add_parameter("weight", shape, Parameter::Initial::kOnes);
    add_parameter("bias", shape, Parameter::Initial::kZeros);
  }
  /// @throws ConfigError, ShapeError  if an option is wrong
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place) {
    const ImageShape& input = place.input;
    auto chosen = read_norm<GroupNormOp>(options);
    const int groups = options.integer("groups", 1, kMaxOutputs);
    if (input.channels % groups != 0)
      options.fail_shape(fmt::format("{} groups do not divide {}; write groups: 1, or another divisor",
                                     groups, counted(input.channels, "channel")));
    chosen.shape = {1, groups, input.channels, input.height * input.width};
    return std::make_unique<GroupNormLayer>(place, chosen);
  }
  static std::unique_ptr<Layer> make_layer_norm(const LayerOptions& options, const LayerPlace& place) {
    auto chosen = read_norm<GroupNormOp>(options);
    chosen.shape = {1, 1, place.input.features(), 1};
    chosen.whole_layer = true;
    return std::make_unique<GroupNormLayer>(place, chosen);
  }

  std::string describe() const override {
    return options_.whole_layer ? "layer_norm" : fmt::format("group_norm {}", options_.shape.groups);
  }
  LayerOp op() const override { return options_; }
  bool needs_input() const override { return true; }
  std::size_t saved_bytes(int batch) const override {
    return shape_of(batch).statistics_size() * sizeof(float);
  }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override {
    cpu::group_norm_forward(shape_of(pass.batch), options_.eps, tensors.x, weight_of(tensors.weights),
                            bias_of(tensors.weights), statistics_in(tensors.saved), tensors.y);
  }
  void backward_weights(const LayerPass& pass, const LayerTensors& tensors) const override {
    if (!options_.affine) return;
    cpu::group_norm_weight_gradients(shape_of(pass.batch), tensors.x, tensors.dy,
                                     statistics_in(tensors.saved), tensors.gradients,
                                     tensors.gradients + options_.shape.channels);
  }
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override {
    cpu::group_norm_backward(shape_of(pass.batch), tensors.x, tensors.dy, weight_of(tensors.weights),
                             statistics_in(tensors.saved), tensors.dx);
  }
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override {
    pass.ops.group_norm_forward(pass.stream, shape_of(pass.batch), options_.eps, tensors.x,
                                weight_of(tensors.weights), bias_of(tensors.weights),
                                statistics_in(tensors.saved), tensors.y);
  }
  void device_backward_weights(const DeviceLayerPass& pass,
                               const DeviceLayerTensors& tensors) const override {
    pass.ops.group_norm_weight_gradients(pass.stream, shape_of(pass.batch), tensors.grain, tensors.x,
                                         tensors.dy, statistics_in(tensors.saved),
                                         {tensors.gradients[0], tensors.gradients[1]});
  }
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override {
    pass.ops.group_norm_backward(pass.stream, shape_of(pass.batch), tensors.x, tensors.dy,
                                 weight_of(tensors.weights), statistics_in(tensors.saved), tensors.dx);
  }

 private:
  GroupNormShape shape_of(int batch) const { return with_batch(options_.shape, batch); }
  const float* weight_of(const float* weights) const { return options_.affine ? weights : nullptr; }
  const float* bias_of(const float* weights) const {
    return options_.affine ? weights + options_.shape.channels : nullptr;
  }

  GroupNormOp options_;
};

}  // namespace

std::vector<LayerKind> norm_kinds() {
  return {
      {"batch_norm", "bn", "", {"name", "eps", "momentum", "affine"}, BatchNormLayer::make},
      {"layer_norm", "ln", "", {"name", "eps", "affine"}, GroupNormLayer::make_layer_norm},
      {"group_norm", "gn", "groups", {"name", "groups", "eps", "affine"}, GroupNormLayer::make},
  };
}

}  // namespace lockstep
