// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The options of one layer as its YAML says them: `conv2d: {out: 10, kernel: 5}`, `max_pool: 2`, or `relu`. And the
/// kinds of layers that a network file may name.
#pragma once

#include "kernels/shapes.hpp"

#include <yaml-cpp/yaml.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct KernelSize {
  int height = 0, width = 0;
};

class Layer;
struct LayerPlace;  // models/layer.hpp

/// A layer before another.
struct EarlierLayer {
  std::string name;
  std::size_t index = 0;  ///< among all layers
  ImageShape output;
};

/// Reads options, each with its range and default. Every complaint is one line: file:line:column, layer,
/// option, what was expected. Borrows `file`.
class LayerOptions {
 public:
  struct Origin {
    const std::string& file;
    std::string layer;  ///< its name, "conv1"
    YAML::Mark mark;    ///< begin of the layer
    int classes = 0;    ///< meaning of `out: classes`
    /// Those before this one.
    std::span<const std::shared_ptr<const Layer>> earlier = {};
  };

  /// @param options   a map; or one value, that of `main_key`; or null
  /// @param main_key  "kernel" for `max_pool: 2`; empty if there is no such short form
  LayerOptions(Origin origin, const YAML::Node& options, std::string_view main_key);

  /// A whole number in [least, most]. Without a fallback it must be there.
  int integer(const std::string& key, int least, int most, std::optional<int> fallback = {}) const;
  struct Range {
    double least = 0, most = 0;
  };
  /// A number in the range, both ends included.
  double number(const std::string& key, const Range& range, double fallback) const;
  /// true, yes, on, or false, no, off.
  bool yes_or_no(const std::string& key, bool fallback) const;
  /// A number in [0, 1).
  float probability(const std::string& key, float fallback) const;
  /// The place in `choices` of the word that is there; without the key, 0.
  std::size_t choice(const std::string& key, std::span<const std::string_view> choices) const;
  /// `out`: a whole number, or `classes`. Must be there.
  int outputs() const;
  /// `kernel`: `5`, or `[height, width]`. Must be there.
  KernelSize kernel() const;
  /// Such as `groups`: a whole number that divides the channels of both sides; without the key, 1.
  int common_divisor(const std::string& key, int inputs, int outputs) const;
  /// `from`: the name of an earlier layer with an output that fits. Must be there.
  /// @param input  shape of the input
  /// @param such   the outputs that fit, in words: "4x26x26 or 4"; "": all do
  EarlierLayer earlier_layer(const ImageShape& input, const std::function<bool(const ImageShape&)>& fits,
                             const std::string& such) const;

  /// @throws ShapeError  if the kernel is larger than the image with its padding
  void require_fit(const KernelSize& kernel, int padding, const ImageShape& input, int dilation = 1) const;
  /// @throws ShapeError  if that is more than kMaxParameters
  void require_weights(std::uint64_t count) const;
  /// Ends with a ShapeError that names file, line and layer.
  [[noreturn]] void fail_shape(const std::string& message) const;

 private:
  YAML::Node find(const std::string& key) const;
  YAML::Node require(const std::string& key) const;
  int to_integer(const YAML::Node& node, const std::string& key, int least, int most) const;
  [[noreturn]] void fail_shape(const YAML::Mark& mark, const std::string& message) const;
  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& message) const;

  Origin origin_;
  YAML::Node options_;
  std::string_view main_key_;
};

struct LayerKind {
  std::string_view kind;               ///< as in YAML: "max_pool"
  std::string_view default_name;       ///< "pool": layers without a name are pool1, pool2, ...
  std::string_view main_key;           ///< the option meant by `max_pool: 2`; empty: there is none
  std::vector<std::string_view> keys;  ///< all options
  std::function<std::unique_ptr<Layer>(const LayerOptions& options, const LayerPlace& place)> make;
};

/// All kinds, in the order in which messages list them.
std::span<const LayerKind> layer_catalogue();

// Bounds of networks. They keep every size within int and every offset within what one
// MPI call can send. docs/models.md states them, and so does each error.

inline constexpr int kMaxKernel = 1024;
inline constexpr int kMaxPoolKernel = 15;  ///< the position in a window fits in a byte, as max_pool stores it
inline constexpr int kMaxOutputs = 1 << 20;
inline constexpr int kMaxClasses = kMaxOutputs;
inline constexpr std::uint64_t kMaxFeatures = 1 << 24;       ///< in the input or in one layer, for one sample
inline constexpr std::uint64_t kMaxParameters = 2147483647;  ///< in one network
inline constexpr std::size_t kMaxLayers = 1024;

// On a GPU a kernel numbers elements with 31 bits, and the blocks of a grid with 16: see check_device_limits.
/// In a tensor, all samples of a rank together.
inline constexpr std::uint64_t kMaxDeviceElements = 2147483647;
inline constexpr int kMaxDeviceSide = 65535;                ///< channels and height of a convolution
inline constexpr std::int64_t kMaxDeviceSamples = 2097120;  ///< on a rank in one step

}  // namespace lockstep
