// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "models/network_builder.hpp"
#include "tests/models/random_networks/random_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

namespace lockstep::test {
namespace {

constexpr int kMostLayers = 8;
constexpr int kMostFeatures = 1500;      ///< of a tensor
constexpr double kMostProducts = 60000;  ///< of a layer, for one sample

class Writer {
 public:
  Writer(Dice& dice, const ImageShape& input, int classes) : dice_(dice), shape_(input), classes_(classes) {}

  std::string write() {
    text_ = dice_.chance(0.2) ? "init: {normal: 0.2}\nlayers:\n" : "layers:\n";
    const int count = dice_.between(1, kMostLayers);
    for (int tries = 0; tries < 3 * count && layers_ + 1 < count; ++tries) add_layer();
    add_end();
    return text_;
  }

 private:
  void add(const std::string& layer) {
    remember_shape();
    text_ += "  - " + layer + "\n";
    const std::string_view kind = std::string_view(layer).substr(0, layer.find(':'));
    const std::string base(find_layer_kind(kind)->default_name);
    outputs_.push_back({fmt::format("{}{}", base, ++layers_of_a_name_[base]), {}});
    ++layers_;
  }

  /// Of the last layer, which is known when the next one is added.
  void remember_shape() {
    if (!outputs_.empty()) outputs_.back().shape = shape_;
  }

  /// The sum with any earlier output of this shape.
  void add_branch() {
    remember_shape();
    std::vector<std::string> fitting;
    for (const auto& [name, shape] : outputs_)
      if (shape == shape_) fitting.push_back(name);
    if (fitting.empty()) return;
    const std::string& from =
        fitting[static_cast<std::size_t>(dice_.between(0, static_cast<int>(fitting.size()) - 1))];
    add(dice_.chance(0.5) ? "add: " + from : fmt::format("add: {{from: {}}}", from));
  }

  /// From any earlier output on.
  void add_route() {
    remember_shape();
    if (outputs_.empty()) return;
    const Output from =
        outputs_[static_cast<std::size_t>(dice_.between(0, static_cast<int>(outputs_.size()) - 1))];
    add("route: " + from.name);
    shape_ = from.shape;
  }

  void add_batch_norm() {
    if (dice_.chance(0.5)) return add("batch_norm");
    add(fmt::format("batch_norm: {{eps: {}, momentum: {}, affine: {}}}", dice_.one_of({1e-5, 1e-3, 0.1}),
                    dice_.one_of({0.0, 0.1, 1.0}), dice_.chance(0.5)));
  }

  /// Of any kind; none, if the dice fall on one that does not fit.
  void add_layer() {
    switch (dice_.between(0, 23)) {
      case 0:
      case 1:
      case 2:
        return add_conv(dice_.between(1, 12));
      case 3:
      case 4:
        return add_pool("max_pool");
      case 5:
        return add_pool("avg_pool");
      case 6:
      case 7:
        return add("relu");
      case 8:
        return add_dropout("dropout");
      case 9:
        return add_dropout("dropout2d");
      case 10:
        return add_flatten();
      case 11:
        return add("tanh");
      case 12:
        return add("sigmoid");
      case 13:
        return add_global_pool();
      case 14:
      case 15:
      case 16:
        return add_branch();
      case 17:
        return add(dice_.chance(0.5) ? "gelu" : "gelu: {approximate: tanh}");
      case 18:
      case 19:
        return add_linear();
      case 20:
        return add_route();
      default:
        return add_batch_norm();
    }
  }

  /// Logits: as many as classes, of both signs.
  void add_end() {
    const bool is_vector = shape_.height == 1 && shape_.width == 1;
    if (is_vector && dice_.chance(0.3)) {
      add("conv2d: {out: classes, kernel: 1}");
    } else if (dice_.chance(0.15)) {
      add(fmt::format("conv2d: {{out: classes, kernel: [{}, {}]}}", shape_.height, shape_.width));
    } else {
      add("linear: classes");
    }
    shape_ = {classes_, 1, 1};
    if (dice_.chance(0.1)) add_dropout("dropout");
    if (dice_.chance(0.1)) add_branch();
    if (dice_.chance(0.1)) add_flatten();
    if (dice_.chance(0.05)) add("avg_pool: {kernel: 1}");
  }

