// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The layer `batch_norm: {eps: 1e-5, momentum: 0.1, affine: true}`.
#pragma once

#include "kernels/batch_norm.hpp"
#include "models/batch_layer.hpp"
#include "models/layer.hpp"
#include "models/layer_options.hpp"

#include <memory>

namespace lockstep {

/// y = (x - mean) / sqrt(variance + eps) * weight + bias, channel by channel, with mean and variance of the
/// global batch in training and the running ones in evaluation. NAME.weight and NAME.bias [channels] are
/// trained, unless `affine: false`; NAME.running_mean and NAME.running_var [channels] are kept.
class BatchNormLayer final : public Layer, public BatchLayer {
 public:
  struct Options {
    double eps = 1e-5;
    double momentum = 0.1;
    bool affine = true;
  };

  BatchNormLayer(const LayerPlace& place, const Options& options);
  /// @throws ConfigError  if an option is wrong
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place);

  std::string describe() const override { return "batch_norm"; }
  LayerOp op() const override;
  bool needs_input() const override { return true; }
  const BatchLayer* over_batch() const override { return this; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override;
  void backward_weights(const LayerPass& pass, const LayerTensors& tensors) const override;
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override;
  DeviceForm device_form() const override { return {}; }
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;
  void device_backward_weights(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;

  std::size_t words() const override;
  std::size_t statistics_bytes() const override;
  std::int64_t least_samples() const override { return pixels() > 1 ? 1 : 2; }
  void add_forward_sums(const LayerPass& pass, const LayerTensors& tensors,
                        std::int64_t* words) const override;
  void add_backward_sums(const LayerPass& pass, const LayerTensors& tensors,
                         std::int64_t* words) const override;
  void finish_forward_sums(const std::int64_t* words, std::int64_t samples,
                           std::byte* statistics) const override;
  void finish_backward_sums(const std::int64_t* words, std::int64_t samples,
                            std::byte* statistics) const override;
  void move_kept(const std::byte* statistics, float* kept) const override;
  void device_forward_sums(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors,
                           std::int64_t* words) const override;
  void device_backward_sums(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors,
                            std::int64_t* words) const override;
  void finish_device_forward_sums(const DeviceLayerPass& pass, const std::int64_t* words,
                                  std::int64_t samples, std::byte* statistics) const override;
  void finish_device_backward_sums(const DeviceLayerPass& pass, const std::int64_t* words,
                                   std::int64_t samples, std::byte* statistics) const override;
  void device_use_kept(const DeviceLayerPass& pass, const float* kept, std::byte* statistics) const override;
  void device_move_kept(const DeviceLayerPass& pass, const std::byte* statistics, const StepState* state,
                        float* kept) const override;

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

  Options options_;
};

/// The channels in the block of bytes that an execution keeps for the layer.
inline BatchNormChannel* channels_in(std::byte* statistics) {
  return reinterpret_cast<BatchNormChannel*>(statistics);
}
inline const BatchNormChannel* channels_in(const std::byte* statistics) {
  return reinterpret_cast<const BatchNormChannel*>(statistics);
}

}  // namespace lockstep
