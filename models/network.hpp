// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A network built from its YAML description.
#pragma once

#include "kernels/shapes.hpp"
#include "models/arena.hpp"
#include "models/precision.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class Layer;
struct LayerKind;  // models/layer_options.hpp

/// Layers whose output nothing reads. They are a mistake in a model file; but a checkpoint that has some is read as
/// it was written.
enum class UnreadLayers { kRefused, kAllowed };

/// The layers, their shapes and the parameter layout. Immutable; holds no weights and no activations, so that
/// many threads can execute one network. Layers are shared: a copy costs the names of its tensors.
class Network {
 public:
  /// `source`: a name ("net" means net.yaml among the models that ship with Lockstep) or a path to a YAML
  /// file.
  /// @throws ConfigError, ShapeError  naming file, line, layer, and the shapes that do not fit; or the models
  /// there are
  /// @throws MissingDataError         the path is not there
  static Network load(const std::string& source, const ImageShape& input, int classes,
                      Precision precision = Precision::kFp32, std::span<const LayerKind> own = {});
  /// Parses YAML text; `file` is for messages.
  /// @param own  kinds of layers that a program brings along; their names are none of the catalogue's
  static Network parse(const std::string& yaml, const std::string& file, const ImageShape& input, int classes,
                       UnreadLayers unread = UnreadLayers::kRefused, Precision precision = Precision::kFp32,
                       std::span<const LayerKind> own = {});

  const std::string& name() const { return name_; }
  const ImageShape& input_shape() const { return input_; }
  int classes() const { return classes_; }
  Precision precision() const { return precision_; }
  const ParameterLayout& parameters() const { return parameters_; }
  const std::vector<std::shared_ptr<const Layer>>& layers() const { return layers_; }
  /// Multiplications and additions to train on one sample. They are those of forward, weight gradients, data
  /// gradients (not of the first parameterised layer), as torchvision counts them.
  double training_flops_per_sample() const;
  /// Those without which the gradients would be others: none for outputs that a pool drops, none with padding.
  double needed_training_flops_per_sample() const;
  /// The YAML text that this network was built from: Network::parse of it gives the same network.
  const std::string& yaml() const { return yaml_; }
  /// Layer, output shape and parameters of each layer as a table for people.
  std::string summary() const;

  /// Fills the arena from (seed, parameter index, element). It uses PyTorch's default (uniform in ±1/sqrt(fan_in))
  /// or, where the YAML says `init: {normal: 0.01}`, N(0, 0.01) weights and zero biases; ones and zeros where
  /// a layer begins with those.
  /// @param normal_std  in place of what the YAML says; 0: that
  /// @param weights  [parameters().weights_size()]
  void initialise(std::uint64_t seed, std::span<float> weights, double normal_std = 0) const;

 private:
  Network() = default;
  friend class NetworkBuilder;

  std::string name_;
  std::string yaml_;
  ImageShape input_;
  int classes_ = 0;
  Precision precision_ = Precision::kFp32;
  ParameterLayout parameters_;
  std::vector<std::shared_ptr<const Layer>> layers_;  ///< stages keep them too
  double normal_std_ = 0;                             ///< for the initial weights; 0: PyTorch's default
};

// The random numbers that training starts from: the same bits on every machine.

/// Initial values of one parameter tensor. Element e is made from word e % 4 of
/// philox(seed, {e / 4, 0, random_stream(kInitialise, parameter), 0}), by arithmetic that IEEE 754 rounds the
/// same everywhere: no function of the C library but the square root.
struct InitialWeights {
  std::uint64_t seed = 0;
  std::uint32_t parameter = 0;  ///< index of the tensor in the parameter layout

  /// PyTorch's default for convolutions and linear layers: uniform in [-1/sqrt(fan_in), 1/sqrt(fan_in)).
  void fill_uniform(int fan_in, std::span<float> weights) const;
  /// N(0, std).
  void fill_normal(double std, std::span<float> weights) const;
};

// Network files that ship with Lockstep.

/// True if a job's `model` is a path rather than the name of a model that ships with Lockstep.
inline bool is_model_path(std::string_view source) {
  return source.find('/') != source.npos || source.ends_with(".yaml") || source.ends_with(".yml");
}

/// The file of a model. A source with a '/' or ending in .yaml or .yml is a path and returned as it is; a
/// name is looked for in $LOCKSTEP_MODELS, in ../share/lockstep/models beside the program, and in the source tree that
/// it was built from.
/// @throws ConfigError  no model has this name; says which there are and where they were looked for
std::string find_model(const std::string& source);
/// The names that Network::load knows.
std::vector<std::string> known_models();

// In which order backward finishes the gradients, and how much work lies between: what bucket planning needs
// to know.

/// The weight and bias of one layer, as Execution::backward reports them.
struct BackwardRange {
  std::size_t offset = 0;  ///< in the arena, in elements
  std::size_t size = 0;    ///< in elements
  /// Work of backward, per sample, from this range's completion to the next one's. It is the data gradient of this
  /// layer and the weight gradient of the next; 0 for the last range. Convolutions and linear layers only.
  double flops = 0;
  friend bool operator==(const BackwardRange&, const BackwardRange&) = default;
};

/// In backward order; together they cover the arena.
std::vector<BackwardRange> backward_ranges(const Network& network);

}  // namespace lockstep