  void add_conv(int outputs) {
    const bool is_square = dice_.chance(0.5);
    const int most = dice_.chance(0.1) ? 9 : 5;
    int height = is_square ? dice_.one_of({1, 3, 3, 5, 5, 2, 4}) : dice_.between(1, most);
    int width = is_square ? height : dice_.between(1, most);
    const int padding = dice_.chance(0.4) ? dice_.between(0, std::min(height, width) - 1) : 0;
    height = std::min(height, shape_.height + 2 * padding);
    width = std::min(width, shape_.width + 2 * padding);
    const int allowed = std::min(padding, std::min(height, width) - 1);
    Conv2dShape shape{1,       shape_.channels, shape_.height, shape_.width,
                      outputs, height,          width,         dice_.chance(0.3) ? dice_.between(2, 3) : 1,
                      allowed};
    if (height > shape_.height + 2 * allowed || width > shape_.width + 2 * allowed) return;
    while (shape.out_channels > 1 && is_too_much(shape)) --shape.out_channels;
    if (is_too_much(shape)) return;
    add(fmt::format("conv2d: {{out: {}, kernel: [{}, {}], stride: {}, padding: {}, bias: {}}}",
                    shape.out_channels, height, width, shape.stride, allowed, !dice_.chance(0.3)));
    shape_ = {shape.out_channels, shape.out_height(), shape.out_width()};
  }

  static bool is_too_much(const Conv2dShape& shape) {
    return shape.flops() / 2 > kMostProducts || shape.out_size() > kMostFeatures;
  }

  void add_pool(const char* kind) {
    const bool is_usual = dice_.chance(0.6);
    Pool2dShape shape{1, shape_.channels, shape_.height, shape_.width, 2, 2, 0};
    if (!is_usual) {
      shape.kernel = dice_.chance(0.1) ? dice_.between(5, 15) : dice_.between(1, 4);
      shape.padding = dice_.between(0, shape.kernel / 2);
      shape.stride = dice_.between(1, 4);
    }
    if (shape.kernel > std::min(shape.in_height, shape.in_width) + 2 * shape.padding) return;
    if (shape.out_size() > kMostFeatures) return;
    add(fmt::format("{}: {{kernel: {}, stride: {}, padding: {}}}", kind, shape.kernel, shape.stride,
                    shape.padding));
    shape_ = {shape.channels, shape.out_height(), shape.out_width()};
  }

  void add_dropout(const char* kind) {
    add(fmt::format("{}: {}", kind, dice_.one_of({0.0, 0.1, 0.25, 0.5, 0.5, 0.9})));
  }

  void add_global_pool() {
    add("global_avg_pool");
    shape_ = {shape_.channels, 1, 1};
  }

  void add_flatten() {
    add("flatten");
    shape_ = {static_cast<int>(shape_.features()), 1, 1};
  }

  void add_linear() {
    const int outputs = dice_.between(1, 40);
    add(dice_.chance(0.3) ? fmt::format("linear: {{out: {}, bias: false}}", outputs)
                          : fmt::format("linear: {}", outputs));
    shape_ = {outputs, 1, 1};
  }

  Dice& dice_;
  ImageShape shape_;
  int classes_;
  std::string text_;
  int layers_ = 0;
  struct Output {
    std::string name;
    ImageShape shape;
  };
  std::vector<Output> outputs_;                  ///< of the layers so far
  std::map<std::string, int> layers_of_a_name_;  ///< as the builder counts them
};

}  // namespace

std::string random_layers(Dice& dice, const ImageShape& input, int classes) {
  return Writer(dice, input, classes).write();
}

}  // namespace lockstep::test
